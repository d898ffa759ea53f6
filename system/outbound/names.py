"""Resolves a host name with a timeout and a limited number of threads."""

import socket
from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from queue import Empty, SimpleQueue
from threading import BoundedSemaphore, Thread

from .deadline import Deadline
from .errors import OutboundFailed

Address = IPv4Address | IPv6Address
Resolver = Callable[[str], Iterable[str]]
_LookupResult = tuple[Address, ...] | Exception

MAX_LOOKUPS = 8
"""Chosen: a web process makes at most two provider calls at once, so only a dead name server causes this many."""

_lookup_slots = BoundedSemaphore(MAX_LOOKUPS)


def system_resolve(host: str) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def look_up(host: str, resolve: Resolver, deadline: Deadline) -> tuple[Address, ...]:
    """All addresses of `host`, in the resolver's order.

    `getaddrinfo` has no timeout and cannot be interrupted, so it runs in a thread that may be left behind. Such a
    thread keeps its permit until the resolver returns, so a dead name server occupies at most `MAX_LOOKUPS` threads.
    A thread pool is ruled out: the interpreter joins its threads at exit and would hang on the stuck ones.
    """
    if not _lookup_slots.acquire(timeout=deadline.remaining_s()):
        raise OutboundFailed("dns", f"{host} could not be resolved, because too many DNS lookups are running.")
    result_queue: SimpleQueue[_LookupResult] = SimpleQueue()
    try:
        Thread(target=_resolve_into, args=(result_queue, resolve, host), name="outbound-lookup", daemon=True).start()
    except RuntimeError as error:
        _lookup_slots.release()
        raise OutboundFailed("dns", f"{host} could not be resolved, because no thread could be started.") from error
    try:
        result = result_queue.get(timeout=deadline.remaining_s())
    except (Empty, TimeoutError):
        raise OutboundFailed("timeout", f"{host} could not be resolved within {deadline.seconds:g} s.") from None
    if isinstance(result, OSError):
        raise OutboundFailed("dns", f"{host} could not be resolved ({result.strerror}).") from result
    if isinstance(result, Exception):
        raise result
    if not result:
        raise OutboundFailed("dns", f"{host} has no IP address.")
    return result


def _resolve_into(result_queue: SimpleQueue[_LookupResult], resolve: Resolver, host: str) -> None:
    try:
        result_queue.put(tuple(dict.fromkeys(ip_address(text) for text in resolve(host))))
    except Exception as error:
        # Passed to the caller's thread; here it would only be printed.
        result_queue.put(error)
    finally:
        _lookup_slots.release()

"""Resolves a host name with a timeout and a limited number of threads."""

import socket
from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from queue import Empty, SimpleQueue
from threading import BoundedSemaphore, Thread

from .deadline import Deadline
from .errors import OutboundFailed

Address = IPv4Address | IPv6Address
Resolve = Callable[[str], Iterable[str]]
_Outcome = tuple[Address, ...] | Exception

MAX_LOOKUPS = 8
"""Chosen: a web process runs two provider calls at once; this many stuck lookups mean a dead name server."""

_free_lookups = BoundedSemaphore(MAX_LOOKUPS)


def system_resolve(host: str) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def look_up(host: str, resolve: Resolve, deadline: Deadline) -> tuple[Address, ...]:
    """All addresses of `host`, in the resolver's order.

    `getaddrinfo` has no timeout and cannot be interrupted, so it runs in a thread that may be left behind. Such a
    thread keeps its permit until the resolver returns, so a dead name server occupies at most `MAX_LOOKUPS` threads.
    A thread pool is ruled out: the interpreter joins its threads at exit and would hang on the stuck ones.
    """
    if not _free_lookups.acquire(timeout=deadline.left()):
        raise OutboundFailed("dns", f"The name {host} was not resolved: too many earlier lookups are still running.")
    outcome: SimpleQueue[_Outcome] = SimpleQueue()
    try:
        Thread(target=_resolve_into, args=(outcome, resolve, host), name="outbound-lookup", daemon=True).start()
    except RuntimeError as error:
        _free_lookups.release()
        raise OutboundFailed("dns", f"The name {host} was not resolved: no thread could be started.") from error
    try:
        result = outcome.get(timeout=deadline.left())
    except (Empty, TimeoutError):
        raise OutboundFailed("timeout", f"The name {host} was not resolved within {deadline.seconds:g} s.") from None
    if isinstance(result, OSError):
        raise OutboundFailed("dns", f"The name {host} could not be resolved ({result.strerror}).") from result
    if isinstance(result, Exception):
        raise result
    if not result:
        raise OutboundFailed("dns", f"The name {host} has no address.")
    return result


def _resolve_into(outcome: SimpleQueue[_Outcome], resolve: Resolve, host: str) -> None:
    try:
        outcome.put(tuple(dict.fromkeys(ip_address(text) for text in resolve(host))))
    except Exception as error:
        # Passed to the caller's thread; here it would only be printed.
        outcome.put(error)
    finally:
        _free_lookups.release()

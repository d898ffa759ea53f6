"""Opens the one connection of a call, to an address that was judged, and counts its time and bytes."""

import socket
import ssl
from collections.abc import Sequence
from typing import Any

import httpcore2

from .addresses import forbidden_kind
from .deadline import Deadline
from .errors import OutboundFailed, OutboundRefused
from .names import Address, look_up
from .policy import Policy
from .trust import describe, ssl_context
from .urls import CheckedUrl

MAX_ATTEMPTS = 4
"""Of the addresses a name has; each attempt gets an equal share of the time, so a dead first one does not use it up."""


class Channel(httpcore2.NetworkStream):
    """A connected socket for the HTTP parser, which cannot outlast the deadline nor take in more than it is allowed.

    The parser's own timeouts count each read anew, so a byte per second would keep it waiting for ever: ignored.
    """

    def __init__(self, sock: socket.socket, deadline: Deadline, allowance: int) -> None:
        self._sock = sock
        self._deadline = deadline
        self._allowance = allowance

    def allow(self, size: int) -> None:
        """How many bytes may still come, counted as they cross the network: framing, trailers and all."""
        self._allowance = size

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._allowance <= 0:
            raise OutboundFailed("too_large", "The answer is too large.")
        self._sock.settimeout(self._deadline.left())
        data = self._sock.recv(min(max_bytes, self._allowance))
        self._allowance -= len(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        unsent = memoryview(buffer)
        while unsent:
            self._sock.settimeout(self._deadline.left())
            unsent = unsent[self._sock.send(unsent) :]

    def close(self) -> None:
        self._sock.close()

    def get_extra_info(self, info: str) -> Any:
        return None


def open_channel(url: CheckedUrl, policy: Policy, deadline: Deadline) -> Channel:
    """A channel to one of the addresses `url` has. The name is looked up once: what was judged is what is called."""
    connect = deadline.sooner(policy.connect_s)
    try:
        addresses = _judged_addresses(url, policy, connect)
        sock = _connect(addresses, url, connect)
        try:
            channel = _encrypt(sock, url.host, policy, connect) if url.scheme == "https" else sock
        except BaseException:
            sock.close()
            raise
    except TimeoutError as error:
        message = f"The connection to {url.host} was not made within {connect.seconds:g} s."
        raise OutboundFailed("timeout", message) from error
    return Channel(channel, deadline, policy.max_head_bytes)


def _judged_addresses(url: CheckedUrl, policy: Policy, deadline: Deadline) -> Sequence[Address]:
    """Chosen: one forbidden address refuses the name. Picking the others would leave the outcome to their order."""
    addresses = look_up(url.host, policy.resolve, deadline) if url.address is None else (url.address,)
    for address in addresses:
        if kind := forbidden_kind(address, policy):
            message = f"{url.host} leads to {address}, a {kind} address, where no call is sent."
            raise OutboundRefused("address", message)
    return addresses


def _connect(addresses: Sequence[Address], url: CheckedUrl, deadline: Deadline) -> socket.socket:
    failure = OSError()
    attempts = addresses[:MAX_ATTEMPTS]
    for position, address in enumerate(attempts):
        timeout_s = deadline.left() / (len(attempts) - position)
        try:
            return _connect_to(address, url.port, timeout_s)
        except OSError as error:
            failure = error
    if isinstance(failure, TimeoutError):
        raise failure
    raise OutboundFailed("connect", f"No connection to {url.host} could be made ({failure.strerror}).") from failure


def _connect_to(address: Address, port: int, timeout_s: float) -> socket.socket:
    # `socket.create_connection` would resolve again; a literal address handed to `connect` is taken as it is.
    sock = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout_s)
        sock.connect((str(address), port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        sock.close()
        raise
    return sock


def _encrypt(sock: socket.socket, host: str, policy: Policy, deadline: Deadline) -> ssl.SSLSocket:
    """The certificate is held against the name that was typed, not the address that was called."""
    # One timeout covers the whole handshake: Python counts it down over its reads and writes.
    sock.settimeout(deadline.left())
    try:
        return ssl_context(policy.ca_bundle).wrap_socket(sock, server_hostname=host)
    except ssl.SSLError as error:
        raise OutboundFailed("tls", describe(error, host)) from error
    except TimeoutError:
        raise
    except OSError as error:
        raise OutboundFailed("tls", f"{host} broke off while the encrypted connection was set up.") from error

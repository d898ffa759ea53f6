"""Opens the connection of a call to a checked address, and limits its time and bytes."""

import socket
import ssl
from collections.abc import Sequence

import httpcore2

from .addresses import forbidden_kind, is_in_private_networks
from .deadline import Deadline
from .errors import OutboundFailed, OutboundRefused
from .names import Address, look_up
from .policy import Policy
from .trust import describe_tls_error, ssl_context
from .urls import CheckedUrl

MAX_ADDRESSES = 4
"""Number of addresses that are tried per name. Each gets an equal share of the time, so a dead one cannot use it up."""


class Channel(httpcore2.NetworkStream):
    """A connected socket for the HTTP parser that enforces the deadline and a maximum number of bytes.

    The parser's timeouts are ignored, because they restart with each read: one byte per second would never time out.
    """

    def __init__(self, sock: socket.socket, deadline: Deadline, byte_limit: int) -> None:
        self._sock = sock
        self._deadline = deadline
        # How many more bytes may be read from the network, including framing and trailers.
        self.bytes_left = byte_limit

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self.bytes_left <= 0:
            raise OutboundFailed("too_large", "The response is too large.")
        self._sock.settimeout(self._deadline.remaining_s())
        data = self._sock.recv(min(max_bytes, self.bytes_left))
        self.bytes_left -= len(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        unsent = memoryview(buffer)
        while unsent:
            self._sock.settimeout(self._deadline.remaining_s())
            unsent = unsent[self._sock.send(unsent) :]

    def close(self) -> None:
        self._sock.close()


def open_channel(url: CheckedUrl, policy: Policy, deadline: Deadline) -> Channel:
    """A channel to an address of `url`. The name is looked up only once, so the checked address is the one called."""
    connect_deadline = deadline.for_step(policy.connect_s)
    try:
        addresses = _checked_addresses(url, policy, connect_deadline)
        sock = _connect(addresses, url, connect_deadline)
        try:
            channel = _start_tls(sock, url.host, policy, connect_deadline) if url.scheme == "https" else sock
        except BaseException:
            sock.close()
            raise
    except TimeoutError as error:
        message = f"The connection to {url.host} could not be established within {connect_deadline.seconds:g} s."
        raise OutboundFailed("timeout", message) from error
    return Channel(channel, deadline, policy.max_head_bytes)


def _checked_addresses(url: CheckedUrl, policy: Policy, deadline: Deadline) -> Sequence[Address]:
    """Chosen: one forbidden address refuses the name, because otherwise the order of the addresses would matter."""
    addresses = look_up(url.host, policy.resolve, deadline) if url.address is None else (url.address,)
    for address in addresses:
        if kind := forbidden_kind(address, policy):
            message = f"{url.host} resolves to {address}. Calls to {kind} addresses are not allowed."
            raise OutboundRefused("address", message)
        if url.scheme == "http" and not (policy.allow_http or is_in_private_networks(address, policy)):
            raise OutboundRefused("scheme", f"{url.host} must be called with https://.")
    return addresses


def _connect(addresses: Sequence[Address], url: CheckedUrl, deadline: Deadline) -> socket.socket:
    last_error = OSError()
    tried_addresses = addresses[:MAX_ADDRESSES]
    for position, address in enumerate(tried_addresses):
        timeout_s = deadline.remaining_s() / (len(tried_addresses) - position)
        try:
            return _connect_to(address, url.port, timeout_s)
        except OSError as error:
            last_error = error
    if isinstance(last_error, TimeoutError):
        raise last_error
    raise OutboundFailed("connect", f"The connection to {url.host} failed ({last_error.strerror}).") from last_error


def _connect_to(address: Address, port: int, timeout_s: float) -> socket.socket:
    # `socket.create_connection` would resolve the name again; `connect` uses a literal address unchanged.
    sock = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout_s)
        sock.connect((str(address), port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        sock.close()
        raise
    return sock


def _start_tls(sock: socket.socket, host: str, policy: Policy, deadline: Deadline) -> ssl.SSLSocket:
    """The certificate is verified for the name in the URL, not for the IP address."""
    # The timeout is for the whole handshake, across its reads and writes.
    sock.settimeout(deadline.remaining_s())
    try:
        return ssl_context(policy.ca_bundle).wrap_socket(sock, server_hostname=host)
    except ssl.SSLError as error:
        raise OutboundFailed("tls", describe_tls_error(error, host)) from error
    except TimeoutError:
        raise
    except OSError as error:
        raise OutboundFailed("tls", f"{host} closed the connection during the TLS handshake.") from error

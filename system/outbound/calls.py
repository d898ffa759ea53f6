"""Sends one request over one connection and reads its response; defines the order of the steps of this package."""

import re
import ssl
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from urllib.parse import urlencode

import httpcore2

from system.strict_json import InvalidJson, parse_json

from .channel import Channel, open_channel
from .deadline import Deadline
from .errors import OutboundFailed, OutboundRefused
from .policy import Policy
from .trust import describe_tls_error
from .urls import CheckedUrl, check_url

_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_HEADER_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?")


@dataclass(frozen=True)
class OutboundResponse:
    """The response of a provider, read completely and within the limits."""

    status: int
    # `repr` must not write a token response into a log.
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case; repeated headers are joined with commas."""
    body: bytes = field(repr=False)

    def json(self) -> object:
        """The body as JSON, regardless of its content type, because providers send key sets with various types."""
        try:
            return parse_json(self.body, keeps_digits=False)
        except InvalidJson as error:
            raise OutboundFailed("not_json", f"The response cannot be parsed. {error.message}") from None


def get(url: str, policy: Policy, *, headers: Mapping[str, str] | None = None) -> OutboundResponse:
    """The response to a GET with any status except 3xx, or an `OutboundError`. The URL may have a query, so check a URL
    that was entered with `check_url` first."""
    return _call("GET", url, policy, headers or {}, b"")


def post_form(
    url: str, data: Mapping[str, str], policy: Policy, *, headers: Mapping[str, str] | None = None
) -> OutboundResponse:
    """The response to a POST of form fields with any status except 3xx, or an `OutboundError`."""
    form_headers = {**(headers or {}), "content-type": "application/x-www-form-urlencoded"}
    return _call("POST", url, policy, form_headers, urlencode(data).encode("ascii"))


def post_json(url: str, body: bytes, policy: Policy, *, headers: Mapping[str, str]) -> OutboundResponse:
    """The response to a POST of JSON with any status except 3xx, or an `OutboundError`."""
    return _call("POST", url, policy, {**headers, "content-type": "application/json"}, body)


def _call(method: str, raw_url: str, policy: Policy, headers: Mapping[str, str], body: bytes) -> OutboundResponse:
    url = check_url(raw_url, policy, allow_query=True)
    request = _build_request(method, url, headers, body)
    deadline = Deadline.after(policy.total_s)
    with closing(open_channel(url, policy, deadline)) as channel:
        try:
            return _exchange(request, channel, policy)
        except TimeoutError as error:
            raise OutboundFailed("timeout", f"{url.host} did not respond within {policy.total_s:g} s.") from error
        except httpcore2.ProtocolError:
            # The text of the error can quote the response.
            raise OutboundFailed("protocol", f"{url.host} did not send a valid HTTP response.") from None
        except ssl.SSLError as error:
            # With TLS 1.3, a server that refuses the handshake says so only when the response is read.
            raise OutboundFailed("tls", describe_tls_error(error, url.host)) from error
        except OSError as error:
            raise OutboundFailed(
                "protocol", f"{url.host} closed the connection before its response was complete."
            ) from error


def _exchange(request: httpcore2.Request, channel: Channel, policy: Policy) -> OutboundResponse:
    connection = httpcore2.HTTP11Connection(origin=request.url.origin, stream=channel)
    response = connection.handle_request(request)
    headers = _join_headers(response.headers)
    _check_head(response.status, headers, policy)
    # Twice the body leaves room for any reasonable chunking, but not for a long extension on every chunk.
    channel.bytes_left = 2 * policy.max_body_bytes
    body = bytearray()
    for chunk in response.iter_stream():
        body += chunk
        if len(body) > policy.max_body_bytes:
            if policy.cuts_body:
                break
            raise _too_large_error(policy)
    return OutboundResponse(response.status, headers, bytes(body[: policy.max_body_bytes]))


def _check_head(status: int, headers: Mapping[str, str], policy: Policy) -> None:
    if 300 <= status < 400:
        message = f"The server responded with a redirect ({status}). Redirects are not followed."
        error = OutboundFailed("redirected", message)
        error.redirect_target, error.status = headers.get("location", ""), status
        raise error
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        # Nothing is decompressed, so a decompression bomb is harmless.
        raise OutboundFailed("encoded", "The server sent a compressed response. Compression is not supported.")
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > policy.max_body_bytes and not policy.cuts_body:
        raise _too_large_error(policy)


def _too_large_error(policy: Policy) -> OutboundFailed:
    return OutboundFailed("too_large", f"The response is larger than {policy.max_body_bytes // 1024} KB.")


def _build_request(method: str, url: CheckedUrl, headers: Mapping[str, str], body: bytes) -> httpcore2.Request:
    required_headers = {
        "host": url.authority,
        "user-agent": "Servicebase",
        "accept-encoding": "identity",
        "connection": "close",
        **({"content-length": str(len(body))} if method == "POST" else {}),
    }
    caller_headers = {name.lower(): value for name, value in headers.items()}
    all_headers = {"accept": "application/json", **caller_headers, **required_headers}
    for name, value in all_headers.items():
        # A provider's token must not be able to add a header. The message does not contain the value.
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise OutboundRefused("header", "A request header contains a character that is not allowed.")
    return httpcore2.Request(
        method,
        httpcore2.URL(scheme=url.scheme.encode(), host=url.host.encode(), port=url.port, target=url.target.encode()),
        headers=[(name.encode(), value.encode()) for name, value in all_headers.items()],
        content=body,
    )


def _join_headers(headers: list[tuple[bytes, bytes]]) -> Mapping[str, str]:
    joined_headers: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        joined_headers[name] = f"{joined_headers[name]}, {value}" if name in joined_headers else value
    return joined_headers

"""Outbound calls: what they send, and how they handle valid and invalid responses."""

import logging
import pickle
import socket
import struct
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from system.outbound import (
    OutboundError,
    OutboundFailed,
    OutboundRefused,
    OutboundResponse,
    Policy,
    get,
    post_form,
    post_json,
)

from .hostile import Behaviour, HostileConnection, HostileServer, responds_with, serving

KEYS = b'{"keys": []}'
OK_LINE = b"HTTP/1.1 200 OK\r\n"
CHUNKED_HEAD = OK_LINE + b"Transfer-Encoding: chunked\r\n\r\n"


def server_url(server: HostileServer, path: str = "/certs") -> str:
    return f"http://idp.example.com:{server.port}{path}"


def failure_of(behave: Behaviour, policy: Policy) -> OutboundFailed:
    with serving(behave) as server, pytest.raises(OutboundFailed) as exc_info:
        get(server_url(server), policy)
    assert server.connection_count == 1
    return exc_info.value


def test_get_sends_the_host_name_and_returns_the_response(policy: Policy) -> None:
    with serving(responds_with(KEYS, "200 OK", "X-One: a", "X-One: b")) as server:
        response = get(server_url(server, "/certs?a=b"), policy, headers={"Authorization": "Bearer t"})
    assert (response.status, response.body, response.json()) == (200, KEYS, {"keys": []})
    assert response.headers["x-one"] == "a, b"
    request_lines = server.request.decode().splitlines()
    assert request_lines[0] == "GET /certs?a=b HTTP/1.1"
    assert f"host: idp.example.com:{server.port}" in request_lines
    assert "accept-encoding: identity" in request_lines
    assert "authorization: Bearer t" in request_lines


def test_form_is_posted_url_encoded(policy: Policy) -> None:
    with serving(responds_with(b"{}")) as server:
        post_form(server_url(server), {"code": "a&b=c", "name": "é"}, policy, headers={"Content-Type": "text/plain"})
    request_head, body = server.request.split(b"\r\n\r\n")
    assert body == b"code=a%26b%3Dc&name=%C3%A9"
    assert request_head.startswith(b"POST /certs HTTP/1.1\r\n")
    assert request_head.lower().count(b"content-type:") == 1
    assert b"content-type: application/x-www-form-urlencoded" in request_head


@pytest.mark.parametrize("status", ["400 Bad Request", "401 Unauthorized", "500 Internal Server Error"])
def test_error_status_is_returned_with_its_body(policy: Policy, status: str) -> None:  # A29
    with serving(responds_with(b'{"error": "invalid_grant"}', status)) as server:
        response = post_form(server_url(server), {}, policy)
    assert (response.status, response.json()) == (int(status[:3]), {"error": "invalid_grant"})


def test_chunked_and_unframed_responses_are_read_completely(policy: Policy) -> None:
    with serving(
        lambda connection: connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
    ) as server:
        assert get(server_url(server), policy).body == b"{}"
    with serving(lambda connection: connection.send(b"HTTP/1.0 200 OK\r\n\r\n", b"{}")) as server:
        assert get(server_url(server), policy).body == b"{}"


@pytest.mark.parametrize(
    "value", ["hunter2\r\nX-Evil: 1", "hunter2\nb", "hunter2\x00", "hunter2é", " hunter2", "hunter2\t"]
)
def test_token_cannot_inject_a_header(policy: Policy, value: str) -> None:
    with serving(responds_with(KEYS)) as server, pytest.raises(OutboundRefused) as exc_info:
        get(server_url(server), policy, headers={"Authorization": value})
    assert exc_info.value.code == "header"
    assert "hunter2" not in str(exc_info.value)
    assert server.connection_count == 0


def test_caller_cannot_send_another_host(policy: Policy) -> None:
    with serving(responds_with(KEYS)) as server:
        get(server_url(server), policy, headers={"Host": "metadata.internal", "Accept-Encoding": "gzip"})
    assert b"metadata.internal" not in server.request
    assert b"gzip" not in server.request


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "304 Not Modified", "307 T", "308 P"])
def test_redirect_is_never_followed(policy: Policy, status: str) -> None:  # A26
    with serving(responds_with(KEYS)) as other_server:
        error = failure_of(responds_with(b"", status, f"Location: http://127.0.0.1:{other_server.port}/secret"), policy)
    assert error.code == "redirected"
    assert "secret" not in error.message
    assert other_server.connection_count == 0


def test_proxies_of_the_environment_are_not_used(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(responds_with(KEYS)) as proxy, serving(responds_with(KEYS)) as server:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        get(server_url(server), policy)
    assert (server.connection_count, proxy.connection_count) == (1, 0)


def chunked_body(body: bytes) -> Behaviour:
    return lambda connection: connection.send(CHUNKED_HEAD, b"%x\r\n" % len(body), body, b"\r\n0\r\n\r\n")


@pytest.mark.parametrize("respond", [responds_with, chunked_body])
def test_response_size_limit_is_inclusive(  # A28
    policy: Policy, respond: Callable[[bytes], Behaviour]
) -> None:
    with serving(respond(b"x" * 512 * 1024)) as server:
        assert len(get(server_url(server), policy).body) == 512 * 1024
    assert failure_of(respond(b"x" * (512 * 1024 + 1)), policy).code == "too_large"


def test_response_with_a_large_content_length_is_refused_immediately(policy: Policy) -> None:  # A28
    def behave(connection: HostileConnection) -> None:
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        connection.stay_silent()

    assert failure_of(behave, policy).code == "too_large"


def sends_endlessly(response_head: bytes, piece: bytes) -> Behaviour:
    """Simulates an endless response by sending 64 MB as fast as possible."""

    def behave(connection: HostileConnection) -> None:
        connection.send(response_head)
        block = piece * (65536 // len(piece))
        for _ in range(1000):
            connection.send(block)

    return behave


@pytest.mark.parametrize(
    ("behave", "code"),
    [
        pytest.param(
            sends_endlessly(CHUNKED_HEAD, b"400\r\n" + b"x" * 1024 + b"\r\n"), "too_large", id="endless chunks"
        ),
        pytest.param(sends_endlessly(OK_LINE + b"\r\n", b"x"), "too_large", id="endless body without a length"),
        pytest.param(
            sends_endlessly(CHUNKED_HEAD, b"1;" + b"e" * 1000 + b"\r\nx\r\n"),
            "too_large",
            id="endless chunk extensions",
        ),
        pytest.param(sends_endlessly(CHUNKED_HEAD + b"0\r\n", b"X-Trailer: 1\r\n"), "protocol", id="endless trailers"),
        pytest.param(sends_endlessly(OK_LINE, b"X-Header: 1\r\n"), "too_large", id="endless headers"),
        pytest.param(sends_endlessly(OK_LINE + b"X-Header: ", b"x"), "too_large", id="one endless header"),
        pytest.param(sends_endlessly(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "too_large", id="endless 100 responses"),
    ],
)
def test_endless_response_is_cut_off_at_the_limit(policy: Policy, behave: Behaviour, code: str) -> None:  # A28
    # The deadline is far away, so only the size limit can end the call.
    assert failure_of(behave, replace(policy, total_s=60)).code == code


def test_header_size_is_limited(policy: Policy) -> None:
    headers = [f"X-Padding: {'x' * 1000}"] * 30
    with serving(responds_with(KEYS, "200 OK", *headers)) as server:
        assert get(server_url(server), policy).body == KEYS
    assert failure_of(responds_with(KEYS, "200 OK", *headers, *headers), policy).code == "too_large"


@pytest.mark.parametrize(
    "encoding", ["gzip", "deflate", "br", "GZIP", "identity, gzip", "identity\r\nContent-Encoding: gzip"]
)
def test_compressed_response_is_refused(policy: Policy, encoding: str) -> None:  # A28
    assert failure_of(responds_with(b"\x1f\x8b", "200 OK", f"Content-Encoding: {encoding}"), policy).code == "encoded"


@pytest.mark.parametrize(
    "response_bytes",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="another protocol"),
        pytest.param(b"\x00\xff" * 50 + b"\r\n\r\n", id="garbage"),
        pytest.param(b"HTTP/1.1 OK\r\n\r\n", id="no status"),
        pytest.param(b"HTTP/1.1 200 OK\r\nNo colon\r\n\r\n", id="a header without a colon"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", id="two lengths"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", id="a length of 5000 digits"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}", id="shorter than its length"),
        pytest.param(CHUNKED_HEAD + b"zz\r\n", id="a bad chunk"),
        pytest.param(CHUNKED_HEAD + b"2\r\n{}\r\n", id="chunks without an end"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", id="another transfer coding"),
        pytest.param(
            b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", id="another protocol offered"
        ),
    ],
)
def test_malformed_http_is_reported(policy: Policy, response_bytes: bytes) -> None:
    error = failure_of(lambda connection: connection.send(response_bytes), policy)
    assert error.code == "protocol"
    assert error.message.endswith(".")


def test_reset_connection_is_reported(policy: Policy) -> None:
    def reset_connection(connection: HostileConnection) -> None:
        # Closing with a linger of 0 s resets the connection.
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    assert failure_of(reset_connection, policy).code == "protocol"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=200),
    st.sampled_from([b"", b"HTTP/1.1 ", OK_LINE, CHUNKED_HEAD, OK_LINE + b"Content-Length: 5\r\n\r\n"]),
)
def test_any_response_is_returned_or_raises_an_outbound_error(policy: Policy, noise: bytes, prefix: bytes) -> None:
    outcome = "returned"
    with serving(lambda connection: connection.send(prefix + noise)) as server:
        try:
            get(server_url(server), policy)
        except OutboundError as error:
            outcome = error.code
    assert outcome in {"returned", "protocol", "redirected", "encoded", "too_large"}


def test_refused_connection_is_reported(policy: Policy) -> None:
    with serving(responds_with(KEYS)) as server:
        closed_url = server_url(server)
    with pytest.raises(OutboundFailed) as exc_info:
        get(closed_url, policy)
    assert exc_info.value.code == "connect"
    assert "idp.example.com" in exc_info.value.message


def test_logged_calls_and_errors_contain_no_secret(policy: Policy, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    headers, path = {"Authorization": "Basic hunter2"}, "/token?code=hunter2"
    with serving(responds_with(b'{"access_token": "hunter2"}')) as server:
        texts = [repr(post_form(server_url(server, path), {"code": "hunter2"}, policy, headers=headers))]
    assert server.request.count(b"hunter2") == 3
    with pytest.raises(OutboundFailed) as exc_info:
        get(server_url(server, path), policy, headers=headers)
    texts += [repr(exc_info.value), *caplog.messages]
    assert "httpcore2.http11" in {record.name for record in caplog.records}
    assert "hunter2" not in "".join(texts)


def test_logged_response_has_no_headers_or_body() -> None:
    assert repr(OutboundResponse(200, {"set-cookie": "hunter2"}, b"hunter2")) == "OutboundResponse(status=200)"


def test_error_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(OutboundFailed("dns", "The name has no address.")))
    assert (type(error), error.code, str(error)) == (OutboundFailed, "dns", "The name has no address.")


@pytest.mark.parametrize("is_chunked", [True, False])
def test_long_answer_to_posted_json_can_be_cut(policy: Policy, is_chunked: bool) -> None:
    cutting_policy = replace(policy, max_body_bytes=10, cuts_body=True)
    body = b"0123456789" * 2_000

    def answer(connection: HostileConnection) -> None:
        head = CHUNKED_HEAD + b"%x\r\n" % len(body) if is_chunked else OK_LINE + b"Content-Length: 20000\r\n\r\n"
        connection.send(head + body)

    with serving(answer) as server:
        response = post_json(server_url(server), b'{"a": 1}', cutting_policy, headers={"webhook-id": "1"})
    assert (response.status, response.body) == (200, b"0123456789")
    assert b"content-type: application/json" in server.request and server.request.endswith(b'{"a": 1}')

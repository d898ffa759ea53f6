"""The gateway between the web server and Django, over real sockets."""

import re
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from config.runtime.up import DRAIN_S
from system.http.gateway import MAX_COLLECTED_BYTES, MAX_COLLECTED_REQUESTS, THREAD_COUNT
from system.http.request_body import SLOW_BODY_SLOTS
from tests.config.stack import Stack, eventually, manage

pytestmark = pytest.mark.stack

LOGIN = ("POST", "/rest/v1/auth/login")
INVALID_BODY = b'{"user_name": 1}'


@pytest.fixture(scope="module")
def running_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("gateway"), SVC_TRUSTED_PROXIES="127.0.0.1").start().wait_until_up()
    yield stack
    stack.stop()
    stack.end()


@pytest.fixture(scope="module")
def key(running_stack: Stack) -> str:
    return manage("key", "admin", "test", env=running_stack.env).stdout.strip()


def request_head(method: str, path: str, *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def login_request(length: int) -> bytes:
    return request_head(*LOGIN, "Content-Type: application/json", f"Content-Length: {length}")


def open_connection(stack: Stack) -> socket.socket:
    return socket.create_connection(("127.0.0.1", stack.port), timeout=20)


def read_to_end(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


def response_to(stack: Stack, request: bytes) -> bytes:
    with open_connection(stack) as connection:
        connection.sendall(request)
        return read_to_end(connection)


def web_thread_count(stack: Stack) -> int:
    web_server = stack.child("config.runtime.web_server")
    return max(process.num_threads() for process in web_server.children(recursive=True))


def test_forwarded_for_with_underscores_is_dropped(running_stack: Stack, key: str):
    authorization = f"Authorization: Bearer {key}"
    for header in ("X-Forwarded-For: 192.0.2.1", "X_Forwarded_For: invalid"):
        request = request_head("GET", "/api/me", authorization, header)
        assert response_to(running_stack, request).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("name", ["X_Forwarded_For", "X_Forwarded-For", "X-Forwarded_For", "x_forwarded_for"])
def test_forwarded_for_of_the_proxy_cannot_be_replaced(running_stack: Stack, key: str, name: str):
    headers = [f"Authorization: Bearer {key}", "X-Forwarded-For: invalid", f"{name}: 192.0.2.1"]
    for ordered_headers in (headers, headers[::-1]):
        assert b"The X-Forwarded-For header is malformed." in response_to(
            running_stack, request_head("GET", "/api/me", *ordered_headers)
        )


@pytest.mark.parametrize(("name", "scheme"), [("X-Forwarded-Proto", "https"), ("X_Forwarded_Proto", "http")])
def test_forwarded_protocol_counts_only_with_hyphens(running_stack: Stack, key: str, name: str, scheme: str):
    response = response_to(
        running_stack,
        request_head("GET", "/rest/v1/table/task?sysparm_limit=1", f"Authorization: Bearer {key}", f"{name}: https"),
    )

    assert set(re.findall(rb'"link":"(\w+)://', response)) == {scheme.encode()}


def test_other_header_with_underscores_is_dropped(running_stack: Stack):
    assert b"x-request-id: mine" in response_to(running_stack, request_head("GET", "/healthz", "X-Request-Id: mine"))
    assert b"x-request-id: mine" not in response_to(
        running_stack, request_head("GET", "/healthz", "X_Request_Id: mine")
    )
    # With this content type, the body could not be read.
    assert b" 200 " in response_to(running_stack, request_head("GET", "/healthz", "Content_Encoding: gzip"))


def test_repeated_authorization_is_refused_and_repeated_cookies_are_accepted(running_stack: Stack, key: str):
    authorization = f"Authorization: Bearer {key}"
    login = request_head(*LOGIN, "Content-Type: application/json", "Content-Type: text/plain", "Content-Length: 16")

    assert b" 401 " in response_to(running_stack, request_head("GET", "/api/me", authorization, authorization))
    assert b" 422 " in response_to(running_stack, login + INVALID_BODY)
    # Two cookies need two headers.
    assert response_to(running_stack, request_head("GET", "/login/?next=/", "Cookie: a=1", "Cookie: b=2")).startswith(
        b"HTTP/1.1 200 "
    )


@pytest.mark.parametrize("path", ["/healthz", "/login/", "/api/me", "/static/servicebase/logo.svg", "/nowhere"])
def test_head_returns_the_headers_of_get(running_stack: Stack, path: str):
    def header_lines(head: bytes) -> set[bytes]:
        volatile_names = (b"date", b"x-request-id", b"content-security-policy", b"set-cookie")
        return {line for line in head.split(b"\r\n") if not line.startswith(volatile_names)}

    responses = [response_to(running_stack, request_head(method, path)) for method in ("GET", "HEAD")]
    (get_headers, _, get_body), (head_headers, _, head_body) = (
        response.partition(b"\r\n\r\n") for response in responses
    )

    assert get_body and not head_body
    assert header_lines(get_headers) == header_lines(head_headers)


def test_static_file_is_complete(running_stack: Stack):
    headers, _, content = response_to(running_stack, request_head("GET", "/static/unfold/css/styles.css")).partition(
        b"\r\n\r\n"
    )

    assert f"content-length: {len(content)}".encode() in headers and len(content) > 100_000


def test_path_and_query_are_decoded(running_stack: Stack, key: str):
    authorization = f"Authorization: Bearer {key}"
    running_stack.call("POST", "/rest/v1/table/task", {"short_description": "grün"}, key=key)
    for query in ("gr%C3%BCn", "grün".encode().decode("latin-1")):
        path = f"/rest/v1/table/task?sysparm_query=short_description={query}&sysparm_limit=1"
        assert "grün".encode() in response_to(running_stack, request_head("GET", path, authorization))
    assert b" 404 " in response_to(running_stack, request_head("GET", "/n%C3%B6where"))
    assert b" 404 " in response_to(running_stack, request_head("GET", "/n%FFwhere"))
    assert b" 200 " in response_to(running_stack, request_head("GET", "/api%2Fme", authorization))


@pytest.mark.parametrize("size", [MAX_COLLECTED_BYTES, MAX_COLLECTED_BYTES + 1, 5_000_000])
def test_concurrent_bodies_of_any_size_arrive(running_stack: Stack, size: int):
    body = INVALID_BODY + b" " * (size - len(INVALID_BODY))

    def upload(_: int) -> bytes:
        with open_connection(running_stack) as connection:
            connection.sendall(login_request(size))
            time.sleep(0.05)
            connection.sendall(body)
            return connection.recv(12)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(upload, range(16))) == {b"HTTP/1.1 422"}


@pytest.mark.parametrize("length", [16, MAX_COLLECTED_BYTES + 1])
def test_service_waits_for_only_two_slow_bodies(running_stack: Stack, length: int):
    with ExitStack() as exit_stack:
        connections = [exit_stack.enter_context(open_connection(running_stack)) for _ in range(6)]
        for connection in connections:
            connection.sendall(login_request(length) + INVALID_BODY[:5])
            time.sleep(0.3)
        refusals = [connection.recv(12) for connection in connections[2:]]
        started_at = time.monotonic()
        other_responses = [response_to(running_stack, login_request(16) + INVALID_BODY)[:12] for _ in range(5)]
        elapsed_s = time.monotonic() - started_at
        for connection in connections[:2]:
            connection.sendall(INVALID_BODY[5:] + b" " * (length - 16))
        accepted_responses = [connection.recv(12) for connection in connections[:2]]

    assert SLOW_BODY_SLOTS._value == 2
    assert refusals == [b"HTTP/1.1 503"] * 4 and other_responses + accepted_responses == [b"HTTP/1.1 422"] * 7
    assert elapsed_s < 5


def test_silent_clients_use_no_threads(running_stack: Stack):
    """More slow bodies than the gateway collects at a time."""
    response_to(running_stack, login_request(16) + INVALID_BODY)
    thread_count_before = web_thread_count(running_stack)
    with ExitStack() as exit_stack:
        connections = [open_connection(running_stack) for _ in range(MAX_COLLECTED_REQUESTS + 50)]
        for connection in map(exit_stack.enter_context, connections):
            connection.sendall(request_head("POST", "/api/me", "Content-Length: 1000"))
        statuses = {connection.recv(12) for connection in connections}  # the response did not wait for the body
        thread_count_during = web_thread_count(running_stack)
        later_statuses = [response_to(running_stack, login_request(16) + INVALID_BODY)[:12] for _ in range(5)]

    assert statuses == {b"HTTP/1.1 401"} and later_statuses == [b"HTTP/1.1 422"] * 5
    assert thread_count_during <= thread_count_before + THREAD_COUNT


def test_bodies_do_not_count_as_slow_while_the_process_is_busy(running_stack: Stack, key: str):
    """All threads are busy for longer than the deadline of a body, but every body arrives before it is read."""

    def create_task(number: int) -> int:
        bodies = [{"short_description": f"{number} {row}", "description": "x" * 1000} for row in range(40)]
        return running_stack.call("POST", "/rest/v1/table/task", bodies[number % 40], key=key).status

    with ThreadPoolExecutor(60) as pool:
        statuses = list(pool.map(create_task, range(300)))

    assert set(statuses) == {201}


def test_vanished_clients_leave_no_descriptors_open(running_stack: Stack):
    web_process = running_stack.child("config.runtime.web_server").children(recursive=True)[-1]
    descriptor_count_before = web_process.num_fds()
    for length in (16, MAX_COLLECTED_BYTES + 1, 20_000_000):
        for _ in range(20):
            with open_connection(running_stack) as connection:
                connection.sendall(login_request(length) + INVALID_BODY[:5])

    assert response_to(running_stack, login_request(16) + INVALID_BODY)[:12] == b"HTTP/1.1 422"
    eventually(lambda: web_process.num_fds() <= descriptor_count_before + 2, timeout_s=20)


def test_client_that_stops_reading_does_not_block_others(running_stack: Stack, key: str):
    request = request_head("GET", "/static/unfold/css/styles.css").replace(b"close", b"keep-alive")
    with ExitStack() as exit_stack:
        for _ in range(2 * THREAD_COUNT):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", running_stack.port))
            exit_stack.enter_context(connection).sendall(request * 20)
        time.sleep(1)

        assert running_stack.call("GET", "/api/me", key=key).status == 200


def test_continue_is_sent_only_when_the_body_is_read(running_stack: Stack):
    headers = ("Content-Type: application/json", f"Content-Length: {len(INVALID_BODY)}", "Expect: 100-continue")
    with open_connection(running_stack) as connection:
        connection.sendall(request_head(*LOGIN, *headers))
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(INVALID_BODY)
        assert connection.recv(12) == b"HTTP/1.1 422"
    assert response_to(running_stack, request_head("POST", "/api/me", *headers)).startswith(b"HTTP/1.1 401 ")


def test_accepted_request_is_finished_after_sigterm(tmp_path: Path):
    """The body arrives only after SIGTERM."""
    stack = Stack(tmp_path / "data").start().wait_until_up()
    lengths = (16, MAX_COLLECTED_BYTES + 1)
    try:
        with ExitStack() as exit_stack, ThreadPoolExecutor(1) as pool:
            connections = [exit_stack.enter_context(open_connection(stack)) for _ in lengths]
            for connection, length in zip(connections, lengths, strict=True):
                connection.sendall(login_request(length) + INVALID_BODY[:5])
            time.sleep(1)
            started_at = time.monotonic()
            exit_code_future = pool.submit(stack.stop, signal.SIGTERM)
            stack.wait_for("stopping after the current requests")
            time.sleep(1)
            for connection, length in zip(connections, lengths, strict=True):
                connection.sendall(INVALID_BODY[5:] + b" " * (length - 16))
            statuses = [connection.recv(12) for connection in connections]

            assert (statuses, exit_code_future.result(60)) == ([b"HTTP/1.1 422"] * 2, 0)
        assert time.monotonic() - started_at < DRAIN_S
    finally:
        stack.end()

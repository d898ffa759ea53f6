"""The web server: responses that are sent before the body was read, and TLS certificates."""

import re
import signal
import socket
import ssl
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from config import env
from config.runtime import up
from tests.config.stack import Stack, eventually, free_port
from tests.system.outbound import certificates

pytestmark = pytest.mark.stack

MB = 1_000_000


@pytest.fixture(scope="module")
def running_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("web")).start().wait_until_up()
    yield stack
    stack.stop()
    stack.end()


def send_all_then_read(stack: Stack, size: int, headers: str = "", path: str = "/api/me") -> str:
    """Sends the whole body before reading; returns the status or the name of the error."""
    request_head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"{headers}Content-Length: {size}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", stack.port), timeout=10) as connection:
        try:
            connection.sendall(request_head.encode() + b" " * size)
            return connection.recv(12).decode()
        except OSError as error:
            return type(error).__name__


@pytest.mark.parametrize(("size", "status"), [(9 * MB, "401"), (30 * MB, "413")])
def test_response_sent_before_the_body_was_read_arrives(running_stack: Stack, size: int, status: str):
    status_counts = Counter(send_all_then_read(running_stack, size) for _ in range(10))

    assert status_counts == {f"HTTP/1.1 {status}": 10}


def max_resident_mb(stack: Stack) -> float:
    """The sum of the peaks of all web processes, because large buffers are freed immediately."""
    web_server = stack.child("config.runtime.web_server")
    status_texts = [
        Path(f"/proc/{process.pid}/status").read_text()
        for process in (web_server, *web_server.children(recursive=True))
    ]
    return sum(int(re.findall(r"VmHWM:\s+(\d+) kB", status_text)[0]) for status_text in status_texts) / 1000


def test_response_arrives_despite_a_slow_body(running_stack: Stack):
    """The body that the view did not read is drained after the response."""
    with socket.create_connection(("127.0.0.1", running_stack.port), timeout=10) as connection:
        connection.sendall(b"POST /api/me HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2000000\r\n\r\n")
        for _ in range(20):
            connection.sendall(b" " * (MB // 10))
            time.sleep(0.03)  # in total longer than the response waits for the body
        assert connection.recv(12) == b"HTTP/1.1 401"


def test_oversized_bodies_use_no_memory_and_no_threads(running_stack: Stack):  # X08
    """If a client does not read while it sends, its connection is closed instead of stalling."""
    paths = ["/api/me", "/rest/v1/table/task", "/get_relevant_documents", "/login/"] * 16
    resident_before_mb = max_resident_mb(running_stack)
    with ThreadPoolExecutor(8) as pool:
        status_counts = Counter(pool.map(lambda path: send_all_then_read(running_stack, 50 * MB, path=path), paths))

    assert sum(status_counts.values()) == 64
    assert set(status_counts) <= {"HTTP/1.1 413", "BrokenPipeError", "ConnectionResetError"}
    assert max_resident_mb(running_stack) - resident_before_mb < 100


def test_concurrent_bodies_that_arrive_after_their_headers_are_all_read(running_stack: Stack):
    """There are more bodies than threads; a server that needs a free thread to deliver a body would hang."""
    body = b'{"user_name": 1}'
    with ExitStack() as exit_stack:
        socket_address = ("127.0.0.1", running_stack.port)
        connections = [exit_stack.enter_context(socket.create_connection(socket_address, timeout=10)) for _ in range(8)]
        for connection in connections:
            connection.sendall(f"{LOGIN_HEAD}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        time.sleep(0.05)
        for connection in connections:
            connection.sendall(body)
        statuses = {connection.recv(12) for connection in connections}

    assert statuses == {b"HTTP/1.1 422"}  # the body was read


def test_client_that_disconnects_during_its_body_occupies_no_thread(running_stack: Stack):
    for _ in range(8):
        with socket.create_connection(("127.0.0.1", running_stack.port), timeout=10) as connection:
            connection.sendall((LOGIN_HEAD + "Content-Length: 1000\r\n\r\n{").encode())

    assert send_all_then_read(running_stack, 10) == "HTTP/1.1 401"


def test_response_does_not_wait_for_an_unread_body(running_stack: Stack):
    with socket.create_connection(("127.0.0.1", running_stack.port), timeout=10) as connection:
        connection.sendall(
            b"POST /api/me HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n"
        )
        assert connection.recv(12) == b"HTTP/1.1 401"


SMUGGLED_REQUEST = b"GET /smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
LOGIN_HEAD = "POST /rest/v1/auth/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


def received_bytes(stack: Stack, request: bytes) -> bytes:
    """All bytes until the server closes or resets the connection."""
    received = b""
    with socket.create_connection(("127.0.0.1", stack.port), timeout=10) as connection, suppress(ConnectionError):
        connection.sendall(request)
        with suppress(OSError):  # the connection is closed
            connection.shutdown(socket.SHUT_WR)
        while block := connection.recv(65536):
            received += block
    return received


@pytest.mark.parametrize(
    "headers",
    [
        f"Content-Length: {len(SMUGGLED_REQUEST) + 5}\r\nTransfer-Encoding: chunked\r\n",
        f"Transfer-Encoding: chunked\r\nContent-Length: {len(SMUGGLED_REQUEST) + 5}\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 0x5\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding : chunked\r\n",
        "X-Long: " + "a" * 1_000_000 + "\r\n",
        "".join(f"X-{number}: a\r\n" for number in range(5_000)),
    ],
    ids=["both", "both-reversed", "two-lengths", "list", "plus", "hex", "unknown", "not-last", "space", "long", "many"],
)
def test_ambiguous_request_length_hides_no_second_request(running_stack: Stack, headers: str):  # B70
    """A proxy that reads another length would attribute the second request to another client."""
    responses = received_bytes(
        running_stack, (LOGIN_HEAD + headers + "\r\n").encode() + b"0\r\n\r\n" + SMUGGLED_REQUEST
    )

    statuses = [line for line in responses.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
    assert len(statuses) <= 1 and b"smuggled" not in responses
    assert not statuses or statuses[0].startswith(b"HTTP/1.1 4")
    assert send_all_then_read(running_stack, 10) == "HTTP/1.1 401"


def test_sighup_loads_a_new_certificate_without_a_restart(tmp_path: Path):
    pem_file = certificates.make_certificate("old", addresses=("127.0.0.1",)).write(tmp_path, "pair")
    stack = Stack(tmp_path / "data", SVC_TLS_CERT=str(pem_file), SVC_TLS_KEY=str(pem_file))
    try:
        stack.start().wait_until_up()
        assert "curl -k -u admin:" in stack.output and f"https://127.0.0.1:{stack.port}/api/me" in stack.output
        old_certificate = served_certificate(stack)

        certificates.make_certificate("new", addresses=("127.0.0.1",)).write(tmp_path, "pair")
        stack.process.send_signal(signal.SIGHUP)

        eventually(lambda: served_certificate(stack) not in (old_certificate, ""))
        assert stack.stop() == 0
    finally:
        stack.end()


def test_health_check_ignores_proxy_variables(running_stack: Stack, monkeypatch: pytest.MonkeyPatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)

    assert up.is_responding(env.read({"SVC_PORT": str(running_stack.port)}))
    assert not up.is_responding(env.read({"SVC_PORT": str(free_port())}))


def served_certificate(stack: Stack) -> str:
    try:
        return ssl.get_server_certificate(("127.0.0.1", stack.port), timeout=5)
    except OSError:
        return ""

"""No bytes on a connection to the running product cause a server error or stop the service."""

import socket
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from random import Random

import psutil
import pytest

from tests.config.stack import Stack, eventually, manage
from tests.project.fuzz.requests import RequestGenerator
from tests.support.nightly import choose_seed, scaled_count

pytestmark = pytest.mark.stack

FEW_CONNECTIONS, MANY_CONNECTIONS, THREAD_COUNT = 400, 40_000, 8
# The client waits longer than the service waits for a body that never arrives.
LONG_WAIT_S, PIECE_PAUSE_S = 75.0, 0.05
NOISE_BYTES = [
    b"\x16\x03\x01\x02\x00\x01\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00" * 50, b"\r\n" * 10,
    b"GET /api/me\r\n", b"GET http://other.example/api/me HTTP/1.1\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", b"\xff" * 3000,
    b"GET / HTTP/9.9\r\n\r\n", b"GET /api/me HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET / HTTP/1.1\r\n a: b\r\n\r\n",
]  # fmt: skip
MESSAGE_PIECES = [
    b"\r\n",
    b"\n",
    b"\x00",
    b":",
    b" ",
    b"%",
    b"\xff",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"{",
]


@dataclass(frozen=True)
class RunningProduct:
    stack: Stack
    key: str

    def web_process_ids(self) -> set[int]:
        return {child.pid for child in self.stack.child("web_server").children()}


@dataclass(frozen=True)
class SendPlan:
    """The pieces to send, and whether the sender waits for a response or disconnects immediately."""

    pieces: list[bytes]
    pause_s: float
    waits_for_response: bool


@pytest.fixture(scope="module")
def running_product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProduct]:
    stack = Stack(tmp_path_factory.mktemp("fuzzed"), SVC_WEB_PROCESSES="2")
    try:
        stack.start().wait_until_up()
        yield RunningProduct(stack, manage("key", "demo.agent", "fuzz", env=stack.env).stdout.strip())
    finally:
        if stack.process.poll() is None:
            stack.stop()
        stack.end()


def random_plan(random: Random, key: str) -> SendPlan:
    content = random.choice(NOISE_BYTES) if random.random() < 0.03 else random_message(random, key)
    for _ in range(random.choice([0, 0, 1, 2, 8])):
        content = damage_content(random, content)
    while random.random() < 0.1:
        content += random_message(random, key)
    cuts = sorted(random.sample(range(len(content) + 1), random.choice([0, 0, 1, 3]) % (len(content) + 1)))
    pieces = [content[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    return SendPlan(pieces, PIECE_PAUSE_S * (random.random() < 0.1), random.random() < 0.9)


def random_message(random: Random, key: str) -> bytes:
    request = RequestGenerator(random, ["1"]).random_request()
    headers = {"Host": "localhost", "Authorization": f"Bearer {key}", **request.headers}
    body = request.body
    if body and random.random() < 0.3:
        headers["Transfer-Encoding"] = "chunked"
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    elif body:
        headers["Content-Length"] = str(len(body) + random.choice([0] * 8 + [-1, 1]))
    if random.random() < 0.05:
        headers["Expect"] = "100-continue"
    # Unescaped, as no HTTP client would send them.
    lines = [f"{request.method} {request.url.replace('/every', '/task')} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogatepass") + body


def damage_content(random: Random, content: bytes) -> bytes:
    position = random.randrange(len(content) + 1)
    piece = random.choice([*MESSAGE_PIECES, random.randbytes(random.randint(1, 4)), b"a" * random.choice([10, 70_000])])
    tail = content[position + random.choice([0, 0, 1, 5, 100]) :]
    return random.choice(
        [content[:position] + piece + tail, content[:position], content[:position] + content[position:] * 2]
    )


def send_and_receive(port: int, plan: SendPlan) -> bytes:
    """Everything that the service sends until it closes the connection."""
    content = b""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), LONG_WAIT_S) as connection:
        for piece in plan.pieces:
            connection.sendall(piece)
            time.sleep(plan.pause_s)
        if plan.waits_for_response:
            connection.shutdown(socket.SHUT_WR)
            while block := connection.recv(65536):
                content += block
    return content


def statuses_in(content: bytes) -> list[int]:
    """The status of each response. No body contains such a line, as bodies are JSON or HTML."""
    return [
        int(line[9:12]) for line in content.split(b"\r\n") if line.startswith(b"HTTP/1.1 ") and line[9:12].isdigit()
    ]


def send_many(product: RunningProduct, count: int) -> Counter[int]:
    first_seed, status_counts = choose_seed(), Counter[int]()

    def send_plan(seed: int) -> list[int]:
        statuses = statuses_in(send_and_receive(product.stack.port, random_plan(Random(seed), product.key)))
        # 503: too many slow bodies at a time.
        assert not [status for status in statuses if status >= 500 and status != 503], seed
        return statuses

    with ThreadPoolExecutor(THREAD_COUNT) as pool:
        for statuses in pool.map(send_plan, range(first_seed, first_seed + count)):
            status_counts.update(statuses or [0])
    return status_counts


def check_service_is_working(product: RunningProduct, pids_before: set[int]) -> None:
    eventually(lambda: product.stack.call("GET", "/api/me", key=product.key).status == 200)
    assert product.web_process_ids() == pids_before, "a web process was restarted"
    assert "Traceback" not in product.stack.output
    assert all(psutil.pid_exists(pid) for pid in pids_before)


def test_no_bytes_stop_or_block_the_service(running_product: RunningProduct):
    pids_before = running_product.web_process_ids()

    status_counts = send_many(running_product, FEW_CONNECTIONS)

    assert status_counts.keys() >= {0, 200, 400, 404}
    check_service_is_working(running_product, pids_before)


@pytest.mark.nightly
def test_no_bytes_on_many_connections_stop_or_block_the_service(running_product: RunningProduct):
    pids_before = running_product.web_process_ids()

    status_counts = send_many(running_product, scaled_count(MANY_CONNECTIONS))

    assert status_counts.keys() >= {0, 200, 201, 400, 403, 404, 405}
    check_service_is_working(running_product, pids_before)

"""The clients of a slice: each sends its next request as soon as it has the response. Their CPU is not counted."""

import itertools
import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

RECEIVE_BYTES = 1 << 20
# The part of a body that differs in each request.
COUNTER_PLACEHOLDER = b"@@@@@@@@@@"
request_numbers = itertools.count(int(time.time()))


@dataclass(frozen=True)
class LoadJob:
    """The requests that the clients send in turn."""

    port: int
    requests: Sequence[bytes]
    status: int
    client_count: int
    duration_s: float


@dataclass(frozen=True)
class LoadResult:
    request_count: int
    duration_s: float
    median_ms: float  # from sending a request to the end of its response


class Client:
    """One persistent connection."""

    def __init__(self, job: LoadJob, number: int) -> None:
        self.job = job
        # Clients start at different requests, so that they do not wait for the same record.
        start_index = number * len(job.requests) // job.client_count
        self.requests = itertools.islice(itertools.cycle(job.requests), start_index, None)
        self.socket = socket.create_connection(("127.0.0.1", job.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = b""
        self.bytes_left = -1
        self.started_at = 0.0

    def send(self) -> None:
        self.head, self.bytes_left = b"", -1
        self.started_at = time.perf_counter()
        self.socket.sendall(next(self.requests).replace(COUNTER_PLACEHOLDER, b"%010d" % next(request_numbers)))

    def receive_part(self) -> bool:
        """Receives a part of the response; returns whether the response is complete."""
        block = self.socket.recv(RECEIVE_BYTES)
        if not block:
            raise RuntimeError("the server closed a connection")
        if self.bytes_left >= 0:
            self.bytes_left -= len(block)
        else:
            self.head += block
            self._parse_head()
        return self.bytes_left == 0

    def _parse_head(self) -> None:
        head, separator, body_start = self.head.partition(b"\r\n\r\n")
        if not separator:
            return
        if int(head[9:12]) != self.job.status:
            raise RuntimeError(f"unexpected response: {self.head[:1000]!r}")
        length_header = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        self.bytes_left = int(length_header.partition(b":")[2]) - len(body_start)


def run_load(job: LoadJob) -> LoadResult:
    """Sends requests for the duration of the job, then waits for the last responses and counts them too."""
    clients = [Client(job, number) for number in range(job.client_count)]
    durations_s: list[float] = []
    active_count = len(clients)
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
        started_at = time.perf_counter()
        for client in clients:
            client.send()
        while active_count:
            for key, _ in selector.select():
                if not key.data.receive_part():
                    continue
                durations_s.append(time.perf_counter() - key.data.started_at)
                if time.perf_counter() - started_at < job.duration_s:
                    key.data.send()
                else:
                    active_count -= 1
        finished_at = time.perf_counter()
    for client in clients:
        client.socket.close()
    return LoadResult(len(durations_s), finished_at - started_at, 1000 * median(durations_s))

"""The clients of a slice, in a process whose CPU is not counted: each sends again as soon as it has its response."""

import itertools
import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

CHUNK = 1 << 20
# Stands in a body where each request must say something new.
COUNTER = b"@@@@@@@@@@"
counter = itertools.count(int(time.time()))


@dataclass(frozen=True)
class Job:
    """What the clients do: these requests, in turn."""

    port: int
    requests: Sequence[bytes]
    status: int
    clients: int
    seconds: float


@dataclass(frozen=True)
class LoadResult:
    requests: int
    seconds: float
    median_ms: float  # from a request to its answer, as its client sees it


class Client:
    """One connection that is kept."""

    def __init__(self, job: Job, number: int) -> None:
        self.job = job
        # Each begins elsewhere, so that two clients do not wait for one record.
        self.requests = itertools.islice(itertools.cycle(job.requests), number * len(job.requests) // job.clients, None)
        self.socket = socket.create_connection(("127.0.0.1", job.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = b""
        self.left = -1
        self.started = 0.0

    def send(self) -> None:
        self.head, self.left = b"", -1
        self.started = time.perf_counter()
        self.socket.sendall(next(self.requests).replace(COUNTER, b"%010d" % next(counter)))

    def has_answer(self) -> bool:
        """Take in what has come; whether it is all of the answer."""
        data = self.socket.recv(CHUNK)
        if not data:
            raise RuntimeError("the server closed a connection")
        if self.left >= 0:
            self.left -= len(data)
        else:
            self.head += data
            self._begin()
        return self.left == 0

    def _begin(self) -> None:
        head, end, rest = self.head.partition(b"\r\n\r\n")
        if not end:
            return
        if int(head[9:12]) != self.job.status:
            raise RuntimeError(f"answered: {self.head[:1000]!r}")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        self.left = int(length.partition(b":")[2]) - len(rest)


def run(job: Job) -> LoadResult:
    """Ask for as long as the job says; what is under way then is waited for and counted."""
    clients = [Client(job, number) for number in range(job.clients)]
    durations: list[float] = []
    waiting = len(clients)
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
        started = time.perf_counter()
        for client in clients:
            client.send()
        while waiting:
            for key, _ in selector.select():
                if not key.data.has_answer():
                    continue
                durations.append(time.perf_counter() - key.data.started)
                if time.perf_counter() - started < job.seconds:
                    key.data.send()
                else:
                    waiting -= 1
        finished = time.perf_counter()
    for client in clients:
        client.socket.close()
    return LoadResult(len(durations), finished - started, 1000 * median(durations))

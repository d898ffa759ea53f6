"""Request bodies have a deadline, and slow bodies do not occupy all threads."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from system.http import request_body
from system.http.request_body import BodyTooSlow, RequestBody, TooManySlowBodies
from tests.config.stack import eventually


class FakeFuture(Future):
    def add_done_callback(self, callback: Any, context: Any = None) -> None:
        super().add_done_callback(callback)


class FakeClient:
    """A client that sends these chunks, and another one when `gate` is set."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = list(chunks)
        self.gate = threading.Event()
        self.requested_chunk: FakeFuture | None = None

    def body(self, timeout_s: float, length: int = 4) -> RequestBody:
        return RequestBody(self, length, timeout_s)

    def __aiter__(self) -> "FakeClient":
        return self

    def __anext__(self) -> FakeFuture:
        chunk = self.requested_chunk = FakeFuture()
        if self.chunks:
            chunk.set_result(self.chunks.pop(0))
        else:
            threading.Thread(target=self.send_later, args=(chunk,), daemon=True).start()
        return chunk

    def send_later(self, chunk: FakeFuture) -> None:
        self.gate.wait(30)
        chunk.set_result(b"late")


@pytest.fixture
def silent_client() -> Iterator[FakeClient]:
    client = FakeClient()
    yield client
    client.gate.set()


def test_available_body_is_read_immediately():
    assert FakeClient(b"here").body(60).read() == b"here"
    assert FakeClient(b"here").body(60).read(2) == b"he"
    assert FakeClient(b"here").body(60).readline() == b"here"


def test_body_is_read_in_parts_of_any_size():
    body = FakeClient(b"one\n", b"t", b"wo", b"\nthree").body(60, length=12)

    assert (body.read(2), body.read(3), body.readline(), body.read(100), body.read()) == (
        b"on", b"e\nt", b"wo\n", b"thre", b"",
    )  # fmt: skip


def test_body_of_a_disconnected_client_ends_early():
    assert FakeClient(b"he", b"").body(60).read() == b"he"


def test_silent_client_is_dropped_at_the_deadline(silent_client: FakeClient):
    with pytest.raises(BodyTooSlow):
        silent_client.body(0.4).read()


def test_deadline_covers_the_whole_body(monkeypatch: pytest.MonkeyPatch):
    clock = [100.0]
    monkeypatch.setattr("system.http.request_body.time.monotonic", lambda: clock[0])
    client = FakeClient(b"h")
    body = client.body(10)
    body.read(1)
    clock[0] += 11

    with pytest.raises(BodyTooSlow):
        body.read(1)
    client.gate.set()


def test_slow_client_within_the_deadline_is_served(silent_client: FakeClient):
    threading.Timer(request_body.PROMPT_S * 2, silent_client.gate.set).start()

    assert silent_client.body(20).read() == b"late"


@pytest.mark.parametrize(("size", "counts_as_slow"), [(1_000, True), (8_000_000, False)])
def test_large_body_that_keeps_arriving_is_not_slow(size: int, counts_as_slow: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(request_body, "SLOW_BODY_SLOTS", threading.BoundedSemaphore(1))
    monkeypatch.setattr(request_body, "PROMPT_S", 0.1)
    request_body.SLOW_BODY_SLOTS.acquire()
    client = FakeClient(b"x" * size)
    threading.Timer(0.4, client.gate.set).start()
    body = client.body(20, length=size + 4)

    if counts_as_slow:
        with pytest.raises(TooManySlowBodies):
            body.read()
    else:
        assert len(body.read()) == size + 4


def test_only_two_slow_bodies_wait_and_fast_bodies_are_read():
    clients = [FakeClient(), FakeClient()]
    threads = [threading.Thread(target=client.body(20).read) for client in clients]
    for thread in threads:
        thread.start()
    while request_body.SLOW_BODY_SLOTS._value:  # until both wait for their bodies
        threads[0].join(0.01)

    with pytest.raises(TooManySlowBodies):
        FakeClient().body(20).read()
    assert FakeClient(b"here").body(20).read() == b"here"

    for client in clients:
        client.gate.set()
    for thread in threads:
        thread.join(10)
    assert int(request_body.SLOW_BODY_SLOTS._value) == 2


def test_callback_runs_when_the_collected_body_is_complete(silent_client: FakeClient):
    is_complete = threading.Event()
    body = silent_client.body(20)
    body.collect(is_complete.set)
    assert not is_complete.is_set()

    silent_client.gate.set()
    assert is_complete.wait(10)
    assert body.read() == b"late"


def test_unread_body_is_received_and_discarded():
    client = FakeClient(b"ab", b"cd", b"ef", b"gh")
    body = client.body(20, length=6)
    body.read(1)
    body.drain()

    assert client.chunks == [b"gh"] and body.chunks == []


def test_drained_body_is_not_kept_in_memory(silent_client: FakeClient):
    """Draining may take as long as the client needs."""
    silent_client.chunks = [b"x" * 1000]
    body = silent_client.body(20, length=1004)
    body.drain()
    silent_client.gate.set()

    eventually(lambda: body.bytes_received == 1004, timeout_s=10)
    assert body.chunks == []


def test_body_that_is_too_large_to_drain_is_not_received():
    client = FakeClient(b"ab")
    client.body(20, length=request_body.MAX_DRAIN_BYTES + 1).drain()

    assert client.requested_chunk is None

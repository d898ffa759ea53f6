"""Request bodies have a deadline, and slow ones leave threads for other requests."""

import threading
from collections.abc import Iterator

import pytest

from system.http import request_body
from system.http.request_body import BodyTooSlow, GuardedInput, TooManySlowBodies
from tests.config.stack import eventually


class Silent:
    """A client that sends nothing until its gate opens."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def read(self, size: int = -1) -> bytes:
        self.gate.wait(30)
        return b"late"

    readline = read


class Prompt:
    def read(self, size: int = -1) -> bytes:
        return b"here"[:size] if size >= 0 else b"here"

    readline = read


@pytest.fixture
def silent() -> Iterator[Silent]:
    client = Silent()
    yield client
    client.gate.set()


def test_available_body_is_read_immediately():
    assert GuardedInput(Prompt(), 60).read() == b"here"
    assert GuardedInput(Prompt(), 60).read(2) == b"he"
    assert GuardedInput(Prompt(), 60).readline() == b"here"


def test_silent_client_is_dropped_at_the_deadline(silent: Silent):
    with pytest.raises(BodyTooSlow):
        GuardedInput(silent, 0.4).read()


def test_deadline_covers_the_whole_body(monkeypatch: pytest.MonkeyPatch, silent: Silent):
    clock = [100.0]
    monkeypatch.setattr("system.http.request_body.time.monotonic", lambda: clock[0])
    body = GuardedInput(Prompt(), 10)
    body.read(1)
    clock[0] += 11
    body.stream = silent

    with pytest.raises(BodyTooSlow):
        body.read(1)


def test_slow_client_within_the_deadline_is_served(silent: Silent):
    threading.Timer(request_body.PROMPT_S * 2, silent.gate.set).start()

    assert GuardedInput(silent, 20).read() == b"late"


def test_only_two_slow_bodies_wait_and_a_fast_one_passes(silent: Silent):
    waiting = [threading.Thread(target=lambda: GuardedInput(silent, 20).read()) for _ in range(2)]
    for thread in waiting:
        thread.start()
    while request_body.SLOW_BODIES._value:  # both have begun to wait
        waiting[0].join(0.01)

    with pytest.raises(TooManySlowBodies):
        GuardedInput(silent, 20).read()
    assert GuardedInput(Prompt(), 20).read() == b"here"

    silent.gate.set()
    for thread in waiting:
        thread.join(10)
    assert int(request_body.SLOW_BODIES._value) == 2


def test_abandoned_reader_counts_until_its_client_disconnects(silent: Silent):
    free = request_body.MAX_READERS
    eventually(lambda: request_body.FREE_READERS._value == free, within_s=10)  # readers of earlier tests end
    with pytest.raises(BodyTooSlow):
        GuardedInput(silent, 0.3).read()
    assert request_body.FREE_READERS._value == free - 1

    silent.gate.set()
    for _ in range(500):
        if request_body.FREE_READERS._value == free:
            break
        threading.Event().wait(0.01)
    assert request_body.FREE_READERS._value == free

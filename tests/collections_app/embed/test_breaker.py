"""After failures in a row, nobody asks a dead provider for a while."""

import pytest

from collections_app.embed.circuit_breaker import Breaker


@pytest.fixture
def clock() -> list[float]:
    return [100.0]


@pytest.fixture
def breaker(clock: list[float]) -> Breaker:
    found = Breaker(failures=2, open_s=30.0, clock=lambda: clock[0])
    found.failed()
    found.failed()
    return found


def test_one_failure_does_not_open_the_breaker(clock: list[float]):
    found = Breaker(failures=2, open_s=30.0, clock=lambda: clock[0])
    found.failed()
    assert found.closed_in_s() == 0

    found.succeeded()
    found.failed()
    assert found.closed_in_s() == 0, "not in a row"


def test_open_breaker_returns_the_waiting_time(breaker: Breaker, clock: list[float]):
    clock[0] += 10

    assert breaker.closed_in_s() == 20


def test_half_open_breaker_allows_one_request(breaker: Breaker, clock: list[float]):
    clock[0] += 30

    assert breaker.closed_in_s() == 0
    assert breaker.closed_in_s() == 30


def test_successful_request_closes_it(breaker: Breaker, clock: list[float]):
    clock[0] += 30
    assert breaker.closed_in_s() == 0
    breaker.succeeded()

    assert [breaker.closed_in_s(), breaker.closed_in_s()] == [0, 0]


def test_failed_request_opens_it_again(breaker: Breaker, clock: list[float]):
    clock[0] += 30
    assert breaker.closed_in_s() == 0
    clock[0] += 5
    breaker.failed()

    assert breaker.closed_in_s() == 30

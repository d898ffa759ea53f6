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


def test_one_failure_keeps_nobody_away(clock: list[float]):
    found = Breaker(failures=2, open_s=30.0, clock=lambda: clock[0])
    found.failed()
    assert found.closed_in_s() == 0

    found.succeeded()
    found.failed()
    assert found.closed_in_s() == 0, "not in a row"


def test_open_it_says_how_long(breaker: Breaker, clock: list[float]):
    clock[0] += 10

    assert breaker.closed_in_s() == 20


def test_half_open_one_may_try_and_the_others_wait(breaker: Breaker, clock: list[float]):
    clock[0] += 30

    assert breaker.closed_in_s() == 0
    assert breaker.closed_in_s() == 30


def test_a_try_that_goes_well_closes_it(breaker: Breaker, clock: list[float]):
    clock[0] += 30
    assert breaker.closed_in_s() == 0
    breaker.succeeded()

    assert [breaker.closed_in_s(), breaker.closed_in_s()] == [0, 0]


def test_a_try_that_fails_opens_it_again(breaker: Breaker, clock: list[float]):
    clock[0] += 30
    assert breaker.closed_in_s() == 0
    clock[0] += 5
    breaker.failed()

    assert breaker.closed_in_s() == 30

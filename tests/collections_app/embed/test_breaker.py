"""The circuit breaker: a provider that fails is not called during a pause."""

from collections.abc import Callable

import pytest

from collections_app.embed.circuit_breaker import MAX_FAILED_SEARCHES, SEARCH_PAUSE_S, CircuitBreaker
from collections_app.embed.errors import EmbeddingUnavailable


@pytest.fixture
def clock() -> list[float]:
    return [100.0]


@pytest.fixture
def breaker(clock: list[float]) -> CircuitBreaker:
    return CircuitBreaker(clock=lambda: clock[0])


def remaining_pause_s(check_allowed: Callable[[], None]) -> int | None:
    """How long the caller must wait, or 0 if the call is allowed."""
    try:
        check_allowed()
    except EmbeddingUnavailable as error:
        return error.retry_after_s
    return 0


def fail_searches(breaker: CircuitBreaker, times: int = MAX_FAILED_SEARCHES) -> None:
    for _ in range(times):
        breaker.record_search_failure()


class TestLoads:
    def test_one_failed_load_pauses_loads_and_searches(self, breaker: CircuitBreaker):
        breaker.record_load_failure(EmbeddingUnavailable())

        assert (remaining_pause_s(breaker.check_load_allowed), remaining_pause_s(breaker.check_search_allowed)) == (
            5,
            5,
        )

    def test_later_errors_state_the_remaining_pause_and_the_first_reason(self, breaker: CircuitBreaker):
        error = EmbeddingUnavailable("Out of order.", code="out_of_order")
        breaker.record_load_failure(error)

        assert error.retry_after_s == 5
        with pytest.raises(EmbeddingUnavailable) as exc_info:
            breaker.check_load_allowed()
        assert (exc_info.value.message, exc_info.value.code) == ("Out of order.", "out_of_order")

    def test_pauses_grow_to_minutes_and_end_after_a_success(self, breaker: CircuitBreaker, clock: list[float]):  # X20
        pauses = []
        for _ in range(8):
            breaker.record_load_failure(EmbeddingUnavailable())
            pauses.append(breaker.pause_left_s)
            clock[0] += pauses[-1]
            assert remaining_pause_s(breaker.check_load_allowed) == 0
        assert pauses == [5, 10, 20, 40, 80, 120, 120, 120]

        breaker.record_load_success()
        breaker.record_load_failure(EmbeddingUnavailable(retry_after_s=60))
        assert breaker.pause_left_s == 60
        breaker.record_load_success()
        assert (remaining_pause_s(breaker.check_load_allowed), remaining_pause_s(breaker.check_search_allowed)) == (
            0,
            0,
        )

    def test_concurrent_failures_begin_one_pause(self, breaker: CircuitBreaker, clock: list[float]):
        breaker.record_load_failure(EmbeddingUnavailable())
        clock[0] += 2
        second_failure = EmbeddingUnavailable()
        breaker.record_load_failure(second_failure)

        assert (breaker.pause_left_s, second_failure.retry_after_s) == (3, 3)


class TestSearches:
    def test_consecutive_failed_searches_pause_only_searches(self, breaker: CircuitBreaker, clock: list[float]):
        fail_searches(breaker, MAX_FAILED_SEARCHES - 1)
        assert remaining_pause_s(breaker.check_search_allowed) == 0
        breaker.record_search_failure()
        clock[0] += 5

        assert remaining_pause_s(breaker.check_search_allowed) == SEARCH_PAUSE_S - 5
        assert remaining_pause_s(breaker.check_load_allowed) == 0

    def test_success_resets_the_failure_count(self, breaker: CircuitBreaker):
        fail_searches(breaker, MAX_FAILED_SEARCHES - 1)
        breaker.record_search_success()
        breaker.record_search_failure()

        assert remaining_pause_s(breaker.check_search_allowed) == 0

    def test_one_search_is_allowed_after_the_pause(self, breaker: CircuitBreaker, clock: list[float]):
        fail_searches(breaker)
        clock[0] += SEARCH_PAUSE_S

        assert [remaining_pause_s(breaker.check_search_allowed), remaining_pause_s(breaker.check_search_allowed)] == [
            0,
            SEARCH_PAUSE_S,
        ]

    def test_search_after_the_pause_ends_it_or_begins_another(self, breaker: CircuitBreaker, clock: list[float]):
        fail_searches(breaker)
        clock[0] += SEARCH_PAUSE_S
        assert remaining_pause_s(breaker.check_search_allowed) == 0
        clock[0] += 5
        breaker.record_search_failure()
        assert remaining_pause_s(breaker.check_search_allowed) == SEARCH_PAUSE_S

        clock[0] += SEARCH_PAUSE_S
        assert remaining_pause_s(breaker.check_search_allowed) == 0
        breaker.record_search_success()
        assert [remaining_pause_s(breaker.check_search_allowed), remaining_pause_s(breaker.check_search_allowed)] == [
            0,
            0,
        ]

    def test_loads_continue_while_searches_are_paused(self, breaker: CircuitBreaker):
        fail_searches(breaker)
        breaker.record_load_success()

        assert remaining_pause_s(breaker.check_load_allowed) == 0
        assert remaining_pause_s(breaker.check_search_allowed) == SEARCH_PAUSE_S

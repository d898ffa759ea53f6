"""A list contains exactly the visible records that the oracle matches one by one."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.tableapi.laws.list_requests import (
    REFUSED_RESULT,
    ListResponse,
    RequestSeries,
    expected_ids,
    failure_report,
    fuzz_settings,
    is_never_readable,
    iterate_requests,
    request_series_strategy,
    send_query,
)
from tests.tableapi.laws.storage import stored_world


def check_filter(series: RequestSeries) -> None:
    with stored_world(series.world) as world:
        for request in iterate_requests(series):
            response = send_query(world, request.caller, request.table, request.text, count="exact")
            expected = expected_ids(world, request)
            if is_never_readable(world, request.caller, request.table):
                assert response == REFUSED_RESULT or (isinstance(response, ListResponse) and not response.ids)
                assert expected in ([], REFUSED_RESULT)
                continue
            actual = response if isinstance(response, str) else (response.ids, response.total)
            assert actual == (expected if expected == REFUSED_RESULT else (expected, len(expected))), failure_report(
                world, request
            )


def test_ids_order_and_count_match_the_oracle() -> None:
    fuzz_settings(60)(given(request_series_strategy())(check_filter))()


@pytest.mark.nightly
def test_ids_order_and_count_of_many_responses_match_the_oracle() -> None:
    fuzz_settings(3_000)(given(request_series_strategy())(check_filter))()


def test_generated_worlds_are_varied() -> None:
    """These tests would prove little if most responses were empty."""
    result_kinds: list[str] = []

    def inspect_series(series: RequestSeries) -> None:
        for request in series.requests:
            ids = expected_ids(series.world, request)
            result_kinds.append(REFUSED_RESULT if ids == REFUSED_RESULT else "some" if ids else "none")

    # Hypothesis uses constants of the loaded modules as values, so the counts vary from run to run.
    fuzz_settings(40)(given(request_series_strategy())(inspect_series))()
    assert result_kinds.count("some") > 30 and result_kinds.count(REFUSED_RESULT) > 10, result_kinds

"""A query finds the visible records that match when each is evaluated alone."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.tableapi.laws.questions import (
    REFUSED_RESULT,
    ListResponse,
    QuestionSeries,
    account,
    expected_ids,
    fuzz_settings,
    is_closed,
    question_series,
    questions_in_turn,
    send_query,
)
from tests.tableapi.laws.storage import stored_world


def check_filter(interview: QuestionSeries) -> None:
    with stored_world(interview.world) as world:
        for question, _ in questions_in_turn(world, interview):
            result = send_query(world, question.caller, question.table, question.text, count="exact")
            expected = expected_ids(world, question)
            if is_closed(world, question.caller, question.table):
                assert result == REFUSED_RESULT or (isinstance(result, ListResponse) and not result.ids)
                assert expected in ([], REFUSED_RESULT)
                continue
            actual = result if isinstance(result, str) else (result.ids, result.total)
            assert actual == (expected if expected == REFUSED_RESULT else (expected, len(expected))), account(
                world, question
            )


def test_ids_order_and_count_match_the_oracle() -> None:
    fuzz_settings(60)(given(question_series())(check_filter))()


@pytest.mark.nightly
def test_ids_order_and_count_of_many_responses_match_the_oracle() -> None:
    fuzz_settings(3_000)(given(question_series())(check_filter))()


def test_generated_worlds_are_varied() -> None:
    """A law about empty answers would be an empty law."""
    kinds: list[str] = []

    def inspect_series(interview: QuestionSeries) -> None:
        for question in interview.questions:
            result = expected_ids(interview.world, question)
            kinds.append(REFUSED_RESULT if result == REFUSED_RESULT else "some" if result else "none")

    # Generated values depend on constants of the loaded modules, so the counts vary from run to run.
    fuzz_settings(40)(given(question_series())(inspect_series))()
    assert kinds.count("some") > 30 and kinds.count(REFUSED_RESULT) > 10, kinds

"""A query finds the visible records that match when each is evaluated alone."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.tableapi.laws.questions import (
    REFUSED,
    Answer,
    Interview,
    account,
    ask,
    chance,
    expected,
    in_turn,
    interviews,
    is_closed,
)
from tests.tableapi.laws.storage import stored_world


def filter_is_post_filter(interview: Interview) -> None:
    with stored_world(interview.world) as world:
        for question, _ in in_turn(world, interview):
            result = ask(world, question.caller, question.table, question.text, count="exact")
            wanted = expected(world, question)
            if is_closed(world, question.caller, question.table):
                assert result == REFUSED or (isinstance(result, Answer) and not result.ids)
                assert wanted in ([], REFUSED)
                continue
            actual = result if isinstance(result, str) else (result.ids, result.total)
            assert actual == (wanted if wanted == REFUSED else (wanted, len(wanted))), account(world, question)


def test_ids_order_and_count_match_the_oracle() -> None:
    chance(60)(given(interviews())(filter_is_post_filter))()


@pytest.mark.nightly
def test_ids_order_and_count_of_many_responses_match_the_oracle() -> None:
    chance(3_000)(given(interviews())(filter_is_post_filter))()


def test_generated_worlds_are_varied() -> None:
    """A law about empty answers would be an empty law."""
    kinds: list[str] = []

    def look(interview: Interview) -> None:
        for question in interview.questions:
            result = expected(interview.world, question)
            kinds.append(REFUSED if result == REFUSED else "some" if result else "none")

    # Generated values depend on constants of the loaded modules, so the counts vary from run to run.
    chance(40)(given(interviews())(look))()
    assert kinds.count("some") > 30 and kinds.count(REFUSED) > 10, kinds

"""Every operator on every type that it supports: its results, and that its negation finds exactly the rest."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system.encoded_query import Condition, Group, Query, Term
from tests.tableapi.laws.questions import ListResponse, Question, account, expected_ids, fuzz_settings, send_query
from tests.tableapi.laws.storage import store_groups, stored_world
from tests.tableapi.oracle import Caller
from tests.tableapi.oracle.alphabets import GROUP_IDS, ROLE_IDS, USER_IDS
from tests.tableapi.oracle.queries import OPERATOR_TYPE_PAIRS, condition_for_pair_strategy
from tests.tableapi.oracle.worlds import full_world

AGENT = Caller(USER_IDS[0], frozenset({"agent"}), (GROUP_IDS[0],), (ROLE_IDS["agent"],))
FULL_WORLD = full_world()
ALPHA = FULL_WORLD.catalogue.tables["alpha"]
ALPHA_IDS = sorted(row["sys_id"] for row in FULL_WORLD.records(ALPHA))


def question_of(condition: Condition) -> Question:
    return Question(AGENT, "alpha", Query((Group((Term((condition,)),)),)))


def for_every_pair(draws: int, examples: int) -> None:
    """All pairs on one stage; `examples` rounds with `draws` conditions of each pair."""
    conditions = st.tuples(
        *(
            st.lists(condition_for_pair_strategy(FULL_WORLD, ALPHA, pair), min_size=draws, max_size=draws)
            for pair in OPERATOR_TYPE_PAIRS
        )
    )
    with stored_world(FULL_WORLD) as world:
        store_groups(AGENT)

        def check_law(drawn: Any) -> None:
            for condition in (drawn_condition for result in drawn for drawn_condition in result):
                question = question_of(condition)
                result = send_query(world, AGENT, "alpha", question.text)
                assert isinstance(result, ListResponse), account(world, question)
                assert result.ids == expected_ids(world, question), account(world, question)
                if negation := condition.row.complement:
                    complement = send_query(
                        world, AGENT, "alpha", question_of(Condition(condition.path, negation, condition.value)).text
                    )
                    assert isinstance(complement, ListResponse), account(world, question)
                    assert sorted(result.ids + complement.ids) == ALPHA_IDS, account(world, question)

        fuzz_settings(examples)(given(conditions)(check_law))()


def test_operator_and_negation_are_complementary() -> None:
    assert len(OPERATOR_TYPE_PAIRS) > 200
    for_every_pair(draws=1, examples=4)


@pytest.mark.nightly
def test_operator_and_negation_are_complementary_for_many_values() -> None:
    for_every_pair(draws=1, examples=300)

"""Every operator on every type that it supports: its results, and that its negation finds exactly the rest."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system.encoded_query import Condition, Group, Query, Term
from tests.tableapi.laws.questions import Answer, Question, account, ask, chance, expected
from tests.tableapi.laws.storage import store_groups, stored_world
from tests.tableapi.oracle import Caller
from tests.tableapi.oracle.alphabets import GROUP_IDS, ROLE_IDS, USER_IDS
from tests.tableapi.oracle.queries import PAIRS, conditions_of
from tests.tableapi.oracle.worlds import everything

AGENT = Caller(USER_IDS[0], frozenset({"agent"}), (GROUP_IDS[0],), (ROLE_IDS["agent"],))
EVERYTHING = everything()
ALPHA = EVERYTHING.catalogue.tables["alpha"]
ROWS = sorted(row["sys_id"] for row in EVERYTHING.records(ALPHA))


def asked(condition: Condition) -> Question:
    return Question(AGENT, "alpha", Query((Group((Term((condition,)),)),)))


def each_pair(draws: int, examples: int) -> None:
    """All pairs on one stage; `examples` rounds with `draws` conditions of each pair."""
    conditions = st.tuples(
        *(st.lists(conditions_of(EVERYTHING, ALPHA, pair), min_size=draws, max_size=draws) for pair in PAIRS)
    )
    with stored_world(EVERYTHING) as world:
        store_groups(AGENT)

        def law(drawn: Any) -> None:
            for condition in (drawn_condition for result in drawn for drawn_condition in result):
                question = asked(condition)
                result = ask(world, AGENT, "alpha", question.text)
                assert isinstance(result, Answer), account(world, question)
                assert result.ids == expected(world, question), account(world, question)
                if negation := condition.row.complement:
                    rest = ask(world, AGENT, "alpha", asked(Condition(condition.path, negation, condition.value)).text)
                    assert isinstance(rest, Answer), account(world, question)
                    assert sorted(result.ids + rest.ids) == ROWS, account(world, question)

        chance(examples)(given(conditions)(law))()


def test_operator_and_negation_are_complementary() -> None:
    assert len(PAIRS) > 200
    each_pair(draws=1, examples=4)


@pytest.mark.nightly
def test_operator_and_negation_are_complementary_for_many_values() -> None:
    each_pair(draws=1, examples=300)

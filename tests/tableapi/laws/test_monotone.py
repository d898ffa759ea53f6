"""One more rule on a level that already decides takes nothing away; one rule less adds nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from system.encoded_query import Query
from tableapi.catalogue.definitions import READ, Rule
from tests.tableapi.laws.questions import Answer, Interview, Question, account, ask, chance
from tests.tableapi.laws.storage import in_force, rolled_back, set_up, store_groups
from tests.tableapi.oracle import World
from tests.tableapi.oracle.worlds import callers, rules, worlds

Seen = dict[tuple[str, str], dict[str, Any]]


@st.composite
def more_rules(draw: DrawFn) -> tuple[Interview, Rule]:
    """A world with a rule of reading, and another rule of the same level."""
    world = draw(worlds().filter(lambda found: any(rule.operation == READ for rule in found.catalogue.rules)))
    beside = draw(st.sampled_from([rule for rule in world.catalogue.rules if rule.operation == READ]))
    added = replace(draw(rules(world, READ, beside.table, beside.column)), id="added")
    caller = draw(callers())
    return Interview(world, [Question(caller, next(iter(world.catalogue.tables)), Query())]), added


def everything_seen(world: World, question: Question) -> Seen:
    """(table, id) → what is shown and not empty."""
    result: Seen = {}
    for table in world.catalogue.tables:
        response = ask(world, question.caller, table, exclude_reference_link=1)
        assert isinstance(response, Answer)
        for sys_id, body in zip(response.ids, response.bodies, strict=True):
            result[table, sys_id] = {name: value for name, value in body.items() if value is not None}
    return result


def a_rule_more_takes_nothing_away(drawn: tuple[Interview, Rule]) -> None:
    interview, added = drawn
    (question,) = interview.questions
    before = interview.world.catalogue
    with rolled_back():
        set_up(interview.world)
        store_groups(question.caller)
        with in_force(before) as catalogue:
            fewer = everything_seen(World(catalogue, interview.world.rows), question)
        with in_force(replace(before, rules=(*before.rules, added))) as catalogue:
            more = everything_seen(World(catalogue, interview.world.rows), question)
    for key, values in fewer.items():
        assert key in more and all(more[key].get(name) == value for name, value in values.items()), (
            f"{added}\n{account(interview.world, question)}"
        )


def test_more_rules_never_mean_less_access() -> None:
    chance(40)(given(more_rules())(a_rule_more_takes_nothing_away))()


@pytest.mark.nightly
def test_none_of_many_rules_reduces_access() -> None:
    chance(2_000)(given(more_rules())(a_rule_more_takes_nothing_away))()

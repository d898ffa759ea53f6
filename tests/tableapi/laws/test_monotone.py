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
from tests.tableapi.laws.questions import ListResponse, Question, QuestionSeries, account, fuzz_settings, send_query
from tests.tableapi.laws.storage import active_catalogue, rolled_back, setup_statements, store_groups
from tests.tableapi.oracle import World
from tests.tableapi.oracle.worlds import caller_strategy, rule_strategy, world_strategy

SeenFields = dict[tuple[str, str], dict[str, Any]]


@st.composite
def more_rules(draw: DrawFn) -> tuple[QuestionSeries, Rule]:
    """A world with a rule of reading, and another rule of the same level."""
    world = draw(
        world_strategy().filter(lambda drawn_world: any(rule.operation == READ for rule in drawn_world.catalogue.rules))
    )
    existing_rule = draw(st.sampled_from([rule for rule in world.catalogue.rules if rule.operation == READ]))
    added = replace(draw(rule_strategy(world, READ, existing_rule.table, existing_rule.column)), id="added")
    caller = draw(caller_strategy())
    return QuestionSeries(world, [Question(caller, next(iter(world.catalogue.tables)), Query())]), added


def seen_fields(world: World, question: Question) -> SeenFields:
    """(table, id) → what is shown and not empty."""
    result: SeenFields = {}
    for table in world.catalogue.tables:
        response = send_query(world, question.caller, table, exclude_reference_link=1)
        assert isinstance(response, ListResponse)
        for sys_id, body in zip(response.ids, response.bodies, strict=True):
            result[table, sys_id] = {name: value for name, value in body.items() if value is not None}
    return result


def check_monotone(drawn: tuple[QuestionSeries, Rule]) -> None:
    interview, added = drawn
    (question,) = interview.questions
    catalogue_before = interview.world.catalogue
    with rolled_back():
        setup_statements(interview.world)
        store_groups(question.caller)
        with active_catalogue(catalogue_before) as catalogue:
            fields_with_fewer_rules = seen_fields(World(catalogue, interview.world.rows), question)
        with active_catalogue(replace(catalogue_before, rules=(*catalogue_before.rules, added))) as catalogue:
            fields_with_more_rules = seen_fields(World(catalogue, interview.world.rows), question)
    for key, values in fields_with_fewer_rules.items():
        assert key in fields_with_more_rules and all(
            fields_with_more_rules[key].get(name) == value for name, value in values.items()
        ), f"{added}\n{account(interview.world, question)}"


def test_more_rules_never_mean_less_access() -> None:
    fuzz_settings(40)(given(more_rules())(check_monotone))()


@pytest.mark.nightly
def test_none_of_many_rules_reduces_access() -> None:
    fuzz_settings(2_000)(given(more_rules())(check_monotone))()

"""Adding a rule to a level that already has rules never reduces access."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from system.encoded_query import Query
from tableapi.catalogue.definitions import READ, Rule
from tests.tableapi.laws.list_requests import (
    ListRequest,
    ListResponse,
    RequestSeries,
    failure_report,
    fuzz_settings,
    send_query,
)
from tests.tableapi.laws.storage import active_catalogue, rollback_afterwards, store_groups, store_tables_and_records
from tests.tableapi.oracle import World
from tests.tableapi.oracle.worlds import caller_strategy, rule_strategy, world_strategy

VisibleFields = dict[tuple[str, str], dict[str, Any]]


@st.composite
def added_rule_strategy(draw: DrawFn) -> tuple[RequestSeries, Rule]:
    """A world with a read rule, and another rule of the same level."""
    world = draw(
        world_strategy().filter(lambda drawn_world: any(rule.operation == READ for rule in drawn_world.catalogue.rules))
    )
    existing_rule = draw(st.sampled_from([rule for rule in world.catalogue.rules if rule.operation == READ]))
    added_rule = replace(draw(rule_strategy(world, READ, existing_rule.table, existing_rule.column)), id="added")
    caller = draw(caller_strategy())
    return RequestSeries(world, [ListRequest(caller, next(iter(world.catalogue.tables)), Query())]), added_rule


def visible_fields(world: World, request: ListRequest) -> VisibleFields:
    """The fields that are not empty in the responses, by table and id."""
    fields: VisibleFields = {}
    for table in world.catalogue.tables:
        response = send_query(world, request.caller, table, exclude_reference_link=1)
        assert isinstance(response, ListResponse)
        for sys_id, body in zip(response.ids, response.bodies, strict=True):
            fields[table, sys_id] = {name: value for name, value in body.items() if value is not None}
    return fields


def check_monotone(example: tuple[RequestSeries, Rule]) -> None:
    series, added_rule = example
    (request,) = series.requests
    catalogue_before = series.world.catalogue
    with rollback_afterwards():
        store_tables_and_records(series.world)
        store_groups(request.caller)
        with active_catalogue(catalogue_before) as catalogue:
            fields_with_fewer_rules = visible_fields(World(catalogue, series.world.rows), request)
        with active_catalogue(replace(catalogue_before, rules=(*catalogue_before.rules, added_rule))) as catalogue:
            fields_with_more_rules = visible_fields(World(catalogue, series.world.rows), request)
    for key, values in fields_with_fewer_rules.items():
        assert key in fields_with_more_rules and all(
            fields_with_more_rules[key].get(name) == value for name, value in values.items()
        ), f"{added_rule}\n{failure_report(series.world, request)}"


def test_added_rule_never_reduces_access() -> None:
    fuzz_settings(40)(given(added_rule_strategy())(check_monotone))()


@pytest.mark.nightly
def test_none_of_many_added_rules_reduces_access() -> None:
    fuzz_settings(2_000)(given(added_rule_strategy())(check_monotone))()

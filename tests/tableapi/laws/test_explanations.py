"""Explanations of what another user sees agree with the Table API and with the oracle, and name the deciding rules."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tableapi.access.caller_view import view_for
from tableapi.access.decision_trace import Reason
from tableapi.catalogue.definitions import DELETE, READ, WRITE, Catalogue, Column, Rule, Table
from tableapi.preview.user_view import PreviewRecord, UserView
from tableapi.query.expressions import ALWAYS
from tableapi.read import context
from tests.tableapi.laws.list_requests import LINK_PREFIX, ListResponse, fuzz_settings, send_query
from tests.tableapi.laws.storage import store_groups, stored_world
from tests.tableapi.oracle import Caller, World, is_permitted
from tests.tableapi.oracle.alphabets import ROLE_IDS, USER_IDS, make_moment
from tests.tableapi.oracle.column_types import NOW
from tests.tableapi.oracle.worlds import caller_strategy, world_strategy
from workspace.forms.parameters import parameters

VIEWER = Caller(USER_IDS[0], frozenset({"admin"}), (), (ROLE_IDS["admin"],))


def user_view(catalogue: Catalogue, viewer: Caller, user: Caller, table: str) -> UserView:
    def context_of(caller: Caller) -> context.ReadContext:
        stored = context.Caller(caller.id, caller.role_names, LINK_PREFIX, NOW)
        return context.ReadContext(stored, view_for(catalogue, caller.role_names))

    opened = catalogue.tables[table]
    readable = [column for column in opened.columns.values() if column.is_readable]
    return UserView(context_of(viewer), context_of(user), opened, readable)


def check_explanations(world: World, user: Caller) -> None:
    with ExitStack() as stack:
        stack.enter_context(patch.object(context, "now", lambda: NOW))
        stored = stack.enter_context(stored_world(world))
        store_groups(user)
        for name, table in stored.catalogue.tables.items():
            view = user_view(stored.catalogue, VIEWER, user, name)
            response = send_query(stored, user, name, display_value="all", exclude_reference_link=1)
            assert isinstance(response, ListResponse)
            records = view.read_page(parameters(sysparm_limit=1000))
            ids = [record.sys_id for record in records]
            assert len(ids) + view.hidden_count == len(response.ids)
            assert ids == response.ids or view.hides_records
            bodies = dict(zip(response.ids, response.bodies, strict=True))
            for record in records:
                check_cells(record, bodies[record.sys_id])
            for row in (row for member in table.family for row in stored.rows[member].values()):
                if view.viewer.view.record_decision(table) == ALWAYS:
                    check_reasons(stored, user, table, row, view.read_record(row["sys_id"]))


def check_cells(record: PreviewRecord, body: dict[str, Any]) -> None:
    for cell in record.cells:
        field = body.get(cell.column.name)
        if cell.is_hidden:
            continue
        if not cell.reason.is_allowed:
            assert field in (None, {"value": None, "display_value": None}) and cell.field is None
        elif cell.column.column_type.has_target:
            assert values_of(cell.field) == values_of(field)
        else:
            assert normal(cell.field) == normal(field)


def values_of(field: Any) -> Any:
    return [item["value"] for item in field] if isinstance(field, list) else field and field["value"]


def normal(value: Any) -> Any:
    """The API's answer was parsed with decimals."""
    if isinstance(value, dict):
        return {key: normal(item) for key, item in value.items()}
    return float(value) if isinstance(value, Decimal) else value


def check_reasons(world: World, user: Caller, table: Table, row: dict[str, Any], record: PreviewRecord) -> None:
    for operation in (READ, WRITE, DELETE):
        check_reason(world, user, operation, table, row, None, record.reasons[operation])
    for cell in record.cells:
        check_reason(world, user, READ, table, row, cell.column, cell.reason)
        if cell.write_reason:
            check_reason(world, user, WRITE, table, row, cell.column, cell.write_reason)


def check_reason(
    world: World, user: Caller, operation: str, table: Table, row: dict[str, Any], column: Column | None, reason: Reason
) -> None:
    def permitted(rules: Sequence[Rule]) -> bool:
        changed = World(replace(world.catalogue, rules=tuple(rules)), world.rows)
        names = [None, column.name] if column else [None]
        moment = make_moment(user.id)
        return all(is_permitted(changed, user, operation, table.name, row, moment, name) for name in names)

    rules = world.catalogue.rules
    if reason.is_allowed is None:
        return
    assert reason.is_allowed == permitted(rules), (operation, column and column.name, reason)
    if not reason.rules:
        return
    level = (reason.rules[0].table, reason.rules[0].column)
    others = [rule for rule in rules if rule.operation != operation or (rule.table, rule.column) != level]
    if reason.is_allowed:
        # The named rules suffice.
        assert permitted([*others, *reason.rules])
    else:
        # Any rule of this level that applied to everyone would change the decision.
        opened = replace(reason.rules[0], roles=frozenset(), condition="", is_broken=False)
        record_rule = Rule("all", operation, table.name, "", frozenset())
        allowed = [rule for rule in others if rule.operation != operation or rule.column]
        assert permitted([*allowed, opened] if column is None else [*allowed, record_rule, opened])


def test_explanations_agree_with_the_table_api() -> None:
    fuzz_settings(60)(given(st.tuples(world_strategy(), caller_strategy()))(lambda drawn: check_explanations(*drawn)))()


@pytest.mark.nightly
def test_many_explanations_agree_with_the_table_api() -> None:
    fuzz_settings(2_000)(
        given(st.tuples(world_strategy(), caller_strategy()))(lambda drawn: check_explanations(*drawn))
    )()

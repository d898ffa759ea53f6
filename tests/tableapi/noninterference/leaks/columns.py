"""What a read may show of columns."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from django.db import DataError, connection, transaction

from system.errors import BadRequest
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import READ, Table
from tableapi.query import path_resolver, read_plan
from tableapi.query.expressions import PathStep, ResolvedPath
from tableapi.query.path_resolver import RuleScope
from tableapi.read import pipeline
from tableapi.sql import output_fields, predicates, select
from tests.tableapi.noninterference.leaks.switch import instead, leak, unguarded, with_open_eyes


@leak("B01", "B04")
def a_filter_takes_every_column(stack: ExitStack) -> None:
    instead(stack, read_plan, "expression", with_open_eyes)


@leak("B01")
def a_filter_looks_past_the_guard_of_a_column(stack: ExitStack) -> None:
    def condition(right: Any, self: Any, found: Any) -> list[str]:
        if not found:
            return []
        return [predicates.expression(self.text, found, self.anchor, lambda leaf: raw(self, leaf))]

    def raw(scope: Any, leaf: ResolvedPath) -> str:
        return str(scope.reach(leaf.hops).column(leaf.column))

    instead(stack, select.FromClause, "condition", condition)


@leak("B02")
def sorting_takes_every_column(stack: ExitStack) -> None:
    instead(stack, read_plan, "_order", with_open_eyes)


@leak("B02")
def sorting_looks_past_the_guard_of_a_column(stack: ExitStack) -> None:
    instead(
        stack,
        select,
        "_sort_key",
        lambda right, scope, sort: right(scope, replace(sort, leaf=unguarded(sort.leaf))),
    )


@leak("B03")
def without_a_sort_the_name_decides_the_order(stack: ExitStack) -> None:
    def order(right: Any, eyes: Any, table: Table, query: Any) -> Any:
        return right(eyes, table, query) or (read_plan.Sort(ResolvedPath((), table.columns["name"]), False),)

    instead(stack, read_plan, "_order", order)


@leak("B07")
def answers_show_every_column(stack: ExitStack) -> None:
    instead(stack, read_plan, "_output", with_open_eyes)


@leak("B07")
def answers_look_past_the_guard_of_a_column(stack: ExitStack) -> None:
    instead(stack, output_fields, "field", lambda right, text, style, output, anchor: right(
        text, style, replace(output, leaf=unguarded(output.leaf)), anchor))  # fmt: skip


@leak("B09")
def a_view_shows_every_column(stack: ExitStack) -> None:
    instead(stack, read_plan, "_outputs", lambda right, eyes, table, fields, view: right(
        RuleScope(eyes.catalogue) if view is not None and not fields else eyes, table, fields, view))  # fmt: skip


@leak("B16")
def words_are_searched_in_every_column(stack: ExitStack) -> None:
    instead(stack, path_resolver, "_searchable", with_open_eyes)


@leak("B15")
def the_other_column_of_a_comparison_is_not_guarded(stack: ExitStack) -> None:
    instead(stack, path_resolver, "_other", with_open_eyes)


@leak("B10")
def a_record_is_called_by_a_name_that_is_hidden(stack: ExitStack) -> None:
    def display_leaf(right: Any, scope: Any, column: Any) -> Any:
        path = right(RuleScope(scope.catalogue), column)
        return path and replace(path, hops=right_hops(scope, path))

    instead(stack, read_plan, "display_leaf", display_leaf)


def right_hops(eyes: Any, found: ResolvedPath) -> tuple[PathStep, ...]:
    return tuple(replace(hop, records=eyes.records(hop.target)) for hop in found.hops)


@leak("B20")
def the_tag_is_made_of_every_column(stack: ExitStack) -> None:
    def record(right: Any, request: Any, table: Table, sys_id: str, shown: Any) -> Any:
        found = right(request, table, sys_id, shown)
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT t::text FROM records."{table.name}" t WHERE sys_id = %s', [sys_id])
            text = cursor.fetchone()[0]
        return replace(found, version=int(hashlib.sha256(text.encode()).hexdigest()[:6], 16))

    instead(stack, pipeline, "read_record", record)


@leak("B18")
def a_hidden_value_is_read_as_a_number(stack: ExitStack) -> None:
    def records(right: Any, request: Any, table: Table, asked: Any) -> Any:
        read = f"SELECT max(CASE WHEN name = 'b' THEN name::integer END) FROM records.\"{table.lineage[-1]}\""
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(read)
        except DataError:
            raise BadRequest("This is no number.", code="invalid_value") from None
        return right(request, table, asked)

    instead(stack, pipeline, "read_records", records)


@leak("B28")
def a_secret_is_read_like_any_text(stack: ExitStack) -> None:
    def column(right: Any, self: CallerView, table: Table, name: str) -> Any:
        stored = table.columns.get(name)
        if stored is not None and not stored.is_readable:
            return stored, self.rights.column(READ, table, stored)
        return right(self, table, name)

    instead(stack, CallerView, "column", column)

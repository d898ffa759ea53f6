"""Leaks of columns in reads."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from django.db import DataError, connection, transaction

from system.errors import BadRequest
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import READ, Table
from tableapi.database import catalogue_loader
from tableapi.query import path_resolver, read_plan
from tableapi.query.expressions import PathStep, ResolvedPath
from tableapi.query.path_resolver import RuleScope
from tableapi.read import pipeline
from tableapi.sql import output_fields, predicates, select
from tests.tableapi.noninterference.leaks.switch import instead, leak, unguarded, with_open_eyes


@leak("B01", "B04")
def a_filter_accepts_every_column(stack: ExitStack) -> None:
    instead(stack, read_plan, "resolve_query", with_open_eyes)


@leak("B01")
def a_filter_ignores_the_guard_of_a_column(stack: ExitStack) -> None:
    def condition(right: Any, self: Any, found: Any) -> list[str]:
        if not found:
            return []
        return [predicates.expression_sql(self.builder, found, self.alias, lambda leaf: raw(self, leaf))]

    def raw(scope: Any, leaf: ResolvedPath) -> str:
        return str(scope.alias_at(leaf.steps).column(leaf.column))

    instead(stack, select.FromClause, "condition", condition)


@leak("B02")
def sorting_accepts_every_column(stack: ExitStack) -> None:
    instead(stack, read_plan, "_order", with_open_eyes)


@leak("B02")
def sorting_ignores_the_guard_of_a_column(stack: ExitStack) -> None:
    instead(
        stack,
        select,
        "_sort_key",
        lambda right, scope, sort: right(scope, replace(sort, path=unguarded(sort.path))),
    )


@leak("B03")
def without_a_sort_the_name_decides_the_order(stack: ExitStack) -> None:
    def order(right: Any, eyes: Any, table: Table, query: Any) -> Any:
        return right(eyes, table, query) or (read_plan.SortKey(ResolvedPath((), table.columns["name"]), False),)

    instead(stack, read_plan, "_order", order)


@leak("B07")
def responses_show_every_column(stack: ExitStack) -> None:
    instead(stack, read_plan, "_output_field", with_open_eyes)


@leak("B07")
def responses_ignore_the_guard_of_a_column(stack: ExitStack) -> None:
    instead(stack, output_fields, "field_sql", lambda right, text, style, output, anchor: right(
        text, style, replace(output, path=unguarded(output.path)), anchor))  # fmt: skip


@leak("B09")
def a_view_shows_every_column(stack: ExitStack) -> None:
    instead(stack, read_plan, "_output_fields", lambda right, eyes, table, fields, view: right(
        RuleScope(eyes.catalogue) if view is not None and not fields else eyes, table, fields, view))  # fmt: skip


@leak("B16")
def words_are_searched_in_every_column(stack: ExitStack) -> None:
    instead(stack, path_resolver, "_searched_paths", with_open_eyes)


@leak("B15")
def the_other_column_of_a_comparison_is_not_guarded(stack: ExitStack) -> None:
    instead(stack, path_resolver, "_resolve_other_path", with_open_eyes)


@leak("B10")
def a_record_can_be_named_by_a_hidden_name(stack: ExitStack) -> None:
    def display_path(right: Any, scope: Any, column: Any) -> Any:
        path = right(RuleScope(scope.catalogue), column)
        return path and replace(path, steps=right_hops(scope, path))

    instead(stack, read_plan, "display_path", display_path)


def right_hops(eyes: Any, found: ResolvedPath) -> tuple[PathStep, ...]:
    return tuple(replace(hop, records=eyes.records(hop.target)) for hop in found.steps)


@leak("B20")
def the_etag_covers_every_column(stack: ExitStack) -> None:
    def record(right: Any, caller: Any, table: str, sys_id: str, output: Any) -> Any:
        result = right(caller, table, sys_id, output)
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT t::text FROM records."{table}" t WHERE sys_id = %s', [sys_id])
            text = cursor.fetchone()[0]
        return replace(result, version=int(hashlib.sha256(text.encode()).hexdigest()[:6], 16))

    instead(stack, pipeline, "_read_record", record)


@leak("B18")
def a_hidden_value_is_read_as_a_number(stack: ExitStack) -> None:
    def records(right: Any, caller: Any, table: str, request: Any) -> Any:
        root = catalogue_loader.cached_catalogue().tables[table].lineage[-1]
        read = f"SELECT max(CASE WHEN name = 'b' THEN name::integer END) FROM records.\"{root}\""
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(read)
        except DataError:
            raise BadRequest("This is no number.", code="invalid_value") from None
        return right(caller, table, request)

    instead(stack, pipeline, "_read_list", records)


@leak("B28")
def a_secret_is_read_like_any_text(stack: ExitStack) -> None:
    def column(right: Any, self: CallerView, table: Table, name: str) -> Any:
        stored = table.columns.get(name)
        if stored is not None and not stored.is_readable:
            return stored, self.permissions.column(READ, table, stored)
        return right(self, table, name)

    instead(stack, CallerView, "column", column)

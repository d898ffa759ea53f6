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
from tests.tableapi.noninterference.leaks.switch import leak, replace_function, with_full_scope, without_guard


@leak("B01", "B04")
def filter_accepts_every_column(stack: ExitStack) -> None:
    replace_function(stack, read_plan, "resolve_query", with_full_scope)


@leak("B01")
def filter_ignores_the_guard_of_a_column(stack: ExitStack) -> None:
    def unguarded_condition(original: Any, self: Any, expression: Any) -> list[str]:
        if not expression:
            return []
        return [
            predicates.expression_sql(
                self.builder, expression, self.alias, lambda column_path: unguarded_column(self, column_path)
            )
        ]

    def unguarded_column(scope: Any, path: ResolvedPath) -> str:
        return str(scope.alias_at(path.steps).column(path.column))

    replace_function(stack, select.FromClause, "query_conditions", unguarded_condition)


@leak("B02")
def sorting_accepts_every_column(stack: ExitStack) -> None:
    replace_function(stack, read_plan, "_sort_keys", with_full_scope)


@leak("B02")
def sorting_ignores_the_guard_of_a_column(stack: ExitStack) -> None:
    def unguarded_sort_keys(original: Any, plan: Any, from_clause: Any) -> Any:
        order = tuple(replace(sort, path=without_guard(sort.path)) for sort in plan.order)
        return original(replace(plan, order=order), from_clause)

    replace_function(stack, select, "sort_keys", unguarded_sort_keys)


@leak("B03")
def default_order_depends_on_the_name(stack: ExitStack) -> None:
    def order_by_name(original: Any, scope: Any, table: Table, query: Any) -> Any:
        return original(scope, table, query) or (read_plan.SortKey(ResolvedPath((), table.columns["name"]), False),)

    replace_function(stack, read_plan, "_sort_keys", order_by_name)


@leak("B07")
def responses_show_every_column(stack: ExitStack) -> None:
    replace_function(stack, read_plan, "_output_field", with_full_scope)


@leak("B07")
def responses_ignore_the_guard_of_a_column(stack: ExitStack) -> None:
    replace_function(stack, output_fields, "member_sql", lambda original, builder, style, output, *arguments: original(
        builder, style, replace(output, path=without_guard(output.path)), *arguments))  # fmt: skip


@leak("B09")
def view_shows_every_column(stack: ExitStack) -> None:
    replace_function(stack, read_plan, "_output_fields", lambda original, scope, table, fields, view: original(
        RuleScope(scope.catalogue) if view is not None and not fields else scope,
        table, fields, view))  # fmt: skip


@leak("B16")
def words_are_searched_in_every_column(stack: ExitStack) -> None:
    replace_function(stack, path_resolver, "_searched_paths", with_full_scope)


@leak("B15")
def other_column_of_a_comparison_is_not_guarded(stack: ExitStack) -> None:
    replace_function(stack, path_resolver, "_resolve_other_path", with_full_scope)


@leak("B10")
def reference_accepts_a_hidden_display_value(stack: ExitStack) -> None:
    def unguarded_display_path(original: Any, scope: Any, column: Any) -> Any:
        path = original(RuleScope(scope.catalogue), column)
        return path and replace(path, steps=unguarded_steps(scope, path))

    replace_function(stack, read_plan, "display_path", unguarded_display_path)


def unguarded_steps(scope: Any, path: ResolvedPath) -> tuple[PathStep, ...]:
    return tuple(replace(step, records=scope.record_decision(step.target)) for step in path.steps)


@leak("B20")
def etag_covers_every_column(stack: ExitStack) -> None:
    def read_record_with_full_etag(original: Any, caller: Any, table: str, sys_id: str, raw: Any) -> Any:
        record_result = original(caller, table, sys_id, raw)
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT t::text FROM records."{table}" t WHERE sys_id = %s', [sys_id])
            row_text = cursor.fetchone()[0]
        return replace(record_result, version=int(hashlib.sha256(row_text.encode()).hexdigest()[:6], 16))

    replace_function(stack, pipeline, "read_record", read_record_with_full_etag)


@leak("B18")
def hidden_value_is_cast_to_a_number(stack: ExitStack) -> None:
    def cast_every_name(original: Any, context: Any, table: str, request: Any) -> Any:
        root_table = catalogue_loader.cached_catalogue().tables[table].lineage[-1]
        statement = f"SELECT max(CASE WHEN name = 'b' THEN name::integer END) FROM records.\"{root_table}\""
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(statement)
        except DataError:
            raise BadRequest("This is not a number.", code="invalid_value") from None
        return original(context, table, request)

    replace_function(stack, pipeline, "fetch_list", cast_every_name)


@leak("B28")
def secret_is_read_like_any_text(stack: ExitStack) -> None:
    def find_any_column(original: Any, self: CallerView, table: Table, name: str) -> Any:
        column = table.columns.get(name)
        if column is not None and not column.is_readable:
            return column, self.permissions.column_decision(READ, table, column)
        return original(self, table, name)

    replace_function(stack, CallerView, "column", find_any_column)

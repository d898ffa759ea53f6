"""Leaks of records in reads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from django.db import connection

from system.errors import AccessDenied, NotFound
from tableapi.access.permissions import Permissions
from tableapi.query import read_plan
from tableapi.query.expressions import ALWAYS, AnyOf, ResolvedPath
from tableapi.read import cursors, pipeline
from tableapi.sql import output_fields, select
from tableapi.sql.statement_builder import literal
from tableapi.write import current_record
from tests.tableapi.noninterference.leaks.switch import leak, replace_function, row_count


@leak("B13")
def list_ignores_the_rules_of_records(stack: ExitStack) -> None:
    replace_function(
        stack,
        select,
        "_page_sql",
        lambda original, builder, plan, *args: original(builder, replace(plan, records=ALWAYS), *args),
    )


@leak("B21")
def read_by_id_ignores_the_rules_of_records(stack: ExitStack) -> None:
    replace_function(
        stack,
        select,
        "record_statement",
        lambda original, plan, style, **options: original(replace(plan, records=ALWAYS), style, **options),
    )


@leak("B12")
def hidden_records_are_counted(stack: ExitStack) -> None:
    replace_function(
        stack,
        select,
        "count_statement",
        lambda original, plan, *args: original(replace(plan, records=ALWAYS), *args),
    )


@leak("B14")
def or_query_bypasses_the_rules_of_records(stack: ExitStack) -> None:
    def plan_without_record_rules(original: Any, *args: Any, **kwargs: Any) -> Any:
        plan = original(*args, **kwargs)
        return replace(plan, records=ALWAYS) if isinstance(plan.where, AnyOf) else plan

    replace_function(stack, read_plan, "plan_read", plan_without_record_rules)


@leak("B06")
def join_reaches_hidden_records(stack: ExitStack) -> None:
    replace_function(
        stack,
        select.FromClause,
        "_join",
        lambda original, self, alias, step: original(self, alias, replace(step, records=ALWAYS)),
    )


@leak("B05")
def join_follows_hidden_references(stack: ExitStack) -> None:
    replace_function(
        stack,
        select.FromClause,
        "_join",
        lambda original, self, alias, step: original(self, alias, replace(step, guard=ALWAYS)),
    )


@leak("B10")
def hidden_records_have_a_display_value(stack: ExitStack) -> None:
    def unguarded_name_sql(original: Any, builder: Any, display_path: ResolvedPath | None, reference: str) -> Any:
        unguarded_path = display_path and replace(
            display_path, steps=tuple(replace(step, records=ALWAYS) for step in display_path.steps)
        )
        return original(builder, unguarded_path, reference)

    replace_function(stack, output_fields, "reference_display_sql", unguarded_name_sql)


@leak("B11")
def link_is_shown_only_for_an_existing_record(stack: ExitStack) -> None:
    def link_existing_record(original: Any, builder: Any, column: Any, stored_sql: str, *prefix: str) -> str:
        link_sql = str(original(builder, column, stored_sql, *prefix))
        if column.is_sys:
            return link_sql
        exists_sql = f"EXISTS (SELECT FROM records.{column.reference} WHERE sys_id = {stored_sql})"
        null_sql = literal("".join(prefix) + "null")
        return f"CASE WHEN {exists_sql} THEN {link_sql} ELSE {null_sql} END"

    replace_function(stack, output_fields, "_link_object_sql", link_existing_record)


@leak("B13")
def child_records_use_the_rules_of_the_parent_table(stack: ExitStack) -> None:
    replace_function(stack, Permissions, "_record_verdict", lambda original, self, operation, own_table: original(
        self, operation, self.catalogue.tables[own_table.lineage[-1]]))  # fmt: skip


@leak("B12")
def next_page_counts_hidden_records(stack: ExitStack) -> None:
    def count_all_records(original: Any, context: Any, table: str, request: Any) -> Any:
        list_result = original(context, table, request)
        next_page = list_result.next_page or {"sysparm_cursor": "0"} if row_count(table) > request.limit else {}
        return replace(list_result, next_page=next_page)

    replace_function(stack, pipeline, "fetch_list", count_all_records)


@leak("B12")
def cursor_reveals_the_number_of_records(stack: ExitStack) -> None:
    def append_record_count(original: Any, position: Any, list_identity: Any) -> str:
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT count(*) FROM records."{list_identity[0]}"')
            return f"{original(position, list_identity)}{cursor.fetchone()[0]}"

    replace_function(stack, cursors, "encode", append_record_count)


@leak("B21")
def reading_a_hidden_record_returns_403(stack: ExitStack) -> None:
    replace_function(
        stack, pipeline, "read_record", partial(raise_forbidden, lambda caller, table, sys_id, raw: (table, sys_id))
    )


@leak("B21", "B23")
def changing_a_hidden_record_returns_403(stack: ExitStack) -> None:
    replace_function(
        stack,
        current_record,
        "lock_current_record",
        partial(raise_forbidden, lambda change, sys_id, *args: (change.table.name, sys_id)),
    )


def raise_forbidden(locate_record: Callable[..., tuple[str, str]], original: Any, *args: Any) -> Any:
    try:
        return original(*args)
    except NotFound as error:
        if error.code == "record_not_found" and row_count(*locate_record(*args)):
            raise AccessDenied from None
        raise

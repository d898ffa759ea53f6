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
from tableapi.write import current_record
from tests.tableapi.noninterference.leaks.switch import leak, replace_function, row_count


@leak("B13")
def list_has_every_record(stack: ExitStack) -> None:
    replace_function(
        stack,
        select,
        "_page_sql",
        lambda original, text, plan, *rest: original(text, replace(plan, records=ALWAYS), *rest),
    )


@leak("B21")
def record_is_found_by_its_id_despite_the_rules(stack: ExitStack) -> None:
    replace_function(
        stack,
        select,
        "record_statement",
        lambda original, plan, style: original(replace(plan, records=ALWAYS), style),
    )


@leak("B12")
def hidden_records_are_counted(stack: ExitStack) -> None:
    replace_function(
        stack,
        select,
        "count_statement",
        lambda original, plan, *rest: original(replace(plan, records=ALWAYS), *rest),
    )


@leak("B14")
def or_leads_past_the_rule(stack: ExitStack) -> None:
    def plan_without_record_rules(original: Any, *positional: Any, **named: Any) -> Any:
        result = original(*positional, **named)
        return replace(result, records=ALWAYS) if isinstance(result.where, AnyOf) else result

    replace_function(stack, read_plan, "plan_read", plan_without_record_rules)


@leak("B06")
def walk_ends_at_every_record(stack: ExitStack) -> None:
    replace_function(
        stack,
        select.FromClause,
        "_join",
        lambda original, self, anchor, hop: original(self, anchor, replace(hop, records=ALWAYS)),
    )


@leak("B05")
def walk_begins_at_every_reference(stack: ExitStack) -> None:
    replace_function(
        stack,
        select.FromClause,
        "_join",
        lambda original, self, anchor, hop: original(self, anchor, replace(hop, guard=ALWAYS)),
    )


@leak("B10")
def hidden_records_have_a_display_value(stack: ExitStack) -> None:
    def unguarded_name_sql(original: Any, text: Any, display: ResolvedPath | None, reference: str) -> Any:
        unguarded_display = display and replace(
            display, steps=tuple(replace(hop, records=ALWAYS) for hop in display.steps)
        )
        return original(text, unguarded_display, reference)

    replace_function(stack, output_fields, "referenced_name_sql", unguarded_name_sql)


@leak("B11")
def link_is_shown_only_for_an_existing_record(stack: ExitStack) -> None:
    def link_existing_record(original: Any, text: Any, column: Any, stored_sql: str) -> str:
        link = str(original(text, column, stored_sql))
        if column.is_sys:
            return link
        return f"CASE WHEN EXISTS (SELECT FROM records.{column.reference} WHERE sys_id = {stored_sql}) THEN {link} END"

    replace_function(stack, output_fields, "_link_object_sql", link_existing_record)


@leak("B13")
def children_are_read_by_the_rules_of_their_parent(stack: ExitStack) -> None:
    replace_function(stack, Permissions, "_record_outcome", lambda original, self, operation, own_table: original(
        self, operation, self.catalogue.tables[own_table.lineage[-1]]))  # fmt: skip


@leak("B12")
def next_page_counts_hidden_records(stack: ExitStack) -> None:
    def count_all_records(original: Any, context: Any, table: str, request: Any) -> Any:
        result = original(context, table, request)
        return replace(
            result, next_page=result.next_page or {"sysparm_cursor": "0"} if row_count(table) > request.limit else {}
        )

    replace_function(stack, pipeline, "fetch_list", count_all_records)


@leak("B12")
def cursor_says_how_many_records_there_are(stack: ExitStack) -> None:
    def append_record_count(original: Any, keys: Any, bound_to: Any) -> str:
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT count(*) FROM records."{bound_to[0]}"')
            return f"{original(keys, bound_to)}{cursor.fetchone()[0]}"

    replace_function(stack, cursors, "encode", append_record_count)


@leak("B21")
def reading_a_hidden_record_is_forbidden_and_not_missing(stack: ExitStack) -> None:
    replace_function(
        stack, pipeline, "read_record", partial(raise_forbidden, lambda caller, table, sys_id, raw: (table, sys_id))
    )


@leak("B21", "B23")
def changing_a_hidden_record_is_forbidden_and_not_missing(stack: ExitStack) -> None:
    replace_function(
        stack,
        current_record,
        "lock_current_record",
        partial(raise_forbidden, lambda change, sys_id, *rest: (change.table.name, sys_id)),
    )


def raise_forbidden(locate_record: Callable[..., tuple[str, str]], original: Any, *positional: Any) -> Any:
    try:
        return original(*positional)
    except NotFound as error:
        if error.code == "record_not_found" and row_count(*locate_record(*positional)):
            raise AccessDenied from None
        raise

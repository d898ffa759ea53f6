"""Leaks in writes, and writes that are not allowed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

from django.db import connection

from system.errors import Conflict
from tableapi.access.permissions import Permissions
from tableapi.catalogue.definitions import DELETE, SYS_COLUMNS, WRITE, Table
from tableapi.query import read_plan
from tableapi.query.expressions import ALWAYS
from tableapi.write import (
    column_errors,
    current_record,
    designed_records,
    payload,
    permission_queries,
    references,
    update,
    write_request,
)
from tests.tableapi.noninterference.leaks.switch import leak, replace_function, with_full_scope


@leak("B30")
def reference_to_a_hidden_record_is_accepted(stack: ExitStack) -> None:
    class AllRecords:
        def record_decision(self, operation: str, table: Table) -> Any:
            return ALWAYS

    replace_function(
        stack,
        permission_queries,
        "count_readable_statement",
        lambda original, permissions, target, **kwargs: original(AllRecords(), target, **kwargs),
    )


@leak("B23", finder="write_checks")
def single_statement_ignores_the_rules(stack: ExitStack) -> None:
    replace_function(stack, permission_queries, "rule_conditions", lambda original, builder, decisions, record: [])


@leak("B29")
def hidden_value_that_equals_the_sent_one_counts_as_unchanged(stack: ExitStack) -> None:
    replace_function(
        stack,
        update,
        "changed_value",
        lambda original, change, column, value, stored_value, **kwargs: original(
            change, column, value, replace(stored_value, is_readable=True), **kwargs
        ),
    )


@leak("B24")
def replacing_a_record_clears_hidden_values(stack: ExitStack) -> None:
    def clear_hidden_values(original: Any, table: Table, sent_values: Any, current: Any, moment: Any) -> Any:
        columns = {column: replace(value, is_readable=True) for column, value in current.columns.items()}
        return original(table, sent_values, replace(current, columns=columns), moment)

    replace_function(stack, update, "defaults_for_omitted", clear_hidden_values)


@leak("B24")
def write_returns_every_column(stack: ExitStack) -> None:
    def return_every_column(original: Any, change: Any) -> Any:
        with patch.object(read_plan, "_output_field", partial(with_full_scope, read_plan._output_field)):
            return original(change)

    replace_function(stack, write_request, "prepare_reader", return_every_column)


@leak("B30")
def deletion_reveals_hidden_references(stack: ExitStack) -> None:
    def count_references(original: Any, catalogue: Any, table: Table, sys_id: str) -> None:
        for column in catalogue.referring_columns(table):
            if column.type == "reference":
                with connection.cursor() as cursor:
                    cursor.execute(
                        f'SELECT count(*) FROM records."{column.owner}" WHERE "{column.name}" = %s', [sys_id]
                    )
                    (count,) = cursor.fetchone()
                if count:
                    raise Conflict(f"{count} records of {column.owner} refer to this record.", code="referenced")
        original(catalogue, table, sys_id)

    replace_function(stack, references, "clear_references", count_references)


@leak("B17", finder="name_leaks")
def conflict_names_a_column_that_was_not_sent(stack: ExitStack) -> None:
    @contextmanager
    def name_the_column(original: Any, change: Any) -> Iterator[None]:
        try:
            yield
        except designed_records.Duplicate as error:
            error.field = next(iter(error.columns), None)
            raise

    replace_function(stack, column_errors, "hiding_unknown_columns", name_the_column)


@leak("B22", finder="write_checks")
def readable_record_can_be_deleted(stack: ExitStack) -> None:
    replace_function(stack, current_record, "lock_current_record", partial(allow_operation, DELETE))


@leak("B23", finder="write_checks")
def readable_record_can_be_updated(stack: ExitStack) -> None:
    replace_function(stack, current_record, "lock_current_record", partial(allow_operation, WRITE))


def allow_operation(
    allowed_operation: str, original: Any, change: Any, sys_id: str, operation: str, columns: Any
) -> Any:
    record = original(change, sys_id, operation, columns)
    return replace(record, is_allowed=record.is_allowed or operation == allowed_operation)


@leak("B23", finder="write_checks")
def every_column_of_a_record_can_be_updated(stack: ExitStack) -> None:
    replace_function(stack, Permissions, "column_decision", lambda original, self, operation, table, column: (
        ALWAYS if operation == WRITE else original(self, operation, table, column)))  # fmt: skip


@leak("B25", finder="write_checks")
def record_is_not_checked_after_the_write(stack: ExitStack) -> None:
    replace_function(stack, current_record, "check_allowed", lambda original, *args: None)


@leak("B26", finder="write_checks")
def creator_of_a_record_is_taken_from_the_body(stack: ExitStack) -> None:
    sent_values: dict[str, Any] = {}

    def remember_creator(original: Any, change: Any) -> Any:
        sent_values["creator"] = change.body.get("sys_created_by")
        return original(
            replace(change, body={name: value for name, value in change.body.items() if name not in SYS_COLUMNS})
        )

    def insert_with_sent_creator(original: Any, catalogue: Any, table: Table, *args: Any) -> str:
        sys_id = str(original(catalogue, table, *args))
        if isinstance(sent_values["creator"], str):
            root_name = table.lineage[-1]
            with connection.cursor() as cursor:
                cursor.execute(
                    f'UPDATE records."{root_name}" SET sys_created_by = %s WHERE sys_id = %s',
                    [sent_values["creator"], sys_id],
                )
        return sys_id

    replace_function(stack, payload, "read_columns", remember_creator)
    replace_function(stack, designed_records, "insert", insert_with_sent_creator)


@leak("B27", finder="privileges")
def rules_are_ignored_for_product_tables(stack: ExitStack) -> None:
    replace_function(stack, Permissions, "record_decision", lambda original, self, operation, table: (
        ALWAYS if table.is_system else original(self, operation, table)))  # fmt: skip

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
    changes,
    column_errors,
    current_record,
    designed_records,
    payload,
    permission_queries,
    references,
    response_record,
    single_statement,
)
from tests.tableapi.noninterference.leaks.switch import leak, replace_function, with_all_permissions


@leak("B30")
def a_reference_to_a_hidden_record_is_accepted(stack: ExitStack) -> None:
    class AllRecords:
        def records(self, operation: str, table: Table) -> Any:
            return ALWAYS

    replace_function(
        stack,
        permission_queries,
        "count_readable_statement",
        lambda original, rights, target, **named: original(AllRecords(), target, **named),
    )


@leak("B23", finder="write_checks")
def a_single_statement_ignores_the_rules(stack: ExitStack) -> None:
    replace_function(stack, single_statement, "_conditions", lambda original, text, decisions, record: [])


@leak("B29")
def a_hidden_value_sent_as_stored_counts_as_unchanged(stack: ExitStack) -> None:
    replace_function(stack, changes, "changed_value", lambda original, change, column, value, stored, **named: original(
        change, column, value, replace(stored, is_readable=True), **named))  # fmt: skip


@leak("B24")
def replacing_a_record_clears_hidden_values(stack: ExitStack) -> None:
    def left_out(original: Any, table: Table, sent: Any, current: Any) -> Any:
        return original(table, sent, replace(current, columns={
            column: replace(stored, is_readable=True) for column, stored in current.columns.items()}))  # fmt: skip

    replace_function(stack, changes, "defaults_for_omitted", left_out)


@leak("B24")
def a_write_returns_every_column(stack: ExitStack) -> None:
    def prepare(original: Any, change: Any) -> Any:
        with patch.object(read_plan, "_output_field", partial(with_all_permissions, read_plan._output_field)):
            return original(change)

    replace_function(stack, response_record, "prepare_reader", prepare)


@leak("B30")
def a_deletion_reveals_hidden_references(stack: ExitStack) -> None:
    def release(original: Any, catalogue: Any, table: Table, sys_id: str) -> None:
        for column in catalogue.referring_columns(table):
            if column.type == "reference":
                with connection.cursor() as cursor:
                    cursor.execute(
                        f'SELECT count(*) FROM records."{column.owner}" WHERE "{column.name}" = %s', [sys_id]
                    )
                    (count,) = cursor.fetchone()
                if count:
                    raise Conflict(f"{count} records of {column.owner} need this one.", code="referenced")
        original(catalogue, table, sys_id)

    replace_function(stack, references, "release_references", release)


@leak("B17", finder="name_leaks")
def a_conflict_names_a_column_that_was_not_sent(stack: ExitStack) -> None:
    @contextmanager
    def naming(original: Any, change: Any) -> Iterator[None]:
        try:
            yield
        except designed_records.Duplicate as error:
            error.field = next(iter(error.columns), None)
            raise

    replace_function(stack, column_errors, "hiding_unknown_columns", naming)


@leak("B22", finder="write_checks")
def a_readable_record_can_be_deleted(stack: ExitStack) -> None:
    replace_function(stack, current_record, "lock_current_record", partial(allowed, DELETE))


@leak("B23", finder="write_checks")
def a_readable_record_can_be_updated(stack: ExitStack) -> None:
    replace_function(stack, current_record, "lock_current_record", partial(allowed, WRITE))


def allowed(allowed_operation: str, original: Any, change: Any, sys_id: str, operation: str, columns: Any) -> Any:
    record = original(change, sys_id, operation, columns)
    return replace(record, is_allowed=record.is_allowed or operation == allowed_operation)


@leak("B23", finder="write_checks")
def every_column_of_a_record_can_be_updated(stack: ExitStack) -> None:
    replace_function(stack, Permissions, "column", lambda original, self, operation, table, column: (
        ALWAYS if operation == WRITE else original(self, operation, table, column)))  # fmt: skip


@leak("B25", finder="write_checks")
def the_record_is_not_checked_after_the_write(stack: ExitStack) -> None:
    replace_function(stack, current_record, "check_allowed", lambda original, *rest: None)


@leak("B26", finder="write_checks")
def the_creator_of_a_record_is_taken_from_the_body(stack: ExitStack) -> None:
    result: dict[str, Any] = {}

    def columns(original: Any, change: Any) -> Any:
        result["who"] = change.body.get("sys_created_by")
        return original(
            replace(change, body={name: value for name, value in change.body.items() if name not in SYS_COLUMNS})
        )

    def insert(original: Any, catalogue: Any, table: Table, *rest: Any) -> str:
        created = str(original(catalogue, table, *rest))
        if isinstance(result["who"], str):
            root = table.lineage[-1]
            with connection.cursor() as cursor:
                cursor.execute(
                    f'UPDATE records."{root}" SET sys_created_by = %s WHERE sys_id = %s', [result["who"], created]
                )
        return created

    replace_function(stack, payload, "read_columns", columns)
    replace_function(stack, designed_records, "insert", insert)


@leak("B27", finder="privileges")
def rules_are_ignored_for_system_tables(stack: ExitStack) -> None:
    replace_function(stack, Permissions, "records", lambda original, self, operation, table: (
        ALWAYS if table.is_system else original(self, operation, table)))  # fmt: skip

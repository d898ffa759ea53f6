"""Writes the custom columns of product tables. They are in a separate row, which exists once one of them is set."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction

from system.database_statements import run_named_sql
from system.errors import InvalidInput
from system.records.record import Record
from tableapi.catalogue.definitions import Catalogue, Column, Table
from tableapi.database import catalogue_loader
from tableapi.read.context import ReadContext
from tableapi.sql import change_rows
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import custom_identifier, quote, table_identifier
from tableapi.values import column_values

from . import designed_records, references

LoggedValues = dict[str, Any]


def column_names(table: str) -> frozenset[str]:
    return frozenset(column.name for column in catalogue_loader.reload_if_changed().tables[table].custom_columns)


def save(record: Record, values: Mapping[str, Any]) -> list[str]:
    """Store the changed values. Returns a message for each invalid value."""
    catalogue = catalogue_loader.reload_if_changed()
    table = catalogue.tables[record._meta.db_table]
    run_named_sql(
        f"SELECT FROM {table_identifier(table)} WHERE sys_id = %(id)s FOR NO KEY UPDATE", {"id": record.sys_id}
    )
    stored_values = designed_records.read_values(table, record.sys_id, table.custom_columns)
    messages: list[str] = []
    changes: dict[Column, Any] = {}
    for column in table.custom_columns:
        if column.name not in values:
            continue
        try:
            value = _parse(catalogue, column, values[column.name])
        except InvalidInput as error:
            messages.append(f"{column.name} was not changed. {error.message}")
        else:
            if not column_values.is_same(column, stored_values.get(column), value):
                changes[column] = value
    return messages + _save_changed(record, table, changes)


def _parse(catalogue: Catalogue, column: Column, sent_value: Any) -> Any:
    value = column_values.parse(column, sent_value)
    if value in ("", []):
        return None
    has_target = value is not None and column.column_type.has_target
    if has_target and references.existing_references(catalogue, column, value) != value:
        raise InvalidInput("The referenced record does not exist.")
    return value


def _save_changed(record: Record, table: Table, changes: dict[Column, Any]) -> list[str]:
    """Save the values, except those of unique columns that another record has. Returns messages about these."""
    messages: list[str] = []
    while changes:
        try:
            with designed_records.translating_integrity_errors(table), transaction.atomic():
                record.custom_columns_writer = writer(table, changes)
                record.save(update_fields=[])
                break
        except designed_records.Duplicate as error:
            if not error.columns:
                raise
            messages += [f"{name} was not changed. {error.message}" for name in error.columns]
            changes = {column: value for column, value in changes.items() if column.name not in error.columns}
    return messages


def fetch_locked(context: ReadContext, table: Table, statement: Statement, **values: Any) -> list[Any]:
    """Return the rows of a statement that locks records. After waiting, PostgreSQL re-reads only locked rows. Those of
    custom columns may not be locked, so they are read again."""
    rows = context.fetch(statement, **values)
    return context.fetch(statement, **values) if table.custom_columns else rows


def writer(table: Table, values: Mapping[Column, Any]) -> Callable[[Record], tuple[LoggedValues, LoggedValues]] | None:
    """Return a function that writes these values on save, and returns the old and new ones for the change log."""
    custom_values = {column: value for column, value in values.items() if column.is_custom}

    def write(record: Record) -> tuple[LoggedValues, LoggedValues]:
        before = logged_values(table, record.sys_id)
        _store(table, record.sys_id, custom_values)
        return before, logged_values(table, record.sys_id)

    return write if custom_values else None


def _store(table: Table, sys_id: str, values: Mapping[Column, Any]) -> None:
    names, placeholders, parameters = designed_records.assigned_columns(table.name, values, "value")
    columns = [quote(name) for name in names]
    assignments = ", ".join(f"{column} = excluded.{column}" for column in columns)
    run_named_sql(
        f"INSERT INTO {custom_identifier(table.name)} ({', '.join(['sys_id', *columns])}) "
        f"VALUES ({', '.join(['%(sys_id)s', *placeholders])}) ON CONFLICT (sys_id) DO UPDATE SET {assignments}",
        {**parameters, "sys_id": sys_id},
    )


def payload(table: Table, sys_id: str) -> dict[str, Any]:
    """Return the values by column name, as the deletion log stores them."""
    if not table.custom_columns:
        return {}
    return designed_records.payload(table, sys_id, table.custom_columns)


def logged_values(table: Table, sys_id: str) -> LoggedValues:
    """Return the values as the change log stores those of designed tables."""
    if not table.custom_columns:
        return {}
    values = change_rows.values_sql(table.custom_columns, lambda _, name: quote(name))
    sql = f"SELECT ({values})::text FROM {custom_identifier(table.name)} WHERE sys_id = %(sys_id)s"
    row = next(iter(run_named_sql(sql, {"sys_id": sys_id}).rows()), ("{}",))
    return dict(json.loads(row[0]))

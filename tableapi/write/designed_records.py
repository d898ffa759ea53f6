"""Writes records of designed tables: the only room that changes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import IntegrityError
from psycopg import errors

from system.errors import Conflict, Invalid
from system.records import acting_user
from tableapi.catalogue.definitions import DISPLAY_NAME, NUMBER, Catalogue, Column, Table
from tableapi.database.statement_runner import cursor
from tableapi.sql.statement_builder import StatementBuilder, TableAlias, literal, quoted
from tableapi.values import column_values

NUMBER_DIGITS = 7

Values = Mapping[Column, Any]


def insert(catalogue: Catalogue, table: Table, given: Values, sys_id: str | None = None) -> str:
    """A new record: a row in the root table and one in each table on the way down."""
    who = acting_user.current()
    with _as_service_errors(table), cursor() as run:
        for name in reversed(table.lineage):
            owner = catalogue.tables[name]
            columns, placeholders, parameters = _assigned(name, given)
            if owner.parent is None:
                columns += ["sys_created_by", "sys_updated_by", "sys_db_table_id"]
                placeholders += ["%(who)s", "%(who)s", "%(table)s"]
                parameters |= {"who": who, "table": table.id}
            if sys_id is not None:
                columns.append("sys_id")
                placeholders.append("%(sys_id)s")
                parameters["sys_id"] = sys_id
            source = _numbered(table, columns, placeholders) if name == _number_owner(table) else ""
            sql = (
                f"INSERT INTO records.{quoted(name)} ({', '.join(map(quoted, columns))}) "
                f"SELECT {', '.join(placeholders)}{source} RETURNING sys_id"
            )
            run.execute(sql, parameters)
            row = run.fetchone()
            assert row is not None  # RETURNING of an INSERT
            sys_id = str(row[0])
    assert sys_id is not None
    return sys_id


def _number_owner(table: Table) -> str | None:
    column = table.columns.get(NUMBER)
    return column.owner if column is not None and table.number_prefix else None


def is_called_by_number(table: Table, column: Column) -> bool:
    """Whether the record's number is what stands in this column where nothing else was said."""
    return column.name == DISPLAY_NAME and column.owner == _number_owner(table)


def _numbered(table: Table, columns: list[str], placeholders: list[str]) -> str:
    """The number from the table's sequence, and the display name after it where none was sent."""
    counted = f"lpad(n, greatest(length(n), {NUMBER_DIGITS}), '0')"
    number = f"{literal(table.number_prefix)} || {counted}"
    if NUMBER in columns:
        return ""  # a record that was accepted earlier has its number
    columns.append(NUMBER)
    placeholders.append(number)
    if (shown := table.columns.get(DISPLAY_NAME)) and is_called_by_number(table, shown) and DISPLAY_NAME not in columns:
        columns.append(DISPLAY_NAME)
        placeholders.append(number)
    sequence = literal(f'records."N{table.number_table}"')
    return f" FROM (SELECT nextval({sequence})::text AS n) s"


def update(catalogue: Catalogue, table: Table, sys_id: str, given: Values) -> None:
    """Change these columns and no other, and count the version."""
    with _as_service_errors(table), cursor() as run:
        for name in table.lineage:
            columns, placeholders, parameters = _assigned(name, given)
            assignments = [f"{quoted(column)} = {value}" for column, value in zip(columns, placeholders, strict=True)]
            if catalogue.tables[name].parent is None:
                assignments += [
                    "sys_version = sys_version + 1",
                    "sys_updated_at = clock_timestamp()",
                    "sys_updated_by = %(who)s",
                ]
                parameters["who"] = acting_user.current()
            if assignments:
                parameters["sys_id"] = sys_id
                run.execute(
                    f"UPDATE records.{quoted(name)} SET {', '.join(assignments)} WHERE sys_id = %(sys_id)s", parameters
                )


def delete(table: Table, sys_id: str) -> None:
    """Its rows in the tables that extend the root one go with it."""
    with cursor() as run:
        run.execute(f"DELETE FROM records.{quoted(table.lineage[-1])} WHERE sys_id = %(sys_id)s", {"sys_id": sys_id})


def lock(table: Table, sys_id: str) -> None:
    """Every row of the record, against references that are made meanwhile."""
    anchor = TableAlias(StatementBuilder(), table)
    rows = ", ".join(anchor.whole())
    with cursor() as run:
        run.execute(
            f"SELECT 1 FROM {anchor.joined()} WHERE {anchor.sys_id()} = %(sys_id)s FOR UPDATE OF {rows}",
            {"sys_id": sys_id},
        )


def stored(table: Table, sys_id: str) -> dict[str, Any]:
    """Every value of a record, as the deletion log keeps it: without secrets."""
    columns = [column for column in table.columns.values() if column.is_readable]
    anchor = TableAlias(StatementBuilder(), table)
    wanted = ", ".join(anchor.column(column, plain=False) for column in columns)
    with cursor() as run:
        run.execute(f"SELECT {wanted} FROM {anchor.joined()} WHERE {anchor.sys_id()} = %(sys_id)s", {"sys_id": sys_id})
        row = run.fetchone()
    return {
        column.name: column_values.for_log(column, loaded(column, value))
        for column, value in zip(columns, row or (), strict=False)
    }


def loaded(column: Column, value: Any) -> Any:
    """A value as it was read: on Django's connections JSON comes as text."""
    return json.loads(value) if column.column_type.is_json and isinstance(value, str) else value


def _assigned(owner: str, given: Values) -> tuple[list[str], list[str], dict[str, Any]]:
    """The columns of this table among the values, with their placeholders."""
    columns: list[str] = []
    placeholders: list[str] = []
    parameters: dict[str, Any] = {}
    for column, value in given.items():
        if column.owner != owner:
            continue
        for physical, each in _physically(column, value):
            name = f"v{len(columns)}"
            columns.append(physical)
            placeholders.append(f"%({name})s::{column.column_type.sql_type}")
            parameters[name] = each
    return columns, placeholders, parameters


def _physically(column: Column, value: Any) -> Iterator[tuple[str, Any]]:
    yield column.physical, value
    if column.column_type.is_html:
        yield column.plain, column_values.plain_text(value)


@contextmanager
def _as_service_errors(table: Table) -> Iterator[None]:
    """What the database refused, as the caller reads it; never naming what they did not send."""
    try:
        yield
    except IntegrityError as error:
        cause = error.__cause__
        diagnosed = getattr(getattr(cause, "diag", None), "constraint_name", None) or ""
        if isinstance(cause, errors.UniqueViolation):
            found = next((column.name for column in table.columns.values() if diagnosed == f"U{column.id}"), None)
            raise Duplicate(*([found] if found else [])) from None
        if isinstance(cause, errors.ForeignKeyViolation):
            raise Invalid("The record referred to is not there.") from None
        raise


class Duplicate(Conflict):
    """A value that must be unique is there already, or values of these columns together."""

    code = "duplicate"
    message = "A record with this value is there already."

    def __init__(self, *columns: str) -> None:
        super().__init__()
        self.columns = columns

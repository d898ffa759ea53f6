"""The only module that writes records of designed tables."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import IntegrityError
from psycopg import errors

from system.database_statements import run_named_sql
from system.errors import Conflict, InvalidInput
from system.records import acting_user
from tableapi.catalogue.definitions import DISPLAY_NAME_COLUMN, NUMBER_COLUMN, Catalogue, Column, Table
from tableapi.sql import change_rows
from tableapi.sql.statement_builder import StatementBuilder, TableAlias, literal, quote
from tableapi.values import column_values, defaults

MIN_NUMBER_DIGITS = 7

Values = Mapping[Column, Any]


def insert(catalogue: Catalogue, table: Table, values: Values, sys_id: str | None = None) -> str:
    """Create and log a record: a row in the root table and in each table between it and this one."""
    rows = {name: f"row{number}" for number, name in enumerate(reversed(table.lineage))}
    parameters: dict[str, Any] = {"user": acting_user.current(), "table": table.id, "sys_id": sys_id}
    parts = []
    for name, row in rows.items():
        columns, placeholders, own_parameters = assigned_columns(name, values, row)
        parameters |= own_parameters
        if catalogue.tables[name].parent is None:
            stamps = {"sys_created_by": "%(user)s", "sys_updated_by": "%(user)s", "sys_db_table_id": "%(table)s"}
            stamps = {column: value for column, value in stamps.items() if column not in columns}  # an import has some
            columns += stamps.keys()
            placeholders += stamps.values()
        else:
            columns.append("sys_id")
            placeholders.append("row0.sys_id")
        if sys_id is not None and row == "row0":
            columns.append("sys_id")
            placeholders.append("%(sys_id)s")
        number = add_number_columns(table, columns, placeholders) if name == number_owner(table) else ""
        sources = ["row0"] * (row != "row0") + [f"(SELECT {number}) s"] * bool(number)
        from_sql = f" FROM {', '.join(sources)}" if sources else ""
        parts.append(
            f"{row} AS (INSERT INTO records.{quote(name)} ({', '.join(map(quote, columns))}) "
            f"SELECT {', '.join(placeholders)}{from_sql} RETURNING *)"
        )
    logged_columns = [*values, *(column for column in generated_columns(table) if column not in values)]
    new = change_rows.values_sql(logged_columns, lambda column, name: f"{rows[column.owner]}.{quote(name)}")
    change = change_rows.change_sql("create", record="row0", user="%(user)s", new=new, source=", ".join(rows.values()))
    with translating_integrity_errors(table):
        ((new_id,),) = run_named_sql(f"WITH {', '.join(parts)} {change} RETURNING record_id", parameters).rows()
    return str(new_id)


def generated_columns(table: Table) -> list[Column]:
    """Return the columns that the database fills in a new record if no value is sent."""
    return [
        column
        for column in table.columns.values()
        if defaults_to_number(table, column) or (column.name == NUMBER_COLUMN and column.owner == number_owner(table))
    ]


def with_imported_number(table: Table, values: Values) -> Values:
    """Add the columns that default to the imported number to the values, and ensure that later numbers are higher."""
    column = table.columns.get(NUMBER_COLUMN)
    number = values.get(column) if column is not None and table.is_record_number(column) else None
    if number is None:
        return values
    digits = re.fullmatch(rf"{re.escape(table.number_prefix)}([0-9]{{1,18}})", number)
    if digits is not None:
        sequence = f'records."N{table.number_table_id}"'
        statement = f"SELECT setval(%(sequence)s, %(number)s) FROM {sequence} WHERE last_value < %(number)s"
        run_named_sql(statement, {"sequence": sequence, "number": int(digits[1])})
    return {target: number for target in table.columns.values() if defaults_to_number(table, target)} | dict(values)


def number_owner(table: Table) -> str | None:
    column = table.columns.get(NUMBER_COLUMN)
    return column.owner if column is not None and table.number_prefix else None


def defaults_to_number(table: Table, column: Column) -> bool:
    """Whether this column contains the record's number unless it is set."""
    has_number = column.name == DISPLAY_NAME_COLUMN or defaults.is_number_default(column)
    return has_number and column.owner == number_owner(table)


def add_number_columns(table: Table, columns: list[str], placeholders: list[str]) -> str:
    """Add the number column, and columns that default to it unless they were sent. Returns the SQL that takes the
    number from the table's sequence."""
    digits = f"lpad(n, greatest(length(n), {MIN_NUMBER_DIGITS}), '0')"
    number = f"{literal(table.number_prefix)} || {digits}"
    if NUMBER_COLUMN in columns:
        return ""  # a deferred record already has its number
    columns.append(NUMBER_COLUMN)
    placeholders.append(number)
    for column in table.columns.values():
        if column.database_name not in columns and defaults_to_number(table, column):
            columns.append(column.database_name)
            placeholders.append(number)
    sequence = literal(f'records."N{table.number_table_id}"')
    return f"nextval({sequence})::text AS n"


def update(catalogue: Catalogue, table: Table, sys_id: str, values: Values) -> None:
    """Update only these columns, increment the version, and log the change."""
    parameters: dict[str, Any] = {"user": acting_user.current(), "sys_id": sys_id}
    rows: dict[str, str] = {}
    parts = []
    for name in table.lineage:
        row = f"row{len(rows)}"
        columns, placeholders, own_parameters = assigned_columns(name, values, row)
        parameters |= own_parameters
        assignments = [f"{quote(column)} = {value}" for column, value in zip(columns, placeholders, strict=True)]
        if catalogue.tables[name].parent is None:
            assignments += [
                "sys_version = sys_version + 1",
                "sys_updated_at = clock_timestamp()",
                "sys_updated_by = %(user)s",
            ]
        if assignments:
            rows[name] = row
            table_sql = f"records.{quote(name)}"
            parts.append(
                f"{row} AS (UPDATE {table_sql} SET {', '.join(assignments)} WHERE sys_id = %(sys_id)s RETURNING *)"
            )
    alias = TableAlias(StatementBuilder(), table)
    old = change_rows.values_sql(values, alias.database_column)
    parts.append(f"stored AS (SELECT {old} AS old_values FROM {alias.from_sql()} WHERE {alias.sys_id()} = %(sys_id)s)")
    new = change_rows.values_sql(values, lambda column, name: f"{rows[column.owner]}.{quote(name)}")
    source = ", ".join(["stored", *rows.values()])
    record = rows[table.lineage[-1]]
    change = change_rows.change_sql(
        "update", record=record, user="%(user)s", old="stored.old_values", new=new, source=source
    )
    with translating_integrity_errors(table):
        run_named_sql(f"WITH {', '.join(parts)} {change}", parameters)


def delete(table: Table, sys_id: str) -> None:
    """Delete and log the record. Foreign keys delete its rows in extending tables."""
    alias = TableAlias(StatementBuilder(), table)
    columns = [column for column in table.columns.values() if column.name not in change_rows.ROW_COLUMNS]
    old = change_rows.values_sql(columns, alias.database_column)
    root = alias.row_aliases()[-1]
    change = change_rows.change_sql("delete", record=root, user="%(user)s", old=old, source=alias.from_sql())
    condition = f"{alias.sys_id()} = %(sys_id)s"
    run_named_sql(f"{change} WHERE {condition}", {"user": acting_user.current(), "sys_id": sys_id})
    run_named_sql(f"DELETE FROM records.{quote(table.lineage[-1])} WHERE sys_id = %(sys_id)s", {"sys_id": sys_id})


def lock(table: Table, sys_id: str) -> None:
    """Lock every row of the record against new references."""
    alias = TableAlias(StatementBuilder(), table)
    rows = ", ".join(alias.row_aliases())
    run_named_sql(
        f"SELECT 1 FROM {alias.from_sql()} WHERE {alias.sys_id()} = %(sys_id)s FOR UPDATE OF {rows}",
        {"sys_id": sys_id},
    )


def payload(table: Table, sys_id: str, columns: Iterable[Column] | None = None) -> dict[str, Any]:
    """Return all values of a record, or those of some columns, as the deletion log stores them, without secrets."""
    columns = table.columns.values() if columns is None else columns
    values = read_values(table, sys_id, [column for column in columns if column.is_readable])
    return {column.name: column_values.to_log_value(column, value) for column, value in values.items()}


def read_values(table: Table, sys_id: str, columns: Sequence[Column]) -> dict[Column, Any]:
    alias = TableAlias(StatementBuilder(), table)
    outputs = ", ".join(alias.column(column, is_plain=False) for column in columns)
    sql = f"SELECT {outputs} FROM {alias.from_sql()} WHERE {alias.sys_id()} = %(sys_id)s"
    row = next(iter(run_named_sql(sql, {"sys_id": sys_id}).rows()), ())
    return {column: decode_value(column, value) for column, value in zip(columns, row, strict=False)}


def decode_value(column: Column, value: Any) -> Any:
    """Decode a value from the database, because Django's connections return JSON as text."""
    return json.loads(value) if column.column_type.is_json and isinstance(value, str) else value


def assigned_columns(owner: str, values: Values, prefix: str) -> tuple[list[str], list[str], dict[str, Any]]:
    """Return the columns, placeholders and parameters for this table's values. Parameters start with the prefix."""
    columns: list[str] = []
    placeholders: list[str] = []
    parameters: dict[str, Any] = {}
    for column, value in values.items():
        if column.owner != owner:
            continue
        physical_values = {column.database_name: value}
        if column.column_type.is_html:
            physical_values[column.plain_text_name] = column_values.plain_text(value)
        for name_in_database, stored_value in physical_values.items():
            name = f"{prefix}_{len(columns)}"
            columns.append(name_in_database)
            placeholders.append(f"%({name})s::{column.column_type.sql_type}")
            parameters[name] = stored_value
    return columns, placeholders, parameters


@contextmanager
def translating_integrity_errors(table: Table) -> Iterator[None]:
    """Turns constraint violations into errors for the caller."""
    try:
        yield
    except IntegrityError as error:
        cause = error.__cause__
        constraint = getattr(getattr(cause, "diag", None), "constraint_name", None) or ""
        if isinstance(cause, errors.UniqueViolation):
            name = next((column.name for column in table.columns.values() if constraint == f"U{column.id}"), None)
            raise Duplicate(*([name] if name else [])) from None
        if isinstance(cause, errors.ForeignKeyViolation):
            raise InvalidInput("The referenced record does not exist.") from None
        raise


class Duplicate(Conflict):
    """Another record has this value of a unique column, or these values of columns that are unique together."""

    code = "duplicate"
    message = "Another record already has this value."

    def __init__(self, *columns: str) -> None:
        super().__init__()
        self.columns = columns

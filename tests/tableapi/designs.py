"""Helper functions that design tables and inspect the database."""

from typing import Any

from django.db import connection

from tableapi.design import saving
from tableapi.models import Column, Table


def make_table(name: str, parent: Table | None = None, **attributes: Any) -> Table:
    table = Table(name=name, label=name.capitalize(), parent=parent, **attributes)
    saving.save_table(table)
    return table


def make_column(table: Table, name: str, type_name: str = "string", **attributes: Any) -> Column:
    column = Column(table=table, name=name, type=type_name, **{"label": name.capitalize()} | attributes)
    saving.save_column(column)
    return column


def query_rows(query: str, *values: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query, values or None)
        return cursor.fetchall() if cursor.description else []


def column_types_of(table: str) -> dict[str, str]:
    """The columns of a designed table with their PostgreSQL types."""
    return dict(
        query_rows(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            f'records."{table}"',
        )
    )


def indexes_of(table: str) -> dict[str, str]:
    """The index definitions of a table, by name."""
    rows = query_rows(
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'records' AND tablename = %s", table
    )
    return {name: definition.partition(" USING ")[2] for name, definition in rows}


def insert_row(table: str, **values: Any) -> str:
    """Insert a record with plain SQL."""
    column_names = ", ".join(f'"{name}"' for name in values)
    placeholders = ", ".join("%s" for _ in values)
    values_clause = f"({column_names}) VALUES ({placeholders})" if values else "DEFAULT VALUES"
    return str(query_rows(f'INSERT INTO records."{table}" {values_clause} RETURNING sys_id', *values.values())[0][0])

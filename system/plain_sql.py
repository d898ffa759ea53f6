"""Runs one statement of SQL, where the ORM has no words for it."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

Values = Sequence[Any] | Mapping[str, Any] | None


def fetch_rows(statement: str, values: Values = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def run_statement(statement: str, values: Values = None) -> int:
    """Returns the number of changed rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)

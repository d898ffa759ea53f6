"""Runs SQL that the ORM cannot express."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection
from psycopg.sql import Composed

Values = Sequence[Any] | Mapping[str, Any] | None


def fetch_rows(statement: str | Composed, values: Values = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def run_statement(statement: str | Composed, values: Values = None) -> int:
    """Returns the number of changed rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)


@contextmanager
def server_binding_cursor() -> Iterator[psycopg.Cursor[Any]]:
    """A cursor that binds values on the server, so that bytes are sent unchanged.

    Django's cursor writes the values into the text of the statement.
    """
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        yield cursor

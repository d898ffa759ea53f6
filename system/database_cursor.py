"""Cursors that send values separately from the statement."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections


@contextmanager
def bound_cursor(alias: str = DEFAULT_DB_ALIAS) -> Iterator[psycopg.Cursor[Any]]:
    """A cursor that binds values on the server, so that bytes are sent unchanged.

    Django's cursor writes the values into the text of the statement.
    """
    connection = connections[alias]
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        yield cursor

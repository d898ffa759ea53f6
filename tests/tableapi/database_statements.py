"""Captures the statements sent to the database through any cursor, without their values.

Omits statements that read properties: a process caches properties, so whether these statements run depends on timing.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psycopg

from system.database_statements import ConnectionStatements


@contextmanager
def captured_statements() -> Iterator[list[str]]:
    statements: list[str] = []
    original_execute, original_run = psycopg.Cursor.execute, ConnectionStatements.run

    def record_and_execute(cursor: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        # Savepoint names contain the id of their thread.
        if "sys_property" not in str(query):
            statements.append(re.sub(r"\d+", "N", str(query)))
        return original_execute(cursor, query, *args, **kwargs)

    def record_and_run(connection_statements: Any, sql: bytes, values: Any) -> Any:
        statements.append(re.sub(r"\d+", "N", sql.decode()))
        return original_run(connection_statements, sql, values)

    with (
        patch.object(psycopg.Cursor, "execute", record_and_execute),
        patch.object(ConnectionStatements, "run", record_and_run),
    ):
        yield statements

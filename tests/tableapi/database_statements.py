"""Captures the statements sent to the database through any cursor, without their values.

Without those for properties too, which a process keeps for a while: whether it asks depends on when it asked last.
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
    results: list[str] = []
    execute, run = psycopg.Cursor.execute, ConnectionStatements.run

    def record_and_execute(cursor: Any, query: Any, *positional: Any, **named: Any) -> Any:
        # Savepoints are numbered, and named after their thread.
        if "sys_property" not in str(query):
            results.append(re.sub(r"\d+", "N", str(query)))
        return execute(cursor, query, *positional, **named)

    def record_and_run(statements_: Any, text: bytes, values: Any) -> Any:
        results.append(re.sub(r"\d+", "N", text.decode()))
        return run(statements_, text, values)

    with (
        patch.object(psycopg.Cursor, "execute", record_and_execute),
        patch.object(ConnectionStatements, "run", record_and_run),
    ):
        yield results

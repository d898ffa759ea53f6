"""Builds and drops indexes without blocking writers, one at a time."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import structlog
from django.db import connection, connections
from django.db.utils import Error
from psycopg import sql

logger = structlog.get_logger(__name__)


@contextmanager
def build_cursor(lock_id: int) -> Iterator[Any]:
    """A cursor in autocommit mode, as concurrent builds require; None if another process holds the lock."""
    with closing(connections.create_connection(connection.alias)) as new_connection, new_connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [lock_id])
        if not cursor.fetchone()[0]:
            yield None
            return
        # An index of a large table takes minutes, and a build waits for all older transactions to end.
        cursor.execute("SET statement_timeout = 0; SET lock_timeout = 0")
        yield cursor
        with suppress(Error):  # the connection may be lost; the server closes it, with its locks, only after a while
            cursor.execute("SELECT pg_advisory_unlock(%s)", [lock_id])


def execute(cursor: Any, name: str, *statements: sql.Composed) -> bool:
    """Returns False on failure, for example if a column was dropped, so that the caller can continue."""
    started_at = time.monotonic()
    try:
        for statement in statements:
            cursor.execute(statement)
    except Error as error:
        logger.warning("index_not_built", index=name, kind=type(error.__cause__ or error).__name__)
        return False
    logger.info("index_changed", index=name, seconds=round(time.monotonic() - started_at, 1))
    return True

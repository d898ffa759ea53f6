"""Builds and drops indexes without blocking writers, one at a time."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import structlog
from django.db import connection, connections
from django.db.utils import Error
from psycopg import sql

logger = structlog.get_logger(__name__)


@contextmanager
def build_cursor(lock_id: int) -> Iterator[Any]:
    """A cursor outside transactions, as concurrent builds require; None while another builder has the lock."""
    with closing(connections.create_connection(connection.alias)) as new_connection, new_connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [lock_id])
        if not cursor.fetchone()[0]:
            yield None
            return
        # A large table takes minutes, and a build waits for the end of all older transactions.
        cursor.execute("SET statement_timeout = 0; SET lock_timeout = 0")
        yield cursor


def execute(cursor: Any, name: str, *statements: sql.Composed) -> bool:
    """Returns False on failure, for example of a dropped column, so that other indexes are still built."""
    started_at = time.monotonic()
    try:
        for statement in statements:
            cursor.execute(statement)
    except Error as error:
        logger.warning("index_not_built", index=name, kind=type(error.__cause__ or error).__name__)
        return False
    logger.info("index_changed", index=name, seconds=round(time.monotonic() - started_at, 1))
    return True

"""Builds and drops indexes without blocking writers: one builder, one index at a time."""

from __future__ import annotations

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
def builder(lock: int) -> Iterator[Any]:
    """A cursor outside every transaction, as that wants it; None while another builder has the lock."""
    with closing(connections.create_connection(connection.alias)) as own, own.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [lock])
        if not cursor.fetchone()[0]:
            yield None
            return
        # A big table takes minutes, and the end of every older transaction is waited for.
        cursor.execute("SET statement_timeout = 0; SET lock_timeout = 0")
        yield cursor


def run(cursor: Any, name: str, *statements: sql.Composed) -> bool:
    """One that cannot be built, its column being dropped just now perhaps, must not hold up the others."""
    began = time.monotonic()
    try:
        for statement in statements:
            cursor.execute(statement)
    except Error as error:
        logger.warning("index_not_built", index=name, kind=type(error.__cause__ or error).__name__)
        return False
    logger.info("index_changed", index=name, seconds=round(time.monotonic() - began, 1))
    return True

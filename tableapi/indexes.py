"""In charge of indexes that are built while records are written: finds the missing, drops the surplus."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import structlog
from django.db import connection, connections
from django.db.models import Q
from django.db.utils import Error
from psycopg import sql

from tableapi import physical
from tableapi.models import Column, Table
from tableapi.physical import Index

logger = structlog.get_logger(__name__)

LOCK = 7_301_011
OURS = re.compile(r"[IW][0-9a-z]+")

FOUND = """
    SELECT namespace.nspname, class.relname, index.indisvalid
    FROM pg_index index
    JOIN pg_class class ON class.oid = index.indexrelid
    JOIN pg_namespace namespace ON namespace.oid = class.relnamespace
    WHERE namespace.nspname IN ('public', 'records')
"""


def missing() -> list[Index]:
    """What the catalogue wants and the database has not, or only as what an interrupted build left."""
    found = _found()
    return [index for index in _wanted() if not found.get((index.schema, index.name))]


def surplus() -> list[tuple[str, str]]:
    """Schema and name of ours that nothing wants any more."""
    wanted = {(index.schema, index.name) for index in _wanted()}
    return [place for place in _found() if OURS.fullmatch(place[1]) and place not in wanted]


def build() -> list[str]:
    """Build and drop, one at a time; returns the names. Whoever comes second leaves it to the first."""
    with closing(_own_connection()) as own, own.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        if not cursor.fetchone()[0]:
            return []
        # A big table takes minutes, and the end of every older transaction is waited for.
        cursor.execute("SET statement_timeout = 0; SET lock_timeout = 0")
        done = [index.name for index in missing() if _try(cursor, index.name, *_anew(index))]
        over = [name for schema, name in surplus() if _try(cursor, name, physical.drop_index(schema, name, True))]
        return done + over


def _own_connection() -> Any:
    """Outside every transaction, as building beside writers wants it."""
    return connections.create_connection(connection.alias)


def _anew(index: Index) -> tuple[sql.Composed, ...]:
    return index.drop(concurrently=True), index.create(concurrently=True)


def _try(cursor: Any, name: str, *statements: sql.Composed) -> bool:
    """One that cannot be built, its column being dropped just now perhaps, must not hold up the others."""
    try:
        for statement in statements:
            cursor.execute(statement)
    except Error as error:
        logger.warning("index_not_built", index=name, kind=type(error.__cause__ or error).__name__)
        return False
    logger.info("index_changed", index=name)
    return True


def _found() -> dict[tuple[str, str], bool]:
    with connection.cursor() as cursor:
        cursor.execute(FOUND)
        return {(schema, name): is_valid for schema, name, is_valid in cursor.fetchall()}


def _wanted() -> Iterator[Index]:
    for table in Table.objects.filter(is_system=False, parent=None, children__isnull=False).distinct():
        yield physical.family_index(table.pk, table.name)
    marked = Q(is_indexed=True) | Q(is_display=True) | Q(is_unique=True)
    columns = Column.objects.select_related("table")
    always = Q(type__in=[Column.Type.REFERENCE, Column.Type.LIST])
    for column in columns.filter(marked | always, table__is_system=False):
        yield from physical.wanted_indexes(column, column.table.name)
    # The product's own tables have the indexes of their models; only text without regard to case is no matter of these.
    for column in columns.filter(marked, table__is_system=True, type=Column.Type.STRING):
        yield from physical.wanted_indexes(column, column.table.name, "public")

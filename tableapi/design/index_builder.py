"""Finds and builds missing indexes of designed tables while records are written; drops surplus ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.db import connection
from django.db.models import Q
from psycopg import sql

from system.background import index_builds
from tableapi.catalogue.column_types import names_where
from tableapi.ddl import physical_names
from tableapi.ddl.physical_names import Index
from tableapi.models import Column, Table

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
    with index_builds.builder(LOCK) as cursor:
        if cursor is None:
            return []
        done = [index.name for index in missing() if index_builds.run(cursor, index.name, *_anew(index))]
        gone = [(name, physical_names.drop_index(schema, name, True)) for schema, name in surplus()]
        return done + [name for name, statement in gone if index_builds.run(cursor, name, statement)]


def _anew(index: Index) -> tuple[sql.Composed, ...]:
    return index.drop(concurrently=True), index.create(concurrently=True)


def _found() -> dict[tuple[str, str], bool]:
    with connection.cursor() as cursor:
        cursor.execute(FOUND)
        return {(schema, name): is_valid for schema, name, is_valid in cursor.fetchall()}


def _wanted() -> Iterator[Index]:
    for table in Table.objects.filter(is_system=False, parent=None, children__isnull=False).distinct():
        yield physical_names.family_index(table.pk, table.name)
    marked = Q(is_indexed=True) | Q(is_display=True) | Q(is_unique=True)
    columns = Column.objects.select_related("table")
    always = Q(type__in=names_where(lambda row: row.has_target))
    for column in columns.filter(marked | always, table__is_system=False):
        yield from physical_names.wanted_indexes(column, column.table.name)
    # The product's own tables have the indexes of their models; only text without regard to case is no matter of these.
    texts = names_where(lambda row: row.is_text and row.has_main_index)
    for column in columns.filter(marked, table__is_system=True, type__in=texts):
        yield from physical_names.wanted_indexes(column, column.table.name, "public")

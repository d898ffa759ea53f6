"""Builds missing indexes of designed tables without blocking writes, and drops surplus ones."""

import re
from collections.abc import Iterator

from django.db.models import Q

from system.background import index_builds
from system.plain_sql import fetch_rows
from tableapi.catalogue.column_types import type_names_where
from tableapi.ddl import physical_names
from tableapi.ddl.physical_names import Index
from tableapi.models import Column, Table

INDEX_BUILD_LOCK_ID = 7_301_011
INDEX_NAME = re.compile(r"[IW][0-9a-z]+")

EXISTING_INDEXES = """
    SELECT namespace.nspname, class.relname, index.indisvalid
    FROM pg_index index
    JOIN pg_class class ON class.oid = index.indexrelid
    JOIN pg_namespace namespace ON namespace.oid = class.relnamespace
    WHERE namespace.nspname IN ('public', 'records')
"""


def missing_indexes() -> list[Index]:
    """Indexes that the catalogue requires and that are missing or invalid in the database."""
    existing = _find_indexes()
    return [index for index in _required_indexes() if not existing.get((index.schema, index.name))]


def surplus_indexes() -> list[tuple[str, str]]:
    """Schema and name of our indexes that are no longer needed."""
    required = {(index.schema, index.name) for index in _required_indexes()}
    return [(schema, name) for schema, name in sorted(_find_indexes().keys() - required) if INDEX_NAME.fullmatch(name)]


def build_indexes() -> list[str]:
    """Build and drop indexes, one at a time; return their names. Only one process does this at a time."""
    with index_builds.build_cursor(INDEX_BUILD_LOCK_ID) as cursor:
        if cursor is None:
            return []
        rebuilds = [(index.name, index.drop_sql(True), index.create_sql(True)) for index in missing_indexes()]
        built = [name for name, *statements in rebuilds if index_builds.execute(cursor, name, *statements)]
        drops = [(name, physical_names.drop_index_sql(schema, name, True)) for schema, name in surplus_indexes()]
        return built + [name for name, statement in drops if index_builds.execute(cursor, name, statement)]


def _find_indexes() -> dict[tuple[str, str], bool]:
    return {(schema, name): is_valid for schema, name, is_valid in fetch_rows(EXISTING_INDEXES)}


def _required_indexes() -> Iterator[Index]:
    for table in Table.objects.filter(is_system=False, parent=None, children__isnull=False).distinct():
        yield physical_names.family_index(table.pk, table.name)
    has_option = Q(is_indexed=True) | Q(is_display=True) | Q(is_unique=True)
    columns = Column.objects.select_related("table")
    has_target = Q(type__in=type_names_where(lambda row: row.has_target))
    for column in columns.filter(has_option | has_target, physical_name=""):
        yield from physical_names.column_indexes(column, column.table.name)
    # Product tables have the indexes of their models, which do not include case-insensitive ones on text.
    text_types = type_names_where(lambda row: row.is_text and row.has_main_index)
    for column in columns.filter(has_option, type__in=text_types).exclude(physical_name=""):
        yield from physical_names.column_indexes(column, column.table.name, "public")

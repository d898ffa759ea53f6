"""Names and types in the database: columns, indexes and their expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from psycopg import sql

from system.encoded_query import ComparisonKind
from tableapi.catalogue.column_type import ColumnType
from tableapi.catalogue.definitions import plain_name
from tableapi.sql import operators

SCHEMA = "records"
ID = sql.SQL('varchar(32) COLLATE "C"')


class IndexableColumn(Protocol):
    """What the naming asks of a column."""

    @property
    def id(self) -> str: ...
    @property
    def column_type(self) -> ColumnType: ...
    @property
    def physical(self) -> str: ...
    @property
    def is_unique(self) -> bool: ...
    @property
    def is_display(self) -> bool: ...
    @property
    def is_indexed(self) -> bool: ...
    @property
    def converted_from_text(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Index:
    """An index that the product makes; its name says what it is for, so a rename of a label changes nothing."""

    name: str
    schema: str
    table: str
    body: sql.Composable
    is_unique: bool = False

    def create(self, concurrently: bool = False) -> sql.Composed:
        return sql.SQL("CREATE {unique} INDEX {concurrently} IF NOT EXISTS {name} ON {table} {body}").format(
            unique=sql.SQL("UNIQUE" if self.is_unique else ""),
            concurrently=sql.SQL("CONCURRENTLY" if concurrently else ""),
            name=sql.Identifier(self.name),
            table=sql.Identifier(self.schema, self.table),
            body=self.body,
        )

    def drop(self, concurrently: bool = False) -> sql.Composed:
        return drop_index(self.schema, self.name, concurrently)


def drop_index(schema: str, name: str, concurrently: bool = False) -> sql.Composed:
    word = sql.SQL("CONCURRENTLY" if concurrently else "")
    return sql.SQL("DROP INDEX {} IF EXISTS {}").format(word, sql.Identifier(schema, name))


def searched(column: IndexableColumn) -> sql.Identifier:
    """The column that filters and sorting look at."""
    return sql.Identifier(plain_name(column.id) if column.column_type.is_html else column.physical)


def key(column: IndexableColumn) -> sql.Composable:
    """What is compared and sorted by: text without regard to case, the empty one like none.

    `pg_c_utf8` comes with PostgreSQL itself: every installation sorts alike, no update of an operating system
    makes an index wrong.
    """
    if not column.column_type.is_text:
        return searched(column)
    # The query's own expression: an index on any other would not be used.
    return sql.SQL(operators.key(ComparisonKind.TEXT, "{}")).format(searched(column))


def unique_index(column: IndexableColumn, table: str, schema: str = SCHEMA) -> Index:
    return Index(f"U{column.id}", schema, table, sql.SQL("(({}))").format(key(column)), is_unique=True)


def main_index(column: IndexableColumn, table: str, schema: str = SCHEMA) -> Index:
    shape = sql.SQL("USING gin ({})") if column.column_type.is_list else sql.SQL("(({}), sys_id)")
    return Index(f"I{column.id}", schema, table, shape.format(key(column)))


def word_index(column: IndexableColumn, table: str, schema: str = SCHEMA) -> Index:
    words: sql.Composable = searched(column)
    if not column.converted_from_text:
        return Index(f"W{column.id}", schema, table, sql.SQL("USING gin (to_tsvector('simple', {}))").format(words))
    # What was a text before has no plain text beside it: the query asks for one or the other, and so must the index.
    both = sql.SQL("coalesce({}, {})").format(words, sql.Identifier(column.physical))
    return Index(f"W{column.id}c", schema, table, sql.SQL("USING gin (to_tsvector('simple', {}))").format(both))


def family_index(table_id: str, table: str) -> Index:
    """Finds the records of one table among those of its parent."""
    return Index(f"I{table_id}", SCHEMA, table, sql.SQL("(sys_db_table_id, sys_id)"))


def wanted_indexes(column: IndexableColumn, table: str, schema: str = SCHEMA) -> Iterator[Index]:
    """What the background builds for a column; the unique one is made at once, with the column or its mark."""
    is_marked = column.is_indexed or column.is_display or column.is_unique
    column_type = column.column_type
    if (column_type.has_target or is_marked) and column_type.has_main_index:
        yield main_index(column, table, schema)
    if column.is_indexed and column_type.is_text:
        yield word_index(column, table, schema)


def sequence(table_id: str) -> str:
    """Gives the numbers of the records of a table."""
    return f"N{table_id}"

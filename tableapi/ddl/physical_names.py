"""Names and types in the database: columns, indexes and their expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg import sql

from system.encoded_query import ComparisonKind
from tableapi.catalogue.definitions import Column, plain_text_column_name
from tableapi.sql import operators

if TYPE_CHECKING:
    from tableapi import models

    # The model, or its definition in the catalogue.
    IndexableColumn = models.Column | Column

RECORDS_SCHEMA = "records"
ID_TYPE = sql.SQL('varchar(32) COLLATE "C"')


@dataclass(frozen=True, slots=True)
class Index:
    """An index; its name contains the id of its column or table."""

    name: str
    schema: str
    table: str
    body: sql.Composable
    is_unique: bool = False

    def create_sql(self, concurrently: bool = False) -> sql.Composed:
        return sql.SQL("CREATE {unique} INDEX {concurrently} IF NOT EXISTS {name} ON {table} {body}").format(
            unique=sql.SQL("UNIQUE" if self.is_unique else ""),
            concurrently=sql.SQL("CONCURRENTLY" if concurrently else ""),
            name=sql.Identifier(self.name),
            table=sql.Identifier(self.schema, self.table),
            body=self.body,
        )

    def drop_sql(self, concurrently: bool = False) -> sql.Composed:
        return drop_index_sql(self.schema, self.name, concurrently)


def drop_index_sql(schema: str, name: str, concurrently: bool = False) -> sql.Composed:
    concurrently_sql = sql.SQL("CONCURRENTLY" if concurrently else "")
    return sql.SQL("DROP INDEX {} IF EXISTS {}").format(concurrently_sql, sql.Identifier(schema, name))


def searchable_column(column: IndexableColumn) -> sql.Identifier:
    """The database column for filters and sorting."""
    return sql.Identifier(plain_text_column_name(column.id) if column.column_type.is_html else column.database_name)


def comparison_key(column: IndexableColumn) -> sql.Composable:
    """The expression for comparing and sorting. Text is compared case-insensitively, and empty text is treated as NULL.

    `pg_c_utf8` is part of PostgreSQL, so every installation sorts in the same order and no update of the operating
    system invalidates an index.
    """
    if not column.column_type.is_text:
        return searchable_column(column)
    # The same expression as in queries; otherwise they would not use the index.
    return sql.SQL(operators.comparison_key(ComparisonKind.TEXT, "{}")).format(searchable_column(column))


def unique_index(column: IndexableColumn, table: str) -> Index:
    return Index(
        f"U{column.id}", RECORDS_SCHEMA, table, sql.SQL("(({}))").format(comparison_key(column)), is_unique=True
    )


def main_index(column: IndexableColumn, table: str, schema: str) -> Index:
    body = sql.SQL("USING gin ({})") if column.column_type.is_list else sql.SQL("(({}), sys_id)")
    return Index(f"I{column.id}", schema, table, body.format(comparison_key(column)))


def word_index(column: IndexableColumn, table: str, schema: str) -> Index:
    words: sql.Composable = searchable_column(column)
    if not column.converted_from_text:
        return Index(f"W{column.id}", schema, table, sql.SQL("USING gin (to_tsvector('simple', {}))").format(words))
    # Values from before the conversion have no plain text, so the query and the index fall back to the text itself.
    text = sql.SQL("coalesce({}, {})").format(words, sql.Identifier(column.database_name))
    return Index(f"W{column.id}c", schema, table, sql.SQL("USING gin (to_tsvector('simple', {}))").format(text))


def family_index(table_id: str, table: str) -> Index:
    """Finds the records of one table in the root table of its family."""
    return Index(f"I{table_id}", RECORDS_SCHEMA, table, sql.SQL("(sys_db_table_id, sys_id)"))


def column_indexes(column: IndexableColumn, table: str, schema: str = RECORDS_SCHEMA) -> Iterator[Index]:
    """The indexes that the worker builds for a column. A unique index is created immediately and replaces the main
    index, except in product tables, where it is case-sensitive."""
    column_type = column.column_type
    needs_lookup = column_type.has_target or column.is_display or column.is_unique
    has_unique_index = column.is_unique and schema == RECORDS_SCHEMA
    if (column.is_indexed or (needs_lookup and not has_unique_index)) and column_type.has_main_index:
        yield main_index(column, table, schema)
    if column.is_indexed and column_type.is_text:
        yield word_index(column, table, schema)


def sequence_name(table_id: str) -> str:
    return f"N{table_id}"

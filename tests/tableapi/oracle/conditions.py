"""Turns a parsed query into a predicate for a record as a caller or a rule sees it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from system.encoded_query import RECORDS, Condition, Distance, Group, Path, Query, SubQuery, ValueKind, read_value
from system.encoded_query.dialect import read_whole_path
from tableapi.catalogue.definitions import Column, Table

from .column_types import TYPE_ROWS
from .literals import comparable_value
from .operators import OperatorUse, build_predicate
from .world import EvaluationContext, QueryRefused, Row

RowPredicate = Callable[[Row], bool]


class ValueReader(Protocol):
    """Reads columns and values: unrestricted for a rule, restricted for a caller."""

    @property
    def context(self) -> EvaluationContext: ...

    def column(self, table: Table, path: Path) -> Column:
        """The column at the end of the path; raises `QueryRefused` if there is none."""

    def value(self, table: Table, row: Row, path: Path) -> Any:
        """The value at the path in this record; None if it is missing or hidden."""

    def knows_table(self, name: str) -> bool:
        """Whether INSTANCEOF accepts the table."""


def query_predicate(reader: ValueReader, table: Table, query: Query) -> RowPredicate:
    """The query as a predicate; raises an error if any condition is invalid, even if there are no records."""
    if not query.groups:
        return lambda row: True
    return any_predicate(group_predicate(reader, table, group) for group in query.groups)


def group_predicate(reader: ValueReader, table: Table, group: Group) -> RowPredicate:
    return all_predicates(
        any_predicate(factor_predicate(reader, table, factor) for factor in term.factors) for term in group.terms
    )


def factor_predicate(reader: ValueReader, table: Table, factor: Condition | SubQuery) -> RowPredicate:
    if isinstance(factor, SubQuery):
        return any_predicate(group_predicate(reader, table, group) for group in factor.groups)
    if factor.operator == "ARE":
        return word_search_predicate(reader, table, factor)
    if factor.operator == "INSTANCEOF":
        return instance_predicate(reader, table, factor)
    return condition_predicate(reader, table, factor)


def any_predicate(predicates: Iterable[RowPredicate]) -> RowPredicate:
    predicates = list(predicates)
    return lambda row: any(predicate(row) for predicate in predicates)


def all_predicates(predicates: Iterable[RowPredicate]) -> RowPredicate:
    predicates = list(predicates)
    return lambda row: all(predicate(row) for predicate in predicates)


def condition_predicate(reader: ValueReader, table: Table, condition: Condition) -> RowPredicate:
    column = reader.column(table, condition.path)
    other_path = compared_path(condition)
    if other_path is None:
        predicate = build_predicate(OperatorUse(reader.context, condition, column))
        return lambda row: predicate(reader.value(table, row, condition.path), None)
    predicate = build_predicate(OperatorUse(reader.context, condition, column, reader.column(table, other_path)))
    return lambda row: predicate(reader.value(table, row, condition.path), reader.value(table, row, other_path))


def compared_path(condition: Condition) -> Path | None:
    """The path of the column that the condition compares with, if any."""
    if condition.row.kind is ValueKind.PATH:
        return read_whole_path(condition.value, RECORDS)
    value = read_value(condition)
    return value.path if isinstance(value, Distance) else None


def word_search_predicate(reader: ValueReader, table: Table, condition: Condition) -> RowPredicate:
    """ARE: "words, each in one of the readable text columns marked indexed; no such column: 400"."""
    reader.column(table, ("sys_id",))
    columns = [
        column for column in table.columns.values() if is_searchable(column) and is_readable(reader, table, column)
    ]
    if not columns:
        raise QueryRefused
    words = read_value(condition)
    assert isinstance(words, tuple)

    def predicate(row: Row) -> bool:
        record_words = set()
        for column in columns:
            text = comparable_value(reader.value(table, row, (column.name,)), column) or ""
            record_words.update(re.findall("[a-z0-9]+", text))
        is_visible = reader.value(table, row, ("sys_id",)) is not None
        return is_visible and all(str(word).lower() in record_words for word in words)

    return predicate


def is_searchable(column: Column) -> bool:
    return TYPE_ROWS[column.type].family == "text" and column.is_indexed and column.name != "sys_id"


def is_readable(reader: ValueReader, table: Table, column: Column) -> bool:
    try:
        reader.column(table, (column.name,))
    except QueryRefused:
        return False
    return True


def instance_predicate(reader: ValueReader, table: Table, condition: Condition) -> RowPredicate:
    reader.column(table, ("sys_id",))
    world = reader.context.world
    if not reader.knows_table(condition.value):
        raise QueryRefused
    table_family = world.catalogue.tables[condition.value].family

    def predicate(row: Row) -> bool:
        is_visible = reader.value(table, row, ("sys_id",)) is not None
        return is_visible and world.own_table(table, row).name in table_family

    return predicate

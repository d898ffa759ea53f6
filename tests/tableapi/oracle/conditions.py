"""A parsed query as a test of one record, as a caller or a rule sees it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from system.encoded_query import RECORDS, Condition, Distance, Group, Path, Query, SubQuery, ValueKind, read_value
from system.encoded_query.dialect import read_whole_path
from tableapi.catalogue.definitions import Column, Table

from .column_types import TYPE_ROWS
from .literals import comparable_value
from .operators import OperatorUse, build_test
from .world import EvaluationContext, QueryRefused, Row

RowTest = Callable[[Row], bool]


class ValueReader(Protocol):
    """How names and values are read: unrestricted for a rule, restricted for a caller."""

    @property
    def context(self) -> EvaluationContext: ...

    def column(self, table: Table, path: Path) -> Column:
        """The column at the end of the path, or `QueryRefused`."""

    def value(self, table: Table, row: Row, path: Path) -> Any:
        """The value at the path in this record; None if it is missing or hidden."""

    def knows_table(self, name: str) -> bool:
        """Whether INSTANCEOF may name it."""


def query_test(values: ValueReader, table: Table, query: Query) -> RowTest:
    """The query as a test; raises an error if any condition is invalid, even without records."""
    if not query.groups:
        return lambda row: True
    return any_test(group_test(values, table, group) for group in query.groups)


def group_test(values: ValueReader, table: Table, group: Group) -> RowTest:
    return all_tests(any_test(factor_test(values, table, factor) for factor in term.factors) for term in group.terms)


def factor_test(values: ValueReader, table: Table, factor: Condition | SubQuery) -> RowTest:
    if isinstance(factor, SubQuery):
        return any_test(group_test(values, table, group) for group in factor.groups)
    if factor.operator == "ARE":
        return word_search_test(values, table, factor)
    if factor.operator == "INSTANCEOF":
        return instance_test(values, table, factor)
    return condition_test(values, table, factor)


def any_test(tests: Iterable[RowTest]) -> RowTest:
    tests = list(tests)
    return lambda row: any(test(row) for test in tests)


def all_tests(tests: Iterable[RowTest]) -> RowTest:
    tests = list(tests)
    return lambda row: all(test(row) for test in tests)


def condition_test(values: ValueReader, table: Table, condition: Condition) -> RowTest:
    column = values.column(table, condition.path)
    other_path = compared_path(condition)
    if other_path is None:
        test = build_test(OperatorUse(values.context, condition, column))
        return lambda row: test(values.value(table, row, condition.path), None)
    test = build_test(OperatorUse(values.context, condition, column, values.column(table, other_path)))
    return lambda row: test(values.value(table, row, condition.path), values.value(table, row, other_path))


def compared_path(condition: Condition) -> Path | None:
    """The other column that the condition names."""
    if condition.row.kind is ValueKind.PATH:
        return read_whole_path(condition.value, RECORDS)
    value = read_value(condition)
    return value.path if isinstance(value, Distance) else None


def word_search_test(values: ValueReader, table: Table, condition: Condition) -> RowTest:
    """ARE: "words, each in one of the readable text columns marked indexed; no such column: 400"."""
    values.column(table, ("sys_id",))
    columns = [
        column for column in table.columns.values() if is_searchable(column) and is_readable(values, table, column)
    ]
    if not columns:
        raise QueryRefused
    words = read_value(condition)
    assert isinstance(words, tuple)

    def test(row: Row) -> bool:
        record_words = set()
        for column in columns:
            text = comparable_value(values.value(table, row, (column.name,)), column) or ""
            record_words.update(re.findall("[a-z0-9]+", text))
        is_visible = values.value(table, row, ("sys_id",)) is not None
        return is_visible and all(str(word).lower() in record_words for word in words)

    return test


def is_searchable(column: Column) -> bool:
    return TYPE_ROWS[column.type].family == "text" and column.is_indexed and column.name != "sys_id"


def is_readable(values: ValueReader, table: Table, column: Column) -> bool:
    try:
        values.column(table, (column.name,))
    except QueryRefused:
        return False
    return True


def instance_test(values: ValueReader, table: Table, condition: Condition) -> RowTest:
    values.column(table, ("sys_id",))
    world = values.context.world
    if not values.knows_table(condition.value):
        raise QueryRefused
    table_family = world.catalogue.tables[condition.value].family

    def test(row: Row) -> bool:
        is_visible = values.value(table, row, ("sys_id",)) is not None
        return is_visible and world.own_table(table, row).name in table_family

    return test

"""Who may do what: the levels of access rules, and the two ways to see a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from system.encoded_query import Path, QueryError, parse
from tableapi.catalogue.definitions import READ, Column, Rule, Table

from .conditions import RowTest, query_test
from .world import QueryRefused, Question, Row


def rule_levels(table: Table, column: str | None) -> list[tuple[str | None, str]]:
    """(table, column) of each level in turn: "table.c, parent.c, any.c, table.*, parent.*, any.*"."""
    tables: list[str | None] = list(table.lineage)
    if not table.is_system:
        tables.append(None)
    columns = [""] if column is None else [column, "*"]
    return [(each_table, each_column) for each_column in columns for each_table in tables]


def deciding_rules(question: Question, operation: str, table: Table, column: str | None) -> list[Rule]:
    """The rules of the first level that has one. Broken ones count here, they only never hold."""
    for level in rule_levels(table, column):
        result = [
            rule
            for rule in question.world.catalogue.rules
            if rule.operation == operation and (rule.table, rule.column) == level
        ]
        if result:
            return result
    return []


def is_allowed(
    question: Question, operation: str, own_table: Table, column: str | None, condition_holds: Callable[[Rule], bool]
) -> bool:
    """Whether the rules for records of `own` let the caller through, given which conditions hold."""
    caller = question.caller
    if caller.is_admin and own_table.is_system:
        return True
    rules = deciding_rules(question, operation, own_table, column)
    if not rules:
        # "Record without any rule: denied. Column without any rule: allowed where the record is."
        return caller.is_admin or column is not None
    if caller.is_admin and any(rule.admin_overrides for rule in rules):
        return True
    return any(
        not rule.is_broken and (not rule.roles or rule.roles & caller.role_names) and condition_holds(rule)
        for rule in rules
    )


def can_access(question: Question, operation: str, table: Table, row: Row, column: str | None = None) -> bool:
    """Whether the caller may do this with the record; with `column`, what the column's rules alone say."""
    own_table = question.world.own_table(table, row)

    def rule_condition_holds(rule: Rule) -> bool:
        test = condition_of(question, rule, own_table)
        return test is not None and test(row)

    return is_allowed(question, operation, own_table, column, rule_condition_holds)


def could_ever_access(question: Question, operation: str, own_table: Table, column: str | None = None) -> bool:
    """The same without a record: whether there might be one of this very table that passes."""
    return is_allowed(
        question, operation, own_table, column, lambda rule: condition_of(question, rule, own_table) is not None
    )


def condition_of(question: Question, rule: Rule, own_table: Table) -> RowTest | None:
    """The condition of a rule as a test, or None when it cannot be query_test.

    Its names are those of the rule's table; a rule for any table is read anew for each table it is applied to.
    """
    table = question.world.catalogue.tables.get(rule.table) if rule.table else own_table
    if table is None:
        return None
    try:
        query = parse(rule.condition)
        # Chosen: a condition that sorts was meant to be something else.
        return None if query.order else query_test(UnrestrictedValues(question), table, query)
    except (QueryRefused, QueryError):
        return None


@dataclass(frozen=True)
class UnrestrictedValues:
    """How the condition of a rule sees a record: everything, but write-only columns."""

    question: Question

    def column(self, table: Table, path: Path) -> Column:
        name, *further = path
        column = table.columns.get(name)
        if column is None or not column.is_readable:
            raise QueryRefused
        return self.column(target_table(self.question, column), tuple(further)) if further else column

    def value(self, table: Table, row: Row, path: Path) -> Any:
        name, *further = path
        value = row[name]
        if not further:
            return value
        target = target_table(self.question, table.columns[name])
        result = self.question.world.find(target, value)
        return None if result is None else self.value(target, result, tuple(further))

    def knows_table(self, name: str) -> bool:
        return name in self.question.world.catalogue.tables


@dataclass(frozen=True)
class ReadableValues:
    """How the caller sees a record: "an unreadable column behaves as one that does not exist"."""

    question: Question

    def column(self, table: Table, path: Path) -> Column:
        name, *further = path
        column = table.columns.get(name)
        if column is None or not column.is_readable or not self.ever_reads(table, column.name):
            raise QueryRefused
        return self.column(target_table(self.question, column), tuple(further)) if further else column

    def value(self, table: Table, row: Row, path: Path) -> Any:
        name, *further = path
        if not can_access(self.question, READ, table, row, name):
            return None
        value = row[name]
        if not further:
            return value
        target = target_table(self.question, table.columns[name])
        result = self.question.world.find(target, value)
        if result is None or not can_access(self.question, READ, target, result):
            return None
        return self.value(target, result, tuple(further))

    def knows_table(self, name: str) -> bool:
        tables = self.question.world.catalogue.tables
        return name in tables and self.ever_reads(tables[name], None)

    def ever_reads(self, table: Table, column: str | None) -> bool:
        """Whether any record of the family, of some own table, might show it."""
        tables_of_family = [self.question.world.catalogue.tables[name] for name in table.family]
        return any(
            could_ever_access(self.question, READ, owner)
            and (column is None or could_ever_access(self.question, READ, owner, column))
            for owner in tables_of_family
        )


def target_table(question: Question, column: Column) -> Table:
    """The table behind a reference; Refused when there is none to walk to."""
    target = question.world.catalogue.tables.get(column.reference or "")
    if column.type != "reference" or target is None:
        raise QueryRefused
    return target

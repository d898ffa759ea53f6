"""Access rules, and the values of a record that callers and rule conditions can read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from system.encoded_query import Path, QueryError, parse
from tableapi.catalogue.definitions import READ, Column, Rule, Table

from .conditions import RowPredicate, query_predicate
from .world import EvaluationContext, QueryRefused, Row


def rule_levels(table: Table, column: str | None) -> list[tuple[str | None, str]]:
    """The (table, column) of each level in order: "table.c, parent.c, any.c, table.*, parent.*, any.*"."""
    tables: list[str | None] = list(table.lineage)
    if not table.is_system:
        tables.append(None)
    columns = [""] if column is None else [column, "*"]
    return [(each_table, each_column) for each_column in columns for each_table in tables]


def deciding_rules(context: EvaluationContext, operation: str, table: Table, column: str | None) -> list[Rule]:
    """The rules of the first level that has any. Broken rules count too, but never hold."""
    for level in rule_levels(table, column):
        rules = [
            rule
            for rule in context.world.catalogue.rules
            if rule.operation == operation and (rule.table, rule.column) == level
        ]
        if rules:
            return rules
    return []


def is_allowed(
    context: EvaluationContext,
    operation: str,
    own_table: Table,
    column: str | None,
    condition_holds: Callable[[Rule], bool],
) -> bool:
    """Whether the rules for records of `own_table` allow the operation, given which conditions hold."""
    caller = context.caller
    if caller.is_admin and own_table.is_system:
        return True
    rules = deciding_rules(context, operation, own_table, column)
    if not rules:
        # "Record without any rule: denied. Column without any rule: allowed where the record is."
        return caller.is_admin or column is not None
    if caller.is_admin and any(rule.admin_overrides for rule in rules):
        return True
    return any(
        not rule.is_broken and (not rule.roles or rule.roles & caller.role_names) and condition_holds(rule)
        for rule in rules
    )


def can_access(context: EvaluationContext, operation: str, table: Table, row: Row, column: str | None = None) -> bool:
    """Whether the caller may perform the operation on the record; with `column`, by the column rules alone."""
    own_table = context.world.own_table(table, row)

    def rule_condition_holds(rule: Rule) -> bool:
        predicate = condition_of(context, rule, own_table)
        return predicate is not None and predicate(row)

    return is_allowed(context, operation, own_table, column, rule_condition_holds)


def could_ever_access(context: EvaluationContext, operation: str, own_table: Table, column: str | None = None) -> bool:
    """Whether the rules could allow the operation on any record of this table."""
    return is_allowed(
        context, operation, own_table, column, lambda rule: condition_of(context, rule, own_table) is not None
    )


def condition_of(context: EvaluationContext, rule: Rule, own_table: Table) -> RowPredicate | None:
    """The condition of a rule as a predicate, or None if it is invalid.

    Its names refer to the rule's table; a rule for any table is parsed again for each table.
    """
    table = context.world.catalogue.tables.get(rule.table) if rule.table else own_table
    if table is None:
        return None
    try:
        query = parse(rule.condition)
        # A condition with a sort key is invalid.
        return None if query.order else query_predicate(UnrestrictedValues(context), table, query)
    except (QueryRefused, QueryError):
        return None


@dataclass(frozen=True)
class UnrestrictedValues:
    """A record as the condition of a rule sees it: all columns except write-only ones."""

    context: EvaluationContext

    def column(self, table: Table, path: Path) -> Column:
        name, *remaining_path = path
        column = table.columns.get(name)
        if column is None or not column.is_readable:
            raise QueryRefused
        return self.column(target_table(self.context, column), tuple(remaining_path)) if remaining_path else column

    def value(self, table: Table, row: Row, path: Path) -> Any:
        name, *remaining_path = path
        value = row[name]
        if not remaining_path:
            return value
        target = target_table(self.context, table.columns[name])
        referenced_row = self.context.world.find(target, value)
        return None if referenced_row is None else self.value(target, referenced_row, tuple(remaining_path))

    def knows_table(self, name: str) -> bool:
        return name in self.context.world.catalogue.tables


@dataclass(frozen=True)
class ReadableValues:
    """A record as the caller sees it: "an unreadable column behaves as one that does not exist"."""

    context: EvaluationContext

    def column(self, table: Table, path: Path) -> Column:
        name, *remaining_path = path
        column = table.columns.get(name)
        if column is None or not column.is_readable or not self.can_ever_read(table, column.name):
            raise QueryRefused
        return self.column(target_table(self.context, column), tuple(remaining_path)) if remaining_path else column

    def value(self, table: Table, row: Row, path: Path) -> Any:
        name, *remaining_path = path
        if not can_access(self.context, READ, table, row, name):
            return None
        value = row[name]
        if not remaining_path:
            return value
        target = target_table(self.context, table.columns[name])
        referenced_row = self.context.world.find(target, value)
        if referenced_row is None or not can_access(self.context, READ, target, referenced_row):
            return None
        return self.value(target, referenced_row, tuple(remaining_path))

    def knows_table(self, name: str) -> bool:
        tables = self.context.world.catalogue.tables
        return name in tables and self.can_ever_read(tables[name], None)

    def can_ever_read(self, table: Table, column: str | None) -> bool:
        """Whether the rules could let the caller read the table or column in any record of the table family."""
        tables_of_family = [self.context.world.catalogue.tables[name] for name in table.family]
        return any(
            could_ever_access(self.context, READ, owner)
            and (column is None or could_ever_access(self.context, READ, owner, column))
            for owner in tables_of_family
        )


def target_table(context: EvaluationContext, column: Column) -> Table:
    """The table that a reference refers to; raises `QueryRefused` if there is none."""
    target = context.world.catalogue.tables.get(column.reference or "")
    if column.type != "reference" or target is None:
        raise QueryRefused
    return target

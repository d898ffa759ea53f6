"""What an administrator should know about the access rules of a table: rules that never decide, or that are slow."""

from collections.abc import Iterator

from system.encoded_query import QueryError, parse
from tableapi.access import permissions
from tableapi.access.permissions import ANY_COLUMN, RECORD_LEVEL, rule_tables
from tableapi.catalogue.definitions import OPERATIONS, READ, Catalogue, Rule, Table
from tableapi.design import rule_hints
from tableapi.models import Rule as StoredRule
from tableapi.query.path_resolver import RuleScope


def warnings_of(catalogue: Catalogue, table: Table | None, rule: StoredRule) -> Iterator[str]:
    """The warnings about a rule of exactly this table, or for any table."""
    if not rule.active:
        return
    yield from rule_hints.rule_hints(rule)
    if rule.condition:
        try:
            permissions.check_condition(catalogue, table.name if table else None, rule.condition)
        except QueryError as error:
            yield f"It matches no records: {error}."
        else:
            if table is not None:
                yield from rule_hints.condition_hints(catalogue, table.name, rule.condition)
                yield from _slow(catalogue, table, rule)
    if table is None or rule.column_name == RECORD_LEVEL:
        return
    if not _deciding_tables(catalogue, table, rule.operation, RECORD_LEVEL):
        yield f"It has no effect: no rule lets anyone {rule.operation} the record."
    elif rule.column_name == ANY_COLUMN and (own := _columns_with_rules(catalogue, table, rule.operation)):
        yield f"It does not apply to {', '.join(own)}, which have rules of their own."


def _slow(catalogue: Catalogue, table: Table, rule: StoredRule) -> Iterator[str]:
    if rule.operation != READ:
        return
    if rule.column_name:
        yield "Slow in large tables: sorting by a column whose rule has a condition cannot use its index."
        return
    query = parse(rule.condition)
    predicates = list(permissions.predicates_in(RuleScope(catalogue), table, query))
    indexed = [predicate for predicate in predicates if _has_index(table, predicate.condition.path[0])]
    if predicates and not indexed:
        yield "Slow in large tables: no column of the condition has an index."


def _has_index(table: Table, name: str) -> bool:
    column = table.columns.get(name)
    return column is not None and bool(
        column.is_indexed or column.is_unique or column.reference or column.is_display or name == "sys_created_at"
    )


def missing_rules(catalogue: Catalogue, table: Table) -> Iterator[str]:
    """One sentence about the operations for which no rule exists."""
    missing = [name for name in OPERATIONS if not _deciding_tables(catalogue, table, name, RECORD_LEVEL)]
    if missing:
        names = f"{', '.join(missing[:-1])} or {missing[-1]}" if len(missing) > 1 else missing[0]
        yield f"Only administrators can {names} the records, because no rule says who else can."


def inherited_rules(catalogue: Catalogue, table: Table) -> Iterator[tuple[Rule, bool]]:
    """The rules of parent tables and for any table, and whether a nearer table decides instead."""
    for owner in rule_tables(table)[1:]:
        for rule in catalogue.rules:
            if rule.table == owner and (rule.column in ("", ANY_COLUMN) or rule.column in table.columns):
                yield rule, _deciding_tables(catalogue, table, rule.operation, rule.column)[0] != owner


def _deciding_tables(catalogue: Catalogue, table: Table, operation: str, column: str) -> list[str | None]:
    """The tables with a rule of this level. The first one decides."""
    return [name for name in rule_tables(table) if (operation, name, column) in catalogue.rules_by_level]


def _columns_with_rules(catalogue: Catalogue, table: Table, operation: str) -> list[str]:
    return sorted(name for name in table.columns if _deciding_tables(catalogue, table, operation, name))

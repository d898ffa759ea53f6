"""Writes expressions and decisions as SQL conditions on a record. Pure."""

from __future__ import annotations

from collections.abc import Callable

from system.encoded_query import ValueKind, read_words
from tableapi.catalogue.definitions import Table
from tableapi.query.expressions import (
    AllOf,
    Always,
    AnyOf,
    Case,
    ChildTablePredicate,
    Decision,
    Expression,
    Predicate,
    ResolvedPath,
)
from tableapi.query.path_resolver import own_table_column

from .operators import NEGATIONS, ROWS, Operand
from .statement_builder import StatementBuilder, TableAlias, ValueBinder, literal

# The SQL of a leaf, where the condition stands.
ValueOf = Callable[[ResolvedPath], str]


def decision(text: StatementBuilder, found: Decision, anchor: TableAlias) -> str | None:
    """When the decision holds for the anchor's record; None: always."""
    if isinstance(found, Always):
        return None
    if not found.cases:
        return "FALSE"
    return _joined(" OR ", [_case(text, case, anchor) for case in found.cases])


def _case(text: StatementBuilder, case: Case, anchor: TableAlias) -> str:
    parts = []
    if case.tables is not None:
        ids = ", ".join(map(literal, case.tables))
        parts.append(f"{anchor.own_table()} IN ({ids})")
    if case.conditions is not None:
        parts.append(_joined(" OR ", [rule(text, each, anchor) for each in case.conditions]))
    return _joined(" AND ", parts) if parts else "TRUE"


def guarded(text: StatementBuilder, found: Decision, anchor: TableAlias, value: str) -> str:
    """The value where the decision holds, else NULL."""
    condition = decision(text, found, anchor)
    return value if condition is None else f"CASE WHEN {condition} THEN {value} END"


def rule(text: StatementBuilder, found: Expression, anchor: TableAlias) -> str:
    """A rule's condition; the paths in it are followed without asking for rights, each by a sub-select."""
    return expression(text, found, anchor, lambda leaf: _followed(text, leaf, anchor))


def _followed(text: StatementBuilder, leaf: ResolvedPath, anchor: TableAlias) -> str:
    if not leaf.hops:
        return anchor.column(leaf.column)
    hop = leaf.hops[0]
    reference = anchor.column(hop.column)
    target = TableAlias(text, hop.target)
    value = _followed(text, ResolvedPath(leaf.hops[1:], leaf.column), target)
    return f"(SELECT {value} FROM {target.joined()} WHERE {target.sys_id()} = {reference})"


def expression(text: StatementBuilder, found: Expression, anchor: TableAlias, value_of: ValueOf) -> str:
    """A condition; `value_of` says what stands for a leaf."""
    match found:
        case AllOf(parts):
            return _joined(" AND ", [expression(text, part, anchor, value_of) for part in parts])
        case AnyOf(parts):
            return _joined(" OR ", [expression(text, part, anchor, value_of) for part in parts])
        case ChildTablePredicate(table, part):
            return _in_child(text, table, part, anchor)
        case Predicate():
            return _test(text, found, anchor, value_of)


def _in_child(text: StatementBuilder, table: Table, part: Expression, anchor: TableAlias) -> str:
    child = TableAlias(text, table)
    condition = rule(text, part, child)
    return f"EXISTS (SELECT FROM {child.joined()} WHERE {child.sys_id()} = {anchor.sys_id()} AND {condition})"


def _test(text: StatementBuilder, test: Predicate, anchor: TableAlias, value_of: ValueOf) -> str:
    kind = test.condition.row.kind
    if kind in (ValueKind.TABLE, ValueKind.WORDS):
        found = _instance_of(test, anchor) if kind is ValueKind.TABLE else _words(text, test, value_of)
        # Said of the record by its id: where the id is hidden, so is the answer.
        return found if isinstance(test.leaf.guard, Always) else f"({value_of(test.leaf)} IS NOT NULL AND {found})"
    name = test.condition.operator
    if name in ("ANYTHING", "NOTHING"):
        # They never look at the column, so its guard must not bind what no text mentions.
        return "TRUE" if name == "ANYTHING" else "FALSE"
    is_negation = name in NEGATIONS
    row = ROWS[str(test.condition.row.complement) if is_negation else name]
    side = Operand(test.leaf.column, value_of(test.leaf))
    other = Operand(test.other.column, value_of(test.other)) if test.other else None
    positive = row(side, other, test.condition, ValueBinder(text, test.condition, test.slot))
    # Never NULL: a row without a value must be on exactly one side.
    return f"(({positive}) IS NOT TRUE)" if is_negation else f"({positive})"


def _instance_of(test: Predicate, anchor: TableAlias) -> str:
    column = own_table_column(anchor.table)
    if column is None:
        return "TRUE" if anchor.table.id in test.tables else "FALSE"
    return f"({anchor.column(column)} IN ({', '.join(map(literal, test.tables))}))"


def _words(text: StatementBuilder, test: Predicate, value_of: ValueOf) -> str:
    """Each word in one of the columns; each column has a GIN index of its own on this expression."""
    words = read_words(test.condition.value)
    found = []
    for word in words:
        query = f"plainto_tsquery('simple', {text.parameter(lambda _, word=word: word, 'text')})"  # type: ignore[misc]
        columns = [f"to_tsvector('simple', {value_of(leaf)}) @@ {query}" for leaf in test.searched]
        found.append(_joined(" OR ", columns))
    return _joined(" AND ", found)


def _joined(word: str, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({word.join(parts)})"

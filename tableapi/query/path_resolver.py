"""Turns the paths of a query into leaves: the only place that looks a name up. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from system.encoded_query import (
    OPERATORS,
    RECORDS,
    Condition,
    Group,
    Query,
    QueryError,
    SubQuery,
    Term,
    ValueKind,
    read,
    read_words,
)
from system.errors import BadRequest
from tableapi.catalogue.definitions import OWN_TABLE, TEXT_TYPES, Catalogue, Column, Table
from tableapi.values import comparison

from .expressions import ALWAYS, NEVER, AllOf, AnyOf, Decision, Expression, PathStep, Predicate, ResolvedPath, tests_in

MOST_HOPS = 5
SAME_KIND = {"id": "reference", "date": "datetime", "integer": "decimal"}


class ReadScope(Protocol):
    """Who looks: a caller, or a rule, which sees everything."""

    catalogue: Catalogue

    def column(self, table: Table, name: str) -> tuple[Column, Decision] | None:
        """A column that can be seen in some record of this table."""

    def records(self, table: Table) -> Decision:
        """Which records of this table can be seen."""

    def table(self, name: str) -> Table | None:
        """A table that is there."""


class RuleScope:
    """A rule's condition is its administrator's: it sees all but what nobody may read."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def column(self, table: Table, name: str) -> tuple[Column, Decision] | None:
        column = table.columns.get(name)
        return (column, ALWAYS) if column is not None and column.is_readable else None

    def records(self, table: Table) -> Decision:
        return ALWAYS

    def table(self, name: str) -> Table | None:
        return self.catalogue.tables.get(name)


def unknown(path: tuple[str, ...], position: int | None = None) -> BadRequest:
    """The same for a column that is missing, that the caller may not read, and beyond a wall on the way."""
    name = ".".join(path)
    return BadRequest(f"There is no column {name}.", code="unknown_field", field=name, position=position)


def resolve_path(eyes: ReadScope, table: Table, path: tuple[str, ...]) -> ResolvedPath | None:
    """Where the path ends, or None when there is nothing for these eyes."""
    if len(path) > MOST_HOPS + 1:
        return None
    hops: list[PathStep] = []
    for name in path[:-1]:
        seen = eyes.column(table, name)
        target = eyes.catalogue.tables.get(seen[0].reference or "") if seen and seen[0].type == "reference" else None
        if seen is None or target is None or (records := eyes.records(target)) == NEVER:
            return None
        hops.append(PathStep(seen[0], seen[1], target, records))
        table = target
    seen = eyes.column(table, path[-1])
    return ResolvedPath(tuple(hops), *seen) if seen else None


def expression(eyes: ReadScope, table: Table, query: Query, *, with_slots: bool = False) -> Expression | None:
    """The whole condition of a query; None when it has none."""
    if not query.groups:
        return None
    numbered = enumerate(query.conditions())
    slots = {id(condition): slot for slot, condition in numbered} if with_slots else {}
    found = _groups(eyes, table, query.groups, slots)
    _refuse_too_many_words(found)
    return found


def _refuse_too_many_words(found: Expression) -> None:
    """What is in the SQL counts: each word of ARE is compared in each searched column."""
    searches = [(test, len(read_words(test.condition.value))) for test in tests_in(found) if test.searched]
    if not searches:
        return
    others = sum(1 for test in tests_in(found) if not test.searched)
    if others + sum(words * len(test.searched) for test, words in searches) > RECORDS.conditions:
        raise QueryError(
            f"more than {RECORDS.conditions} conditions, where each word of ARE counts once for each searched column",
            searches[0][0].condition.position,
        )


def _groups(eyes: ReadScope, table: Table, groups: tuple[Group, ...], slots: dict[int, int]) -> Expression:
    return _any([_all([_term(eyes, table, term, slots) for term in group.terms]) for group in groups])


def _term(eyes: ReadScope, table: Table, term: Term, slots: dict[int, int]) -> Expression:
    return _any(
        [
            _groups(eyes, table, factor.groups, slots)
            if isinstance(factor, SubQuery)
            else resolve_condition(eyes, table, factor, slots.get(id(factor)))
            for factor in term.factors
        ]
    )


def _all(parts: list[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def _any(parts: list[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))


def resolve_condition(eyes: ReadScope, table: Table, condition: Condition, slot: int | None) -> Predicate:
    """One condition with its columns; refuses what does not fit."""
    found = resolve_path(eyes, table, condition.path)
    if found is None:
        raise unknown(condition.path, condition.position)
    if not condition.row.fits(column_type=found.column.type, path=condition.path):
        raise QueryError(f"{condition.operator} does not fit a column of type {found.column.type}", condition.position)
    kind = condition.row.kind
    if kind in (ValueKind.PATH, ValueKind.DISTANCE):
        return Predicate(condition, found, other=_other(eyes, table, condition, found), slot=slot)
    if kind is ValueKind.TABLE:
        return Predicate(condition, found, tables=_family(eyes, condition), slot=slot)
    if kind is ValueKind.WORDS:
        return Predicate(condition, found, searched=_searched(eyes, table, condition), slot=slot)
    return Predicate(condition, found, slot=slot)


def _other(eyes: ReadScope, table: Table, condition: Condition, found: ResolvedPath) -> ResolvedPath:
    given = read(condition)
    path = given if isinstance(given, tuple) else given.path  # type: ignore[union-attr]  # by its kind
    other = resolve_path(eyes, table, path)  # type: ignore[arg-type]  # by its kind
    if other is None:
        raise unknown(path, condition.value_position)  # type: ignore[arg-type]  # by its kind
    kinds = {SAME_KIND.get(kind, kind) for kind in map(comparison.comparison_kind, (found.column, other.column))}
    if len(kinds) > 1 or not OPERATORS[condition.operator].fits(column_type=other.column.type, path=path):  # type: ignore[arg-type]
        raise QueryError(
            f"a column of type {other.column.type} cannot be compared with one of type {found.column.type}",
            condition.value_position,
            condition.value,
        )
    return other


def _family(eyes: ReadScope, condition: Condition) -> tuple[str, ...]:
    table = eyes.table(condition.value)
    if table is None or eyes.records(table) == NEVER:
        raise QueryError("there is no such table", condition.value_position, condition.value)
    return tuple(sorted(eyes.catalogue.tables[name].id for name in table.family))


def _searched(eyes: ReadScope, table: Table, condition: Condition) -> tuple[ResolvedPath, ...]:
    found = tuple(_searchable(eyes, table))
    if not found:
        raise QueryError("the table has no column that is searched for words", condition.position)
    return found


def _searchable(eyes: ReadScope, table: Table) -> Iterator[ResolvedPath]:
    for column in table.columns.values():
        if column.type in TEXT_TYPES and column.is_indexed and (found := resolve_path(eyes, table, (column.name,))):
            yield found


def own_table_column(table: Table) -> Column | None:
    """Where a record says which table it is of; system tables have no children."""
    return table.columns.get(OWN_TABLE) if not table.is_system else None

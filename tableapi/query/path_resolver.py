"""Resolves the names in queries to columns; no other module looks names up. Pure."""

from typing import Any, Protocol

from system.encoded_query import (
    OPERATORS,
    RECORDS,
    ComparisonKind,
    Condition,
    Distance,
    Group,
    Query,
    QueryError,
    RelatedQuery,
    SubQuery,
    Term,
    ValueKind,
    read_value,
    read_words,
)
from system.errors import BadRequest
from tableapi.catalogue.definitions import Catalogue, Column, Table

from .expressions import (
    ALWAYS,
    NEVER,
    AllOf,
    AnyOf,
    Decision,
    Expression,
    PathStep,
    Predicate,
    RelatedRecords,
    ResolvedPath,
    predicates_of,
)

MAX_PATH_REFERENCES = 5
# Columns of these kinds can be compared with each other.
COMPARABLE_KINDS = {
    ComparisonKind.ID: ComparisonKind.REFERENCE,
    ComparisonKind.DATE: ComparisonKind.DATETIME,
    ComparisonKind.INTEGER: ComparisonKind.DECIMAL,
}
ID_KINDS = frozenset({ComparisonKind.ID, ComparisonKind.REFERENCE})


class ReadScope(Protocol):
    """The tables, columns and records that are visible to a caller or to the condition of a rule."""

    catalogue: Catalogue

    def column(self, table: Table, name: str) -> tuple[Column, Decision] | None:
        """Return a column that is visible in at least one record of this table, and its guard."""

    def record_decision(self, table: Table) -> Decision:
        """Return the decision about which records of this table are visible."""

    def table(self, name: str) -> Table | None:
        """Return a table if it is visible."""


class RuleScope:
    """Conditions of rules, which administrators write, see everything except columns that are never readable."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def column(self, table: Table, name: str) -> tuple[Column, Decision] | None:
        column = table.columns.get(name)
        return (column, ALWAYS) if column is not None and column.is_readable else None

    def record_decision(self, table: Table) -> Decision:
        return ALWAYS

    def table(self, name: str) -> Table | None:
        return self.catalogue.tables.get(name)


def unknown_column_error(path: tuple[str, ...], position: int | None = None) -> BadRequest:
    """Return the same error for a missing column, a hidden column and a column behind a hidden reference."""
    name = ".".join(path)
    return BadRequest(f'There is no column named "{name}".', code="unknown_field", field=name, position=position)


def resolve_path(scope: ReadScope, table: Table, path: tuple[str, ...]) -> ResolvedPath | None:
    """Return the path with its columns, or None if one of them is not visible."""
    if len(path) > MAX_PATH_REFERENCES + 1:
        return None
    steps: list[PathStep] = []
    for name in path[:-1]:
        column_and_guard = scope.column(table, name)
        if column_and_guard is None or not column_and_guard[0].column_type.is_reference:
            return None
        target = scope.catalogue.tables.get(column_and_guard[0].reference or "")
        if target is None or (records := scope.record_decision(target)) == NEVER:
            return None
        steps.append(PathStep(*column_and_guard, target, records))
        table = target
    column_and_guard = scope.column(table, path[-1])
    return ResolvedPath(tuple(steps), *column_and_guard) if column_and_guard else None


def required_path(scope: ReadScope, table: Table, path: tuple[str, ...], position: int | None = None) -> ResolvedPath:
    """Return the path with its columns. Raises BadRequest if one of them is not visible."""
    resolved = resolve_path(scope, table, path)
    if resolved is None:
        raise unknown_column_error(path, position)
    return resolved


def resolve_query(scope: ReadScope, table: Table, query: Query, *, with_slots: bool = False) -> Expression | None:
    """Return the condition of a query, or None if it has no conditions."""
    if not query.groups:
        return None
    slots = {id(condition): slot for slot, condition in enumerate(query.conditions())} if with_slots else {}
    condition = _resolve_groups(scope, table, query.groups, slots)
    _refuse_too_many_words(condition)
    return condition


def _refuse_too_many_words(condition: Expression) -> None:
    """Limit the length of the SQL, which compares each word of ARE with each searched column."""
    predicates = list(predicates_of(condition))
    searches = [predicate for predicate in predicates if predicate.searched_paths]
    if not searches:
        return
    counts = (len(read_words(search.condition.value)) * len(search.searched_paths) for search in searches)
    if len(predicates) - len(searches) + sum(counts) > RECORDS.max_conditions:
        raise QueryError(
            f"more than {RECORDS.max_conditions} conditions (each word of ARE counts once per searched column)",
            searches[0].condition.position,
        )


def _resolve_groups(scope: ReadScope, table: Table, groups: tuple[Group, ...], slots: dict[int, int]) -> Expression:
    resolved_groups = [[_resolve_term(scope, table, term, slots) for term in group.terms] for group in groups]
    return _combine(AnyOf, [_combine(AllOf, resolved_terms) for resolved_terms in resolved_groups])


def _resolve_term(scope: ReadScope, table: Table, term: Term, slots: dict[int, int]) -> Expression:
    return _combine(AnyOf, [_resolve_factor(scope, table, factor, slots) for factor in term.factors])


def _resolve_factor(scope: ReadScope, table: Table, factor: Condition | SubQuery, slots: dict[int, int]) -> Expression:
    if isinstance(factor, RelatedQuery):
        return _resolve_related(scope, table, factor, slots)
    if isinstance(factor, SubQuery):
        return _resolve_groups(scope, table, factor.groups, slots)
    return resolve_condition(scope, table, factor, slots.get(id(factor)))


def _resolve_related(scope: ReadScope, table: Table, related: RelatedQuery, slots: dict[int, int]) -> RelatedRecords:
    target = scope.table(related.table)
    if target is None or (records := scope.record_decision(target)) == NEVER:
        raise QueryError("unknown table", related.position, related.table)
    path = required_path(scope, table, related.path, related.position)
    column = required_path(scope, target, related.column, related.position)
    if not {path.column.compare_as, column.column.compare_as} <= ID_KINDS:
        raise QueryError("only ids and references relate records", related.position)
    part = _resolve_groups(scope, target, related.groups, slots) if related.groups else None
    return RelatedRecords(path, target, records, column, related.comparison, related.count, part)


def _combine(kind: type[AllOf] | type[AnyOf], parts: list[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def resolve_condition(scope: ReadScope, table: Table, condition: Condition, slot: int | None) -> Predicate:
    """Resolve the columns of a condition. Raises BadRequest or QueryError if they are missing or unsuitable."""
    path = required_path(scope, table, condition.path, condition.position)
    if not condition.row.fits(path.column.compare_as, condition.path):
        raise QueryError(f"{condition.operator} cannot be used with {path.column.type} columns", condition.position)
    kind = condition.row.kind
    if kind in (ValueKind.PATH, ValueKind.DISTANCE):
        return Predicate(condition, path, other=_resolve_other_path(scope, table, condition, path), slot=slot)
    if kind is ValueKind.TABLE:
        return Predicate(condition, path, table_ids=_family_table_ids(scope, condition), slot=slot)
    if kind is ValueKind.WORDS:
        return Predicate(condition, path, searched_paths=_searched_paths(scope, table, condition), slot=slot)
    return Predicate(condition, path, slot=slot)


def _resolve_other_path(scope: ReadScope, table: Table, condition: Condition, path: ResolvedPath) -> ResolvedPath:
    """Resolve the other column of a condition that compares two columns."""
    value: Any = read_value(condition)
    other_path = value.path if isinstance(value, Distance) else value
    other = required_path(scope, table, other_path, condition.value_position)
    kinds = {COMPARABLE_KINDS.get(column.compare_as, column.compare_as) for column in (path.column, other.column)}
    if len(kinds) > 1 or not OPERATORS[condition.operator].fits(other.column.compare_as, other_path):
        raise QueryError(
            f"{other.column.type} columns cannot be compared with {path.column.type} columns",
            condition.value_position,
            condition.value,
        )
    return other


def _family_table_ids(scope: ReadScope, condition: Condition) -> tuple[str, ...]:
    table = scope.table(condition.value)
    if table is None or scope.record_decision(table) == NEVER:
        raise QueryError("unknown table", condition.value_position, condition.value)
    return tuple(sorted(scope.catalogue.tables[name].id for name in table.family))


def _searched_paths(scope: ReadScope, table: Table, condition: Condition) -> tuple[ResolvedPath, ...]:
    columns = [column for column in table.columns.values() if column.column_type.is_text and column.is_indexed]
    paths = tuple(path for column in columns if (path := resolve_path(scope, table, (column.name,))) is not None)
    if not paths:
        raise QueryError("the table has no column that supports word search", condition.position)
    return paths

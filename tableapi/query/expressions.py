"""Resolved queries and rules: paths, predicates on them, and access decisions. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from system.encoded_query import Condition
from tableapi.catalogue.definitions import Column, Table


@dataclass(frozen=True, slots=True)
class AlwaysAllowed:
    """Allowed on every record."""


ALWAYS = AlwaysAllowed()


@dataclass(frozen=True, slots=True)
class DecisionCase:
    """Requires one of the tables (None for any) and one of the conditions (None for no condition)."""

    table_ids: tuple[str, ...] | None
    conditions: "tuple[Expression, ...] | None"


@dataclass(frozen=True, slots=True)
class ConditionalDecision:
    """Allowed on records for which one of the cases holds; never allowed without cases."""

    cases: tuple[DecisionCase, ...] = ()


NEVER = ConditionalDecision()
Decision = AlwaysAllowed | ConditionalDecision


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of a path: through a reference column to the records of another table."""

    column: Column
    guard: Decision
    target: Table
    records: Decision


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """A path with its columns. The guards decide in which records the caller can see them."""

    steps: tuple[PathStep, ...]
    column: Column
    guard: Decision = ALWAYS

    @property
    def names(self) -> tuple[str, ...]:
        return (*(step.column.name for step in self.steps), self.column.name)


@dataclass(frozen=True, slots=True)
class Predicate:
    """One condition. `slot` is its number in the request, which provides its value; None for a condition of a rule."""

    condition: Condition
    path: ResolvedPath
    other: ResolvedPath | None = None
    # INSTANCEOF uses the ids of tables, ARE the searched columns.
    table_ids: tuple[str, ...] = ()
    searched_paths: tuple[ResolvedPath, ...] = ()
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class ChildTablePredicate:
    """Evaluates `part` on the record's row in a table that extends the requested one."""

    table: Table
    part: "Expression"


@dataclass(frozen=True, slots=True)
class RelatedRecords:
    """Compares the number of readable records of a table that match, and whose column has the value of `path`."""

    path: ResolvedPath
    table: Table
    records: Decision
    column: ResolvedPath
    comparison: str
    count: int
    part: "Expression | None"


Expression = Predicate | AllOf | AnyOf | ChildTablePredicate | RelatedRecords


def predicates_of(expression: Expression) -> Iterator[Predicate]:
    match expression:
        case Predicate():
            yield expression
        case ChildTablePredicate(part=part) | RelatedRecords(part=part):
            if part is not None:
                yield from predicates_of(part)
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from predicates_of(part)

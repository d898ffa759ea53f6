"""Resolved queries and rules: paths, predicates on them, and decisions about who may see what. Pure."""

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
    """For records of these tables (None for any), one of the conditions must hold; None for no condition."""

    table_ids: tuple[str, ...] | None
    conditions: "tuple[Expression, ...] | None"


@dataclass(frozen=True, slots=True)
class ConditionalDecision:
    """A decision that depends on the record: one of the cases must hold. Without cases, never."""

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
    """A path with its columns; the guards say in which records the caller sees them."""

    steps: tuple[PathStep, ...]
    column: Column
    guard: Decision = ALWAYS


@dataclass(frozen=True, slots=True)
class Predicate:
    """One condition. With a `slot`, its value is that of the request's condition of this number."""

    condition: Condition
    path: ResolvedPath
    other: ResolvedPath | None = None
    # For INSTANCEOF the ids of tables, for ARE the columns that are searched.
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
    """Holds for the record as one of a table that extends the requested one."""

    table: Table
    part: "Expression"


Expression = Predicate | AllOf | AnyOf | ChildTablePredicate


def predicates_of(expression: Expression) -> Iterator[Predicate]:
    match expression:
        case Predicate():
            yield expression
        case ChildTablePredicate(_, part):
            yield from predicates_of(part)
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from predicates_of(part)

"""What names have become once they are resolved: leaves, tests on them, and decisions about who may see what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from system.encoded_query import Condition
from tableapi.catalogue.definitions import Column, Table


@dataclass(frozen=True, slots=True)
class Always:
    """No rule stands in the way."""


ALWAYS = Always()


@dataclass(frozen=True, slots=True)
class Case:
    """For records of these tables (by id; None: of any): one of the conditions must hold; None: no condition."""

    tables: tuple[str, ...] | None
    conditions: tuple[Expression, ...] | None


@dataclass(frozen=True, slots=True)
class Conditional:
    """A decision that depends on the record: one of the cases must hold. Without cases: never."""

    cases: tuple[Case, ...] = ()


NEVER = Conditional()
Decision = Always | Conditional


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of a path: through a reference column to the records of another table."""

    column: Column
    guard: Decision
    target: Table
    records: Decision


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """Where a path ends; the guards say when the caller sees what is there."""

    hops: tuple[PathStep, ...]
    column: Column
    guard: Decision = ALWAYS

    @property
    def way(self) -> tuple[str, ...]:
        """The names of the references on the way."""
        return tuple(hop.column.name for hop in self.hops)


@dataclass(frozen=True, slots=True)
class Predicate:
    """One condition. With a `slot`, the value is that of the request's condition of this number."""

    condition: Condition
    leaf: ResolvedPath
    other: ResolvedPath | None = None
    # INSTANCEOF: ids of tables. ARE: the columns that are searched.
    tables: tuple[str, ...] = ()
    searched: tuple[ResolvedPath, ...] = ()
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ChildTablePredicate:
    """Holds for the record as one of a table that extends the one asked."""

    table: Table
    part: Expression


Expression = Predicate | AllOf | AnyOf | ChildTablePredicate


def tests_in(found: Expression) -> Iterator[Predicate]:
    match found:
        case Predicate():
            yield found
        case ChildTablePredicate(_, part):
            yield from tests_in(part)
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from tests_in(part)

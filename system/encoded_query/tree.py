"""A parsed query as frozen values: OR of groups, AND of terms, OR of factors.

    Query ── order: OrderBy*
      └─ groups: Group*        joined by ^NQ, the loosest: OR
           └─ terms: Term+     joined by ^: AND
                └─ factors     joined by ^OR, the tightest: OR
                     ├─ Condition
                     └─ SubQuery ── groups: Group+        "( … )"

`a=1^b=2^ORc=3` is one group of two terms, the second with two factors: a=1 AND (b=2 OR c=3).
Positions in the text are for messages; equality ignores them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from .dialect import Path
from .operators import OPERATORS, Operator


@dataclass(frozen=True, slots=True)
class Condition:
    """`operator` is a key of `OPERATORS`; `value` is the text after it, without braces.

    The parser writes `f=` as ISEMPTY and `f!=` as ISNOTEMPTY, so = and != always have a value.
    """

    path: Path
    operator: str
    value: str = ""
    position: int = field(default=0, compare=False)
    value_position: int = field(default=0, compare=False)

    @property
    def row(self) -> Operator:
        return OPERATORS[self.operator]


@dataclass(frozen=True, slots=True)
class Term:
    """Matches if at least one factor matches."""

    factors: tuple["Condition | SubQuery", ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Matches if every term matches."""

    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class SubQuery:
    """A query in parentheses: matches if at least one group matches."""

    groups: tuple[Group, ...]
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class RelatedQuery(SubQuery):
    """Compares the number of records of another table: those that match a group, and whose column has the value of
    `path`. The grammar has no text for it."""

    path: Path = ()
    table: str = ""
    column: Path = ()
    comparison: str = ""
    count: int = 0


@dataclass(frozen=True, slots=True)
class OrderBy:
    path: Path
    is_descending: bool = False
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Query:
    """Matches if at least one group matches; without groups, matches every record."""

    groups: tuple[Group, ...] = ()
    order: tuple[OrderBy, ...] = ()

    def conditions(self) -> Iterator[Condition]:
        """Every condition, in the order of the text."""
        for factor in (factor for group in self.groups for term in group.terms for factor in term.factors):
            if isinstance(factor, Condition):
                yield factor
            else:
                yield from Query(factor.groups).conditions()

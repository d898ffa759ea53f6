"""In charge of what two queries have in common: the text without its values decides which statement answers. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from system.encoded_query import Condition, Group, Query, SubQuery, Term, parse
from system.process_cache import WeightedCache
from tableapi.sql.operators import SHAPING

# Programs ask the same again and again.
QUERIES_BYTES = 8 * 1024 * 1024
PER_CONDITION = 1_200


class Shape:
    """A query without the values that do not decide its SQL, as a key: requests of one shape share a statement."""

    __slots__ = ("_hash", "query")

    def __init__(self, query: Query) -> None:
        self.query = Query(tuple(_group(group) for group in query.groups), query.order)
        self._hash = hash(self.query)  # of a whole tree, so only once

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shape) and self.query == other.query


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query as it was read, its conditions in the order of their values, and its shape."""

    query: Query
    conditions: tuple[Condition, ...]
    shape: Shape


def parse_query_text(text: str) -> ParsedQuery:
    """QueryError for what is no query."""
    return _understood.get_or_make(text, lambda: _read(text))


def _read(text: str) -> ParsedQuery:
    query = parse(text)
    return ParsedQuery(query, tuple(query.conditions()), Shape(query))


def _weight(text: str, found: ParsedQuery) -> int:
    # With the text of the values; what stands in parentheses and the sort keys count by their characters.
    return PER_CONDITION * (1 + len(found.conditions)) + 8 * len(text)


_understood: WeightedCache[str, ParsedQuery] = WeightedCache("queries", limit=QUERIES_BYTES, weigh=_weight)


def _group(group: Group) -> Group:
    return Group(tuple(Term(tuple(_factor(factor) for factor in term.factors)) for term in group.terms))


def _factor(factor: Condition | SubQuery) -> Condition | SubQuery:
    if isinstance(factor, SubQuery):
        return SubQuery(tuple(_group(group) for group in factor.groups))
    return factor if factor.row.kind in SHAPING else replace(factor, value="")

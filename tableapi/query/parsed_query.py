"""In charge of what two queries have in common: the text without its values decides which statement answers. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from system.encoded_query import Condition, Group, Query, SubQuery, Term, parse
from tableapi.sql.operators import SHAPING

# Programs ask the same again and again; what is longer than this is read anew each time.
LONGEST_KEPT = 1_000


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
    return _remembered(text) if len(text) <= LONGEST_KEPT else _read(text)


def _read(text: str) -> ParsedQuery:
    query = parse(text)
    return ParsedQuery(query, tuple(query.conditions()), Shape(query))


_remembered = lru_cache(maxsize=500)(_read)


def _group(group: Group) -> Group:
    return Group(tuple(Term(tuple(_factor(factor) for factor in term.factors)) for term in group.terms))


def _factor(factor: Condition | SubQuery) -> Condition | SubQuery:
    if isinstance(factor, SubQuery):
        return SubQuery(tuple(_group(group) for group in factor.groups))
    return factor if factor.row.kind in SHAPING else replace(factor, value="")

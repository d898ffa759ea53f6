"""Parses queries into a shape and values; queries with the same shape share a statement. Pure."""

from dataclasses import dataclass, replace

from system.encoded_query import Condition, Group, Query, SubQuery, Term, ValueKind, parse
from system.process_cache import WeightedCache

# Clients send the same queries again and again.
QUERY_CACHE_BYTES = 8 * 1024 * 1024
BYTES_PER_CONDITION = 1_200

# Values of these kinds are part of the shape, because the SQL text depends on them.
SHAPING_KINDS = frozenset({ValueKind.PATH, ValueKind.DISTANCE, ValueKind.TABLE, ValueKind.WORDS, ValueKind.DYNAMIC})


class QueryShape:
    """A query without the values that are bound as parameters; a key of the statement cache."""

    __slots__ = ("_hash", "query")

    def __init__(self, query: Query) -> None:
        self.query = Query(tuple(_group_shape(group) for group in query.groups), query.order)
        self._hash = hash(self.query)  # computed once, because it visits the whole tree

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QueryShape) and self.query == other.query


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query: its text, its shape, and its conditions with their values in the order of the text."""

    text: str
    shape: QueryShape
    conditions: tuple[Condition, ...]


def parse_query_text(text: str) -> ParsedQuery:
    """Parse a query, or take it from the cache. Raises QueryError if it is invalid."""
    return _query_cache.get_or_make(text, lambda: _parse(text))


def _parse(text: str) -> ParsedQuery:
    query = parse(text)
    return ParsedQuery(text, QueryShape(query), tuple(query.conditions()))


def _weight(text: str, parsed: ParsedQuery) -> int:
    # Parentheses, sort keys and values are weighed by the length of the text.
    return BYTES_PER_CONDITION * (1 + len(parsed.conditions)) + 8 * len(text)


_query_cache: WeightedCache[str, ParsedQuery] = WeightedCache("queries", max_weight=QUERY_CACHE_BYTES, weigh=_weight)


def _group_shape(group: Group) -> Group:
    return Group(tuple(Term(tuple(_factor_shape(factor) for factor in term.factors)) for term in group.terms))


def _factor_shape(factor: Condition | SubQuery) -> Condition | SubQuery:
    if isinstance(factor, SubQuery):
        return replace(factor, groups=tuple(_group_shape(group) for group in factor.groups))
    return factor if factor.row.kind in SHAPING_KINDS else replace(factor, value="")

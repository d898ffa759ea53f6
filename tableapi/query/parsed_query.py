"""Parses the text of a query into its shape and its values: queries of one shape share a statement. Pure."""

from dataclasses import dataclass, replace

from system.encoded_query import Condition, Group, Query, SubQuery, Term, ValueKind, parse
from system.process_cache import WeightedCache

# Clients send the same queries again and again.
QUERY_CACHE_BYTES = 8 * 1024 * 1024
BYTES_PER_CONDITION = 1_200

# Values of these kinds stay in the shape: they decide the SQL, not only a parameter.
SHAPING_KINDS = frozenset({ValueKind.PATH, ValueKind.DISTANCE, ValueKind.TABLE, ValueKind.WORDS, ValueKind.DYNAMIC})


class QueryShape:
    """A query without the values that do not decide its SQL; a key of the statement cache."""

    __slots__ = ("_hash", "query")

    def __init__(self, query: Query) -> None:
        self.query = Query(tuple(_group_shape(group) for group in query.groups), query.order)
        self._hash = hash(self.query)  # once: it visits the whole tree

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
    """Raises QueryError for a text that is not a valid query."""
    return _query_cache.get_or_make(text, lambda: _parse(text))


def _parse(text: str) -> ParsedQuery:
    query = parse(text)
    return ParsedQuery(text, QueryShape(query), tuple(query.conditions()))


def _weight(text: str, parsed: ParsedQuery) -> int:
    # Parentheses, sort keys and the text of the values count by their characters.
    return BYTES_PER_CONDITION * (1 + len(parsed.conditions)) + 8 * len(text)


_query_cache: WeightedCache[str, ParsedQuery] = WeightedCache("queries", max_weight=QUERY_CACHE_BYTES, weigh=_weight)


def _group_shape(group: Group) -> Group:
    return Group(tuple(Term(tuple(_factor_shape(factor) for factor in term.factors)) for term in group.terms))


def _factor_shape(factor: Condition | SubQuery) -> Condition | SubQuery:
    if isinstance(factor, SubQuery):
        return SubQuery(tuple(_group_shape(group) for group in factor.groups))
    return factor if factor.row.kind in SHAPING_KINDS else replace(factor, value="")

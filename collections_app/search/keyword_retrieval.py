"""Finds the chunks that share words with a query, and their BM25 scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from django.db import connection

from collections_app.lexical.term_statistics import AskedWord, QueryTerms

from .scope import Scope

# Chunks that are scored, as far as the counts of their words can tell beforehand.
MOST_CANDIDATES = 2_000
# Where a filter keeps no more than so many chunks, all of them are scored.
MOST_SCORED = 5_000
# More are never scored in one search.
MOST_AT_ONCE = 10_000
# Of the words that are too frequent for the budget, so many are looked for in pairs.
FREQUENT_WORDS = 6

SCORE = "-(words.weights <#> %s::sparsevec)"
BEST = f"""
    SELECT words.chunk_id, {SCORE} AS score FROM chunk_words words
    WHERE {{condition}} ORDER BY score DESC, words.chunk_id LIMIT %s
"""
# Which ones, when there are more, must not depend on how the rows of others lie between them.
BEST_OF_MANY = f"""
    WITH words AS MATERIALIZED (
        SELECT words.chunk_id FROM chunk_words words WHERE {{condition}} ORDER BY words.chunk_id LIMIT {MOST_AT_ONCE}
    )
    SELECT chunk_id, {SCORE} AS score FROM chunk_words words JOIN words AS chosen USING (chunk_id)
    ORDER BY score DESC, chunk_id LIMIT %s
"""
# The hash in `terms` keeps collections apart by chance, and who knows a collection's id could look for words that share
# it. So those that come out are asked for their collection.
OWN = """
    SELECT found.chunk_id, found.score FROM ({best}) AS found
    JOIN chunk ON chunk.id = found.chunk_id AND chunk.collection_id = %s
"""
SCORES = f"SELECT words.chunk_id, {SCORE} FROM chunk_words words WHERE words.chunk_id = ANY(%s::bigint[])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The chunks to score: those with one of these words, and those with both words of a pair."""

    any_of: tuple[int, ...] = ()
    pairs: tuple[tuple[int, ...], ...] = ()
    # It cannot be more: in the worst case the rarer of two words never stands without the other.
    most: int = 0

    def condition(self) -> tuple[str, list[Any]]:
        parts = ["words.terms && %s::bigint[]"] if self.any_of else []
        parts += ["words.terms @> %s::bigint[]"] * len(self.pairs)
        values: list[Any] = [list(self.any_of)] if self.any_of else []
        return f"({' OR '.join(parts)})", [*values, *map(list, self.pairs)]


def plan(words: Sequence[AskedWord], chunks: int, budget: int) -> Plan:
    """The rarest words as far as the budget goes, then pairs of the frequent ones; the rarest pair in any case.

    >>> rare, often = (AskedWord(lexeme="", place=1, term=n, chunks=n) for n in (3, 900))
    >>> plan([rare, often], 1_000, 100)
    Plan(any_of=(3,), pairs=(), most=3)
    """
    left, most, any_of = budget, 0, []
    frequent = []
    for each in sorted(words, key=lambda word: (word.chunks, word.term)):
        if chunks <= budget or each.chunks <= left:
            any_of.append(each.term)
            left -= each.chunks
            most += each.chunks
        else:
            frequent.append(each)
    pairs: list[tuple[int, ...]] = []
    for one, two in combinations(frequent[:FREQUENT_WORDS], 2):
        # As if words stood together by chance alone.
        expected = one.chunks * two.chunks / max(1, chunks)
        if expected <= left or not (any_of or pairs):
            pairs.append((one.term, two.term))
            left -= int(expected)
            most += one.chunks
    if frequent and not (any_of or pairs):
        pairs.append((frequent[0].term,))
        most = frequent[0].chunks
    return Plan(any_of=tuple(any_of), pairs=tuple(pairs), most=most)


def best(scope: Scope, asked: QueryTerms, count: int) -> dict[int, float]:
    """The chunks that say most about the words of the query, with their scores."""
    known = asked.known
    if not known:
        return {}
    kept, kept_values = scope.condition("words.version_id")
    if scope.chunks is not None and scope.chunks <= MOST_SCORED:
        terms = [each.term for each in known]
        condition = f"{kept} AND words.terms && %s::bigint[]"
        return _own(scope, BEST.format(condition=condition), [asked.vector(), *kept_values, terms, count])
    part = 1.0 if scope.chunks is None else scope.chunks / max(1, asked.chunks)
    found = plan(known, asked.chunks, int(MOST_CANDIDATES / max(part, 0.1)))
    wanted, values = found.condition()
    condition = f"{wanted} AND {kept}"
    if min(found.most, asked.chunks) > MOST_AT_ONCE:
        given = [*values, *kept_values, asked.vector(), count]
        return _own(scope, BEST_OF_MANY.format(condition=condition), given)
    return _own(scope, BEST.format(condition=condition), [asked.vector(), *values, *kept_values, count])


def _own(scope: Scope, statement: str, values: list[Any]) -> dict[int, float]:
    with connection.cursor() as cursor:
        cursor.execute(OWN.format(best=statement), [*values, scope.collection.pk])
        return dict(cursor.fetchall())


def scores(chunk_ids: Iterable[int], asked: QueryTerms) -> dict[int, float]:
    """Of chunks that were found otherwise."""
    ids = sorted(chunk_ids)
    if not ids or not asked.known:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(SCORES, [asked.vector(), ids])
        return dict(cursor.fetchall())

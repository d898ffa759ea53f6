"""Finds the chunks that share words with a query, and their BM25 scores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from collections_app.lexical.term_statistics import QueryTerms, QueryWord
from system.plain_sql import fetch_rows

from .scope import Scope

# Chunks to score, estimated from the counts of their words.
MAX_CANDIDATES = 2_000
# If a filter keeps at most this many chunks, all of them are scored.
MAX_FILTERED_CHUNKS = 5_000
# One search never scores more chunks.
MAX_SCORED_CHUNKS = 10_000
# The number of words too frequent for the budget that are searched in pairs.
MAX_FREQUENT_WORDS = 6

SCORE_SQL = "-(words.weights <#> %s::sparsevec)"
BEST_CHUNKS_SQL = f"""
    SELECT words.chunk_id, {SCORE_SQL} AS score FROM chunk_words words
    WHERE {{condition}} ORDER BY score DESC, words.chunk_id LIMIT %s
"""
# Ordered, so that the selection does not depend on the rows of other collections.
BEST_OF_MANY_SQL = f"""
    WITH words AS MATERIALIZED (
        SELECT words.chunk_id FROM chunk_words words WHERE {{condition}}
        ORDER BY words.chunk_id LIMIT {MAX_SCORED_CHUNKS}
    )
    SELECT chunk_id, {SCORE_SQL} AS score FROM chunk_words words JOIN words AS chosen USING (chunk_id)
    ORDER BY score DESC, chunk_id LIMIT %s
"""
# Terms are hashed with the collection's id. Somebody who knows an id could construct a collision, so the collection of
# each result is checked.
OWN_COLLECTION_SQL = """
    SELECT result.chunk_id, result.score FROM ({best}) AS result
    JOIN chunk ON chunk.id = result.chunk_id AND chunk.collection_id = %s
"""
SCORES_SQL = f"SELECT words.chunk_id, {SCORE_SQL} FROM chunk_words words WHERE words.chunk_id = ANY(%s::bigint[])"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalPlan:
    """The chunks to score: those with one of the words, and those with both words of a pair."""

    any_of: tuple[int, ...] = ()
    pairs: tuple[tuple[int, ...], ...] = ()
    # The upper bound: at worst the rarer word of each pair always occurs with the other.
    max_chunks: int = 0

    def condition(self) -> tuple[str, list[Any]]:
        parts = ["words.terms && %s::bigint[]"] if self.any_of else []
        parts += ["words.terms @> %s::bigint[]"] * len(self.pairs)
        values: list[Any] = [list(self.any_of)] if self.any_of else []
        return f"({' OR '.join(parts)})", [*values, *map(list, self.pairs)]


def plan_retrieval(words: Sequence[QueryWord], chunks: int, budget: int) -> RetrievalPlan:
    """The rarest words within the budget, then pairs of frequent words; always at least the rarest pair.

    >>> rare, often = (QueryWord(lexeme="", position=1, term=n, chunks=n) for n in (3, 900))
    >>> plan_retrieval([rare, often], 1_000, 100)
    RetrievalPlan(any_of=(3,), pairs=(), max_chunks=3)
    """
    remaining, max_chunks, any_of = budget, 0, []
    frequent = []
    for word in sorted(words, key=lambda word: (word.chunks, word.term)):
        if chunks <= budget or word.chunks <= remaining:
            any_of.append(word.term)
            remaining -= word.chunks
            max_chunks += word.chunks
        else:
            frequent.append(word)
    pairs: list[tuple[int, ...]] = []
    for rarer, other in combinations(frequent[:MAX_FREQUENT_WORDS], 2):
        # As if the words occurred independently.
        expected = rarer.chunks * other.chunks / max(1, chunks)
        if expected <= remaining or not (any_of or pairs):
            pairs.append((rarer.term, other.term))
            remaining -= int(expected)
            max_chunks += rarer.chunks
    if frequent and not (any_of or pairs):
        pairs.append((frequent[0].term,))
        max_chunks = frequent[0].chunks
    return RetrievalPlan(any_of=tuple(any_of), pairs=tuple(pairs), max_chunks=max_chunks)


def best_chunks(scope: Scope, query: QueryTerms, count: int) -> dict[int, float]:
    known = query.known
    if not known:
        return {}
    in_scope, scope_values = scope.condition("words.version_id")
    if scope.chunks is not None and scope.chunks <= MAX_FILTERED_CHUNKS:
        plan = RetrievalPlan(any_of=tuple([word.term for word in known]), max_chunks=scope.chunks)
    else:
        share = 1.0 if scope.chunks is None else scope.chunks / max(1, query.chunks)
        plan = plan_retrieval(known, query.chunks, int(MAX_CANDIDATES / max(share, 0.1)))
    has_words, values = plan.condition()
    if min(plan.max_chunks, query.chunks) > MAX_SCORED_CHUNKS:
        statement, parameters = BEST_OF_MANY_SQL, [*values, *scope_values, query.vector(), count]
    else:
        statement, parameters = BEST_CHUNKS_SQL, [query.vector(), *values, *scope_values, count]
    statement = OWN_COLLECTION_SQL.format(best=statement.format(condition=f"{has_words} AND {in_scope}"))
    return dict(fetch_rows(statement, [*parameters, scope.collection.pk]))


def fetch_scores(chunk_ids: Iterable[int], query: QueryTerms) -> dict[int, float]:
    """The keyword scores of chunks that were found by vectors."""
    ids = sorted(chunk_ids)
    if not ids or not query.known:
        return {}
    return dict(fetch_rows(SCORES_SQL, [query.vector(), ids]))

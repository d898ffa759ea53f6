"""Finds the chunks that share words with a query, and their BM25 scores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from collections_app.lexical.term_statistics import QueryTerms, QueryWord
from system.plain_sql import fetch_rows

from .scope import Scope

# The number of chunks to score, as estimated from word counts.
MAX_CANDIDATES = 2_000
# If a filter keeps at most this many chunks, all of them are scored.
MAX_FILTERED_CHUNKS = 5_000
# If a filter keeps a smaller share, the index on versions narrows the candidates.
MAX_INDEXED_SHARE = 0.3
# A search never scores more chunks in one collection.
MAX_SCORED_CHUNKS = 10_000
# The maximum number of words that are too frequent for the budget and are searched in pairs.
MAX_FREQUENT_WORDS = 6

SCORE_SQL = "-(words.weights <#> %s::sparsevec)"
BEST_CHUNKS_SQL = f"""
    SELECT words.chunk_id, {SCORE_SQL} AS score FROM chunk_words words
    WHERE {{condition}} ORDER BY score DESC, words.chunk_id LIMIT %s
"""
# The order keeps the selection independent of the rows of other collections.
BEST_OF_MANY_SQL = f"""
    WITH words AS MATERIALIZED (
        SELECT words.chunk_id, words.weights FROM chunk_words words WHERE {{condition}}
        ORDER BY words.chunk_id LIMIT {MAX_SCORED_CHUNKS}
    )
    SELECT words.chunk_id, {SCORE_SQL} AS score FROM words ORDER BY score DESC, words.chunk_id LIMIT %s
"""
# Terms are hashed with the collection's id. Anyone who knows an id could construct a collision, so the collection of
# each result is checked.
OWN_COLLECTION_SQL = """
    SELECT result.chunk_id, result.score FROM ({best}) AS result
    JOIN chunk ON chunk.id = result.chunk_id AND chunk.collection_id = %s
"""
SCORES_SQL = f"SELECT words.chunk_id, {SCORE_SQL} FROM chunk_words words WHERE words.chunk_id = ANY(%s::bigint[])"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalPlan:
    """The chunks to score: those with one of the words, and those with both words of a pair."""

    any_terms: tuple[int, ...] = ()
    term_pairs: tuple[tuple[int, ...], ...] = ()
    # An upper bound: the rarer word of each pair may always occur with the other.
    max_chunks: int = 0

    def condition(self) -> tuple[str, list[Any]]:
        parts = ["words.terms && %s::bigint[]"] if self.any_terms else []
        parts += ["words.terms @> %s::bigint[]"] * len(self.term_pairs)
        values: list[Any] = [list(self.any_terms)] if self.any_terms else []
        return f"({' OR '.join(parts)})", [*values, *map(list, self.term_pairs)]


def plan_retrieval(words: Sequence[QueryWord], chunk_count: int, budget: int) -> RetrievalPlan:
    """Selects the rarest words within the budget, then pairs of frequent words; always at least the rarest pair.

    >>> rare, frequent = (QueryWord(lexeme="", position=1, term=n, chunk_count=n) for n in (3, 900))
    >>> plan_retrieval([rare, frequent], 1_000, 100)
    RetrievalPlan(any_terms=(3,), term_pairs=(), max_chunks=3)
    """
    remaining_budget, max_chunks, any_terms = budget, 0, []
    frequent_words = []
    for word in sorted(words, key=lambda word: (word.chunk_count, word.term)):
        if chunk_count <= budget or word.chunk_count <= remaining_budget:
            any_terms.append(word.term)
            remaining_budget -= word.chunk_count
            max_chunks += word.chunk_count
        else:
            frequent_words.append(word)
    pairs: list[tuple[int, ...]] = []
    for rarer, other in combinations(frequent_words[:MAX_FREQUENT_WORDS], 2):
        # Assumes that the words occur independently.
        expected_count = rarer.chunk_count * other.chunk_count / max(1, chunk_count)
        if expected_count <= remaining_budget or not (any_terms or pairs):
            pairs.append((rarer.term, other.term))
            remaining_budget -= int(expected_count)
            max_chunks += rarer.chunk_count
    if frequent_words and not (any_terms or pairs):
        pairs.append((frequent_words[0].term,))
        max_chunks = frequent_words[0].chunk_count
    return RetrievalPlan(any_terms=tuple(any_terms), term_pairs=tuple(pairs), max_chunks=max_chunks)


def best_chunks(scope: Scope, query_terms: QueryTerms, count: int) -> dict[int, float]:
    known_words = query_terms.known_words
    if not known_words:
        return {}
    if scope.chunk_count is not None and scope.chunk_count <= MAX_FILTERED_CHUNKS:
        return _best_of_few(scope, query_terms, count)
    share = 1.0 if scope.chunk_count is None else scope.chunk_count / max(1, query_terms.chunk_count)
    plan = plan_retrieval(known_words, query_terms.chunk_count, int(MAX_CANDIDATES / max(share, 0.1)))
    word_condition, values = plan.condition()
    scope_condition, scope_values = scope.condition("words.version_id", uses_index=share < MAX_INDEXED_SHARE)
    condition, values = f"{word_condition} AND {scope_condition}", [*values, *scope_values]
    if min(plan.max_chunks, query_terms.chunk_count) > MAX_SCORED_CHUNKS:
        return _fetch_own(scope, BEST_OF_MANY_SQL, condition, [*values, query_terms.vector(), count])
    return _fetch_own(scope, BEST_CHUNKS_SQL, condition, [query_terms.vector(), *values, count])


def _best_of_few(scope: Scope, query_terms: QueryTerms, count: int) -> dict[int, float]:
    """Scores all chunks that a filter keeps, which is faster than looking for the words in each."""
    vector = query_terms.vector()
    scope_condition, values = scope.condition("words.version_id")
    condition = f"{SCORE_SQL} > 0 AND {scope_condition}"
    return _fetch_own(scope, BEST_CHUNKS_SQL, condition, [vector, vector, *values, count])


def _fetch_own(scope: Scope, best: str, condition: str, values: list[Any]) -> dict[int, float]:
    statement = OWN_COLLECTION_SQL.format(best=best.format(condition=condition))
    return dict(fetch_rows(statement, [*values, scope.collection.pk]))


def fetch_scores(chunk_ids: Iterable[int], query_terms: QueryTerms) -> dict[int, float]:
    """Returns the keyword scores of chunks that were found by vectors."""
    ids = sorted(chunk_ids)
    if not ids or not query_terms.known_words:
        return {}
    return dict(fetch_rows(SCORES_SQL, [query_terms.vector(), ids]))

"""Runs a search: scope, keyword and vector retrieval, fusion, passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collections_app import embed
from collections_app.lexical import term_statistics
from collections_app.lexical.term_statistics import QueryTerms
from collections_app.metadata.filter import Filter
from collections_app.models import Collection, EmbeddingSpace
from system.errors import Unavailable

from . import keyword_retrieval, vector_retrieval
from .fusion import Candidate, fused
from .passages import Hit, passages
from .scope import Scope, scopes, snapshot

__all__ = ["Hit", "SearchRequest", "SearchResult", "search"]

# From each of the two sides so many come into the fusion.
LEAST_CANDIDATES = 100


class WithoutVectors(Unavailable):
    code = "embedding_unavailable"
    message = "The query cannot be turned into a vector just now. Try again shortly, or with mode=text."


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What is looked for: the best `k` passages; `alpha` None is each collection's own."""

    query: str
    k: int
    filter: Filter
    mode: str = "hybrid"
    alpha: float | None = None

    @property
    def count(self) -> int:
        return max(LEAST_CANDIDATES, 2 * self.k)

    def alpha_in(self, collection: Collection) -> float:
        fixed = {"text": 1.0, "vector": 0.0}
        return fixed.get(self.mode, collection.alpha if self.alpha is None else self.alpha)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The best first; without vectors when they were wanted and could not be had."""

    hits: list[Hit]
    is_without_vectors: bool


def search(collections: Sequence[Collection], asked: SearchRequest) -> SearchResult:
    """The best passages of all these collections together."""
    vectors = _vectors(collections, asked)
    with snapshot():
        moved = _moved(collections, asked)
        if not moved:
            return _found(collections, asked, vectors)
    # Once: the vectors of a space stay for a while after searches have gone over from it.
    now = [moved.get(each.pk, each) for each in collections]
    vectors = _vectors(now, asked)
    with snapshot():
        return _found(now, asked, vectors)


def _moved(collections: Sequence[Collection], asked: SearchRequest) -> Mapping[str, Collection]:
    """Those that went over to another space while the query was embedded: their vectors lie elsewhere now."""
    if asked.mode == "text":
        return {}
    before = {each.pk: each.space_id for each in collections}
    now = Collection.objects.filter(pk__in=before).select_related("space").order_by()
    return {each.pk: each for each in now if each.space_id != before[each.pk]}


def _found(collections: Sequence[Collection], asked: SearchRequest, vectors: Mapping[int, str] | None) -> SearchResult:
    words = term_statistics.asked_words(asked.query, collections)
    found: list[Candidate] = []
    for scope in scopes(collections, asked.filter):
        vector = (vectors or {}).get(scope.collection.space_id)
        found += _candidates(scope, asked, words[scope.collection.pk], vector)
    return SearchResult(hits=passages(fused(found), asked.k, words), is_without_vectors=vectors is None)


def _vectors(collections: Sequence[Collection], asked: SearchRequest) -> Mapping[int, str] | None:
    """The query's place in each space; None when one of them cannot be had: half an answer would mislead.

    Before the snapshot: a provider may take seconds, and no transaction waits for it.
    """
    if asked.mode == "text":
        return {}
    spaces: dict[int, EmbeddingSpace] = {each.space_id: each.space for each in collections}
    try:
        return {
            space_id: vector_retrieval.written(embed.embedder(space).embed_query(asked.query))
            for space_id, space in spaces.items()
        }
    except (embed.EmbeddingUnavailable, embed.EmbeddingRefused):
        if asked.mode == "vector":
            raise WithoutVectors from None
        return None


def _candidates(scope: Scope, asked: SearchRequest, words: QueryTerms, vector: str | None) -> list[Candidate]:
    """The best by words and the nearest by vectors, each with both scores."""
    texts = {} if asked.mode == "vector" else keyword_retrieval.best(scope, words, asked.count)
    cosines: dict[int, float] = {}
    if vector is not None:
        cosines = vector_retrieval.nearest(scope, words.chunks, vector, asked.count)
        cosines |= vector_retrieval.cosines(texts.keys() - cosines.keys(), scope.collection.space, vector)
    if asked.mode != "vector":
        texts |= keyword_retrieval.scores(cosines.keys() - texts.keys(), words)
    return [
        Candidate(
            chunk_id=each,
            collection_id=scope.collection.pk,
            space_id=scope.collection.space_id,
            alpha=asked.alpha_in(scope.collection),
            text=None if asked.mode == "vector" else texts.get(each, 0.0),
            vector=cosines.get(each),
        )
        for each in sorted(texts.keys() | cosines.keys())
    ]

"""Runs a search: scope, retrieval, comparison of characters, fusion, arrangement, passages, reranking."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from collections_app import embed
from collections_app.lexical import synonyms, term_statistics
from collections_app.lexical.term_statistics import QueryTerms
from collections_app.metadata.filter import Filter
from collections_app.models import Collection, EmbeddingSpace
from system.errors import Unavailable

from . import keyword_retrieval, reranking, vector_retrieval
from .arrangement import Arrangement, arrange
from .character_comparison import compare_chunks
from .fusion import Candidate, fuse
from .match import match_score
from .passages import Hit, cut_to_length, read_passages
from .scope import Scope, build_scopes, snapshot_transaction
from .weights import Weights, choose_weights

# The fusion takes at least this many candidates from each retrieval.
MIN_CANDIDATES = 100


class SemanticSearchUnavailable(Unavailable):
    code = "embedding_unavailable"
    message = "Semantic search is unavailable. Try again shortly, or use mode=text."


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A query for the best `k` passages. If `alpha` is None, each collection uses its own, or that of its model."""

    query: str
    k: int
    filter: Filter
    mode: str = "hybrid"
    alpha: float | None = None
    min_score: float = 0.0
    arrangement: Arrangement = Arrangement()
    max_characters: int | None = None
    reranks: bool = False

    @property
    def candidate_count(self) -> int:
        return max(MIN_CANDIDATES, 2 * self.k)

    def weights_for(self, collection: Collection, english_share: float) -> Weights:
        fixed_alphas = {"text": 1.0, "vector": 0.0}
        alpha = fixed_alphas.get(self.mode, collection.own_alpha if self.alpha is None else self.alpha)
        return choose_weights(collection.space.model, english_share, alpha)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits, best first. The others are true if vectors or a reranking were requested but unavailable."""

    hits: list[Hit]
    is_without_vectors: bool
    is_without_reranking: bool = False


def search(collections: Sequence[Collection], request: SearchRequest) -> SearchResult:
    if not request.reranks:
        result = _retrieve(collections, request)
    else:
        result = _retrieve(collections, replace(request, k=max(request.k, reranking.MIN_RERANKED)))
        hits = reranking.rerank(request.query, result.hits)
        result = replace(result, hits=(hits or result.hits)[: request.k], is_without_reranking=hits is None)
    if request.max_characters is None:
        return result
    return replace(result, hits=cut_to_length(result.hits, request.max_characters))


def _retrieve(collections: Sequence[Collection], request: SearchRequest) -> SearchResult:
    vectors = _embed_query(collections, request)
    with snapshot_transaction():
        changed_collections = _changed_collections(collections, request)
        if not changed_collections:
            return _search(collections, request, vectors)
    # Retried only once, because the vectors of a former space remain available for a while.
    current_collections = [changed_collections.get(collection.pk, collection) for collection in collections]
    vectors = _embed_query(current_collections, request)
    with snapshot_transaction():
        return _search(current_collections, request, vectors)


def _changed_collections(collections: Sequence[Collection], request: SearchRequest) -> Mapping[str, Collection]:
    """Returns the collections that switched to another space while the query was being embedded."""
    if request.mode == "text":
        return {}
    old_spaces = {collection.pk: collection.space_id for collection in collections}
    current = Collection.objects.filter(pk__in=old_spaces).select_related("space").order_by()
    return {collection.pk: collection for collection in current if collection.space_id != old_spaces[collection.pk]}


def _search(
    collections: Sequence[Collection], request: SearchRequest, vectors: Mapping[int, str] | None
) -> SearchResult:
    added_words = synonyms.find_synonyms(request.query, collections)
    terms = term_statistics.find_query_terms(request.query, collections, added_words)
    candidates: list[Candidate] = []
    queries: dict[int, str] = {}
    for scope in build_scopes(collections, request.filter):
        vector = (vectors or {}).get(scope.collection.space_id)
        scope_candidates = _candidates(scope, request, terms[scope.collection.pk], vector)
        candidates += scope_candidates
        query = f"{request.query} {added_words.get(scope.collection.pk, '')}"
        queries |= {candidate.chunk_id: query for candidate in scope_candidates}
    ranking = fuse(candidates)
    if request.mode != "vector":
        ranking = fuse(_compare_characters(ranking, queries))
    ranking = [candidate for candidate in ranking if candidate.match >= request.min_score]
    spans = arrange(ranking, request.k, request.arrangement)
    return SearchResult(hits=read_passages(spans, terms), is_without_vectors=vectors is None)


def _compare_characters(ranking: Sequence[Candidate], queries: Mapping[int, str]) -> list[Candidate]:
    """Returns the candidates with the character scores of the best ones, compared with the query of their chunk."""
    scores = compare_chunks({candidate.chunk_id: queries[candidate.chunk_id] for candidate in ranking})
    return [replace(candidate, character_score=scores.get(candidate.chunk_id)) for candidate in ranking]


def _embed_query(collections: Sequence[Collection], request: SearchRequest) -> Mapping[int, str] | None:
    """Returns the query's vector in each space, or None if one is unavailable: a partial result would be misleading.

    Called before the snapshot: a provider may take seconds, and no transaction should wait for it.
    """
    if request.mode == "text":
        return {}
    spaces: dict[int, EmbeddingSpace] = {collection.space_id: collection.space for collection in collections}
    try:
        return {
            space_id: vector_retrieval.vector_literal(embed.Embedder(space).embed_query(request.query))
            for space_id, space in spaces.items()
        }
    except (embed.EmbeddingUnavailable, embed.EmbeddingRefused):
        if request.mode == "vector":
            raise SemanticSearchUnavailable from None
        return None


def _candidates(scope: Scope, request: SearchRequest, terms: QueryTerms, vector: str | None) -> list[Candidate]:
    bm25 = {} if request.mode == "vector" else keyword_retrieval.best_chunks(scope, terms, request.candidate_count)
    cosines: dict[int, float] = {}
    if vector is not None:
        cosines = vector_retrieval.nearest_chunks(scope, terms.chunk_count, vector, request.candidate_count)
        cosines |= vector_retrieval.chunk_cosines(bm25.keys() - cosines.keys(), scope.collection.space, vector)
    if request.mode != "vector":
        bm25 |= keyword_retrieval.fetch_scores(cosines.keys() - bm25.keys(), terms)
    weights = request.weights_for(scope.collection, terms.english_share)
    space = scope.collection.space
    candidates = []
    for chunk_id in sorted(bm25.keys() | cosines.keys()):
        text_score = None if request.mode == "vector" else bm25.get(chunk_id, 0.0)
        candidate = Candidate(
            chunk_id=chunk_id,
            space_id=space.pk,
            weights=weights,
            text_score=text_score,
            vector_score=cosines.get(chunk_id),
            match=match_score(space, terms, vector_score=cosines.get(chunk_id), text_score=text_score),
        )
        candidates.append(candidate)
    return candidates

"""Reads the parameters of a search, and responds with its passages."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rest_framework.response import Response

from collections_app.http import parameters, responses
from collections_app.http.parameters import RequestParameters
from collections_app.models import Collection
from collections_app.search import reranking
from collections_app.search.arrangement import Arrangement
from collections_app.search.pipeline import SearchRequest, search
from system.errors import BadRequest, InvalidParameter


@dataclass(frozen=True, slots=True)
class Searches:
    """The search of each query. The response has one more level if the caller sent a list of queries."""

    requests: Sequence[SearchRequest]
    is_list: bool


def read_searches(values: RequestParameters) -> Searches:
    queries = values.get("queries", parameters.read_queries)
    query = values.get("query", parameters.read_query) if queries else values.require("query", parameters.read_query)
    if queries and query:
        raise BadRequest("Send either query or queries.", code="contradiction", field="queries")
    reranks = _read_rerank(values)
    length_reader = parameters.number_reader(parameters.MIN_CHARACTERS, parameters.MAX_CHARACTERS)
    request = SearchRequest(
        query="",
        k=_read_k(values, len(queries or ()), reranks),
        filter=parameters.read_filter(values, "metadata"),
        mode=values.get("mode", parameters.choice_reader(parameters.SEARCH_MODES)) or "hybrid",
        alpha=values.get("alpha", parameters.read_weight),
        min_score=values.get("min_score", parameters.read_weight) or 0.0,
        arrangement=Arrangement(
            collapses_copies=values.get("collapse", parameters.read_boolean) or False,
            by_document=values.get("group_by", parameters.choice_reader(("document",))) is not None,
            context=values.get("context", parameters.number_reader(0, parameters.MAX_CONTEXT)),
        ),
        max_characters=values.get("max_characters", length_reader),
        reranks=reranks,
    )
    return Searches([replace(request, query=text) for text in queries or [query or ""]], queries is not None)


def _read_rerank(values: RequestParameters) -> bool:
    reranks = values.get("rerank", parameters.read_boolean) or False
    if reranks and not reranking.is_configured():
        raise BadRequest("No reranking provider is configured.", code="rerank_not_configured", field="rerank")
    return reranks


def _read_k(values: RequestParameters, query_count: int, reranks: bool) -> int:
    k = values.get("k", parameters.number_reader(1, parameters.MAX_K)) or parameters.DEFAULT_K
    # Each reranked query sends at least this many passages to the provider.
    passages_per_query = max(k, reranking.MIN_RERANKED) if reranks else k
    if query_count and passages_per_query * query_count > parameters.MAX_K:
        least = f" With rerank, k counts as at least {reranking.MIN_RERANKED}." if reranks else ""
        message = f"k times the number of queries must not exceed {parameters.MAX_K}.{least}"
        raise InvalidParameter(message, field="k")
    return k


def respond(collections: Sequence[Collection], searches: Searches) -> Response:
    results = [search(collections, request) for request in searches.requests]
    return responses.passages_response(results, is_list=searches.is_list)

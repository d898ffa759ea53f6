"""OpenAI's search of a vector store, over the search of a collection: for clients that know only OpenAI's API.

Its parameters, its response and its errors are those of `client.vector_stores.search(…)` of the package openai.
"""

import json
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from collections_app import access
from collections_app.http import parameters
from collections_app.metadata.filter import Filter
from collections_app.search.passages import Hit
from collections_app.search.pipeline import SearchRequest, search
from system.encoded_query import METADATA, Condition, Group, Query, QueryError, SubQuery, Term
from system.errors import BadRequest, InvalidParameter, ServiceError
from system.http.json_view import JsonView

MAX_RESULTS = 50
DEFAULT_RESULTS = 10
OPERATORS = {"eq": "=", "ne": "!=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
# Each compares with a list: one of the conditions must hold, or all of them.
LIST_OPERATORS = {"in": ("=", "or"), "nin": ("!=", "and")}
COMPOUNDS = ("and", "or")
ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


@extend_schema(exclude=True)  # OpenAI describes it
class SearchVectorStore(JsonView):
    """`POST /v1/vector_stores/{id}/search`. The id is the `sys_id` of a collection that the caller can read."""

    http_method_names = ["post"]
    reads_by_post = True

    def post(self, request: Request, sys_id: str) -> Response:
        names = ("query", "filters", "max_num_results", "ranking_options", "rewrite_query")
        values = parameters.parse_parameters({}, parameters.json_body(request), names)
        ranking = values.get("ranking_options", read_ranking) or {}
        search_request = SearchRequest(
            query=values.require("query", read_queries),
            k=values.get("max_num_results", parameters.number_reader(1, MAX_RESULTS)) or DEFAULT_RESULTS,
            filter=values.get("filters", read_filters) or Filter(),
            alpha=ranking.get("alpha"),
            min_score=ranking.get("score_threshold", 0.0),
        )
        result = search([access.open_collection_by_id(access.caller(request), sys_id, "read")], search_request)
        return Response(
            {
                "object": "vector_store.search_results.page",
                "search_query": search_request.query,
                "data": list(map(hit_body, result.hits)),
                "has_more": False,
                "next_page": None,
            }
        )


def hit_body(hit: Hit) -> dict[str, Any]:
    # OpenAI's attributes have one value each.
    attributes = {name: value for name, value in hit.metadata.items() if isinstance(value, str | int | float)}
    return {
        "file_id": hit.doc_id,
        "filename": hit.filename,
        "score": hit.score,
        "attributes": attributes,
        "content": [{"type": "text", "text": hit.page_content}],
    }


def error_body(error: ServiceError) -> dict[str, Any]:
    kind = ERROR_TYPES.get(error.status) or ("server_error" if error.status >= 500 else "invalid_request_error")
    return {"error": {"message": error.message, "type": kind, "param": error.field, "code": error.code}}


def read_queries(name: str, value: Any) -> str:
    """Several queries are searched as one."""
    queries = value if isinstance(value, list) and value else [value]
    return parameters.read_query(name, " ".join(parameters.read_text(name, query) for query in queries))


def read_ranking(name: str, value: Any) -> dict[str, float]:
    """The least match, and the weight of the words. There is one ranker, so its name is not compared."""
    options = _object(name, value, ("ranker", "score_threshold", "hybrid_search"))
    ranking = {}
    if options.get("score_threshold") is not None:
        ranking["score_threshold"] = parameters.read_weight(f"{name}.score_threshold", options["score_threshold"])
    if options.get("hybrid_search") is not None:
        hybrid_name = f"{name}.hybrid_search"
        weights = _object(hybrid_name, options["hybrid_search"], ("embedding_weight", "text_weight"))
        embedding, text = (
            parameters.read_weight(f"{hybrid_name}.{part}", weights.get(part))
            for part in ("embedding_weight", "text_weight")
        )
        if embedding + text == 0:
            raise InvalidParameter("One of the two weights must be greater than 0.", field=hybrid_name)
        ranking["alpha"] = text / (embedding + text)
    return ranking


def read_filters(name: str, value: Any) -> Filter:
    query = Query((Group((Term((_factor(name, value, 0),)),)),))
    if sum(1 for _ in query.conditions()) > METADATA.max_conditions:
        raise InvalidParameter(f"{name} has more than {METADATA.max_conditions} conditions.", field=name)
    result = Filter(query)
    try:
        result.sql("metadata")
    except QueryError as error:
        raise BadRequest(f"Invalid filter: {error.message}.", code="invalid_query", field=name) from None
    return result


def _factor(name: str, value: Any, depth: int) -> Condition | SubQuery:
    if depth > METADATA.max_depth:
        raise InvalidParameter(f"{name} has more than {METADATA.max_depth} levels.", field=name)
    if not isinstance(value, Mapping):
        raise InvalidParameter(f"{name} must be a JSON object.", field=name)
    kind = value.get("type")
    if kind in COMPOUNDS:
        parts = _object(name, value, ("type", "filters")).get("filters")
        if not isinstance(parts, list) or not parts:
            raise InvalidParameter(f"{name}.filters must be a list of filters.", field=name)
        return _compound(kind, [_factor(name, part, depth + 1) for part in parts])
    if kind not in (*OPERATORS, *LIST_OPERATORS):
        expected = ", ".join((*OPERATORS, *LIST_OPERATORS, *COMPOUNDS))
        raise InvalidParameter(f"{name}.type must be one of: {expected}.", field=name)
    comparison = _object(name, value, ("type", "key", "value"))
    key, operand = parameters.read_nonempty_text(f"{name}.key", comparison.get("key")), comparison.get("value")
    if len(key) > METADATA.max_name_length:
        message = f"{name}.key is longer than {METADATA.max_name_length} characters."
        raise InvalidParameter(message, field=f"{name}.key")
    if kind in LIST_OPERATORS:
        operator, compound = LIST_OPERATORS[kind]
        if not isinstance(operand, list) or not operand:
            raise InvalidParameter(f"{name}.value must be a list for {kind}.", field=name)
        return _compound(compound, [_condition(name, key, operator, item) for item in operand])
    return _condition(name, key, OPERATORS[kind], operand)


def _compound(kind: str, factors: list[Condition | SubQuery]) -> SubQuery:
    terms = [Term((factor,)) for factor in factors] if kind == "and" else [Term(tuple(factors))]
    return SubQuery((Group(tuple(terms)),))


def _condition(name: str, key: str, operator: str, value: Any) -> Condition:
    if isinstance(value, bool | int | float):
        value = json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)
    text = parameters.read_text(f"{name}.value", value)
    if not text and operator in ("=", "!="):
        operator = "ISEMPTY" if operator == "=" else "ISNOTEMPTY"
    return Condition((key,), operator, text)


def _object(name: str, value: Any, known_names: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidParameter(f"{name} must be a JSON object.", field=name)
    parameters.refuse_unknown(value, known_names)
    return value

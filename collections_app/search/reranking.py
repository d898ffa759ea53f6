"""Sorts the best passages again with a provider that compares each one with the query, if the caller asks for it.

Called outside of the search's transaction, because a provider may take seconds. If it fails, the order stays.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import structlog
from django.conf import settings

from collections_app.embed import EmbeddingUnavailable, shared_breaker
from system import outbound
from system.outbound import OutboundError, Policy

from .passages import SCORE_DIGITS, Hit

logger = structlog.get_logger(__name__)

# The number of passages that are sent, unless more are wanted.
MIN_RERANKED = 50
TIMEOUT_S = 5.0


def is_configured() -> bool:
    return bool(settings.RERANKING["url"])


def rerank(query: str, hits: Sequence[Hit]) -> list[Hit] | None:
    """Returns the hits in the order of the provider, or None if it is unavailable."""
    if not hits:
        return []
    breaker = shared_breaker("reranking")
    try:
        breaker.check_search_allowed()
        relevance = _request_relevance(query, [hit.page_content for hit in hits])
    except EmbeddingUnavailable:
        return None
    except (OutboundError, LookupError, TypeError, ValueError) as error:
        breaker.record_search_failure()
        logger.warning("reranking_failed", kind=type(error).__name__, code=getattr(error, "code", None))
        return None
    breaker.record_search_success()
    scored = [
        replace(hit, scores=hit.scores | {"rerank": round(score, SCORE_DIGITS)})
        for hit, score in zip(hits, relevance, strict=True)
    ]
    return sorted(scored, key=lambda hit: -(hit.scores["rerank"] or 0.0))


def _request_relevance(query: str, texts: Sequence[str]) -> list[float]:
    """Returns the relevance of each text. Raises LookupError, TypeError or ValueError for an unusable response."""
    options = settings.RERANKING
    body = {"query": query, "documents": list(texts), "top_n": len(texts), "return_documents": False}
    body |= {"model": options["model"]} if options["model"] else {}
    headers = {"authorization": f"Bearer {options['api_key']}"} if options["api_key"] else {}
    policy = Policy(allow_http=True, allow_any_port=True, ca_bundle=options["ca_bundle"], total_s=TIMEOUT_S)
    response = outbound.post_json(options["url"], json.dumps(body).encode(), policy, headers=headers)
    if response.status != 200:
        raise ValueError(f"status {response.status}")
    answer = response.json()
    results = answer["results"] if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise TypeError
    relevance = {int(result["index"]): float(result["relevance_score"]) for result in results}
    if not all(map(math.isfinite, relevance.values())):
        raise ValueError("not a finite number")
    return [relevance[number] for number in range(len(texts))]

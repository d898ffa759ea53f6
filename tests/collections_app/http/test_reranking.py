"""Reranking by a provider: the order, what is sent, and what happens when the provider fails."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from django.test import override_settings

from collections_app.models import Collection
from tests.collections_app.http.calls import SEARCH_PATH, KeyCaller, error_of
from tests.collections_app.library import add_document, make_library_collection
from tests.collections_app.search.searches import run_search
from tests.providers.serving import LoopbackServer

pytestmark = pytest.mark.django_db
Answer = Callable[[Any], tuple[int, bytes]]


class Provider:
    """Answers with what `answer` returns for the body of a request."""

    def __init__(self) -> None:
        self.answer: Answer = prefer("mail")
        self.requests: list[tuple[str, Any]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                provider.requests.append((self.headers["Authorization"], body))
                status, content = provider.answer(body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = LoopbackServer(Handler)


def prefer(word: str) -> Answer:
    def answer(body: Any) -> tuple[int, bytes]:
        scores = [(word in text) + 0.25 for text in body["documents"]]
        results = [{"index": number, "relevance_score": score} for number, score in enumerate(scores)]
        return 200, json.dumps({"results": results[::-1]}).encode()

    return answer


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    thread = threading.Thread(target=provider.server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{provider.server.server_port}/v1/rerank"
    with override_settings(RERANKING={"url": url, "model": "judge", "api_key": "k", "ca_bundle": None}):
        yield provider
    provider.server.shutdown()
    provider.server.server_close()
    thread.join()
    assert not provider.server.faults


@pytest.fixture
def letters() -> Collection:
    collection = make_library_collection("letters", readers=("itil",))
    for doc_id, text in {"toner": "The toner is red.", "mail": "The mail about toner is late."}.items():
        add_document(collection, text, doc_id=doc_id, filename="", format="text")
    return collection


def test_provider_decides_on_the_order(provider: Provider, letters: Collection):
    plain = run_search(letters, "red toner")
    assert [hit.doc_id for hit in plain.hits] == ["toner", "mail"]
    result = run_search(letters, "red toner", k=1, reranks=True)
    (hit,) = result.hits
    assert (hit.doc_id, hit.scores["rerank"], result.is_without_reranking) == ("mail", 1.25, False)
    assert hit.score == next(each.score for each in plain.hits if each.doc_id == "mail")
    ((authorization, body),) = provider.requests
    assert (authorization, body["model"], body["query"]) == ("Bearer k", "judge", "red toner")
    assert sorted(body["documents"]) == ["The mail about toner is late.", "The toner is red."]


def test_length_is_limited_after_the_reranking(provider: Provider, letters: Collection):
    result = run_search(letters, "red toner", reranks=True, max_characters=30)
    assert [hit.doc_id for hit in result.hits] == ["mail"]


@pytest.mark.parametrize(
    "answer",
    [
        lambda body: (500, b"{}"),
        lambda body: (200, b"no json"),
        lambda body: (200, b"[]"),
        lambda body: (200, b'{"results": {}}'),
        lambda body: (200, b'{"results": [{"index": 0, "relevance_score": 1}]}'),
        lambda body: (200, b'{"results": [{"index": 0}, {"index": 1}]}'),
        lambda body: (200, b'{"results": [{"index": 0, "relevance_score": "x"}]}'),
        lambda body: (200, prefer("mail")(body)[1].replace(b"0.25", b"1e999")),
    ],
)  # fmt: skip
def test_order_stays_if_the_provider_fails(provider: Provider, letters: Collection, answer: Answer):
    provider.answer = answer
    result = run_search(letters, "red toner", reranks=True)
    assert [hit.doc_id for hit in result.hits] == ["toner", "mail"] and result.is_without_reranking


def test_failing_provider_is_not_called_for_each_search(provider: Provider, letters: Collection):
    provider.answer = lambda body: (500, b"")
    for _ in range(6):
        assert run_search(letters, "red toner", reranks=True).is_without_reranking
    assert len(provider.requests) == 3


def test_endpoint_reranks(provider: Provider, letters: Collection, manager: KeyCaller):
    body = {"collection_names": ["letters"], "query": "red toner", "rerank": True}
    response = manager.post(SEARCH_PATH, body)
    assert [hit["doc_id"] for hit in response.json()] == ["mail", "toner"] and "X-Rerank" not in response
    provider.answer = lambda body: (503, b"")
    response = manager.post(SEARCH_PATH, body)
    assert [hit["doc_id"] for hit in response.json()] == ["toner", "mail"] and response["X-Rerank"] == "unavailable"


def test_reranked_queries_are_limited(provider: Provider, letters: Collection, manager: KeyCaller):
    body = {"collection_names": ["letters"], "rerank": True}
    assert manager.post(SEARCH_PATH, {**body, "queries": ["toner"] * 4}).status_code == 200
    assert error_of(manager.post(SEARCH_PATH, {**body, "queries": ["toner"] * 5})) == (400, "invalid_parameter", "k")


def test_reranking_needs_a_provider(letters: Collection, manager: KeyCaller):
    body = {"collection_names": ["letters"], "query": "red toner", "rerank": True}
    assert error_of(manager.post(SEARCH_PATH, body)) == (400, "rerank_not_configured", "rerank")

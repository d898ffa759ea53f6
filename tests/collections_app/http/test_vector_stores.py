"""OpenAI's search of a vector store, called by OpenAI's own client."""

from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest
from django.test import Client

from collections_app.models import Collection
from tests.collections_app.http.calls import SEARCH_PATH, KeyCaller, make_key_caller
from tests.collections_app.library import add_document, make_library_collection
from tests.support.users import make_user

pytestmark = pytest.mark.django_db
DOCUMENTS = {
    "toner": ("The toner is red.", {"type": "manual", "priority": 1, "a.b": "x"}),
    "paper": ("Paper jams in tray two.", {"type": "manual", "priority": 3, "tags": ["one", "two"]}),
    "box": ("A full mailbox refuses mail, paper or toner.", {"type": "note", "is_new": True, "empty": ""}),
}


@pytest.fixture
def empty_collection(db: Any) -> Collection:
    return make_library_collection("printers", readers=("readers",))


@pytest.fixture
def collection(empty_collection: Collection) -> Collection:
    collection = empty_collection
    for doc_id, (text, metadata) in DOCUMENTS.items():
        add_document(collection, text, doc_id=doc_id, metadata=metadata)
    return collection


@pytest.fixture
def caller(empty_collection: Collection) -> KeyCaller:
    return make_key_caller(make_user("dora", "readers"))


def send(request: httpx2.Request) -> httpx2.Response:
    """Sends the request of OpenAI's client to the views, in the transaction of the test."""
    headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
    response = Client().generic(
        request.method, str(request.url), request.content, content_type="application/json", headers=headers
    )
    return httpx2.Response(response.status_code, headers=dict(response.headers), content=response.content)


@pytest.fixture
def client(caller: KeyCaller) -> Iterator[openai.OpenAI]:
    key = caller.headers["Authorization"].removeprefix("Bearer ")
    with httpx2.Client(transport=httpx2.MockTransport(send)) as http_client:
        yield openai.OpenAI(base_url="http://localhost/v1", api_key=key, http_client=http_client, max_retries=0)


def found(client: openai.OpenAI, collection: Collection, **options: Any) -> set[str]:
    page = client.vector_stores.search(collection.pk, **{"query": "toner paper", **options})
    return {hit.file_id for hit in page}


def test_best_passage_has_its_file_and_attributes(client: openai.OpenAI, collection: Collection):
    page = client.vector_stores.search(collection.pk, query=["red", "toner"], max_num_results=1, rewrite_query=True)

    (hit,) = page.data
    assert (hit.file_id, hit.content[0].text, hit.content[0].type) == ("toner", DOCUMENTS["toner"][0], "text")
    assert hit.attributes == DOCUMENTS["toner"][1] and hit.score == 1.0
    assert not page.has_next_page() and page.to_dict()["search_query"] == "red toner"


def test_order_equals_that_of_the_other_search(client: openai.OpenAI, caller: KeyCaller, collection: Collection):
    hits = client.vector_stores.search(collection.pk, query="paper").data
    passages = caller.get(SEARCH_PATH, collection_names="printers", query="paper", k=10).json()

    assert [(hit.file_id, hit.score) for hit in hits] == [(item["doc_id"], item["score"]) for item in passages]


def comparison(kind: str, key: str, value: Any) -> dict[str, Any]:
    return {"type": kind, "key": key, "value": value}


FILTERS: list[tuple[Any, set[str]]] = [
    (comparison("eq", "type", "manual"), {"toner", "paper"}),
    (comparison("ne", "type", "manual"), {"box"}),
    (comparison("gt", "priority", 1), {"paper"}),
    (comparison("gte", "priority", 1.0), {"toner", "paper"}),
    (comparison("lt", "priority", 2), {"toner"}),
    (comparison("lte", "priority", 1), {"toner"}),
    (comparison("eq", "is_new", True), {"box"}),
    (comparison("eq", "a.b", "x"), {"toner"}),
    (comparison("eq", "type", "a^NQtypeISNOTEMPTY"), set()),
    (comparison("eq", "empty", ""), set(DOCUMENTS)),
    (comparison("in", "priority", [1, 3]), {"toner", "paper"}),
    (comparison("nin", "priority", [1, 7]), {"paper", "box"}),
    (comparison("in", "tags", ["two", "three"]), {"paper"}),
    ({"type": "and", "filters": [comparison("eq", "type", "manual"), comparison("ne", "priority", 1)]}, {"paper"}),
    ({"type": "or", "filters": [comparison("eq", "type", "note"), comparison("eq", "priority", 1)]},
     {"box", "toner"}),
    ({"type": "and", "filters": [
        {"type": "or", "filters": [comparison("eq", "priority", 1), comparison("eq", "priority", 3)]},
        comparison("ne", "a.b", "x"),
    ]}, {"paper"}),
]  # fmt: skip


def test_filters(client: openai.OpenAI, collection: Collection):
    found_by_filter = [found(client, collection, filters=filters) for filters, _ in FILTERS]
    assert found_by_filter == [expected for _, expected in FILTERS]


def test_ranking_options(client: openai.OpenAI, collection: Collection):
    assert found(client, collection, query="red toner", ranking_options={"score_threshold": 0.6}) == {"toner"}
    # The best passage has the score 1, but it does not answer a query without sense.
    assert found(client, collection, query="qwzx vbnk", ranking_options={"score_threshold": 0.3}) == set()
    by_words: Any = {"ranker": "auto", "hybrid_search": {"embedding_weight": 0, "text_weight": 1}}
    page = client.vector_stores.search(collection.pk, query="mailbox", ranking_options=by_words)
    assert {hit.file_id: hit.score for hit in page}["toner"] == 0


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"query": ""}, "query"),
        ({"query": []}, "query"),
        ({"query": [1]}, "query"),
        ({"max_num_results": 51}, "max_num_results"),
        ({"filters": 5}, "filters"),
        ({"filters": {}}, "filters"),
        ({"filters": comparison("like", "type", "x")}, "filters"),
        ({"filters": comparison("gt", "type", "")}, "filters"),
        ({"filters": comparison("lt", "priority", 2.5)}, "filters"),
        ({"filters": comparison("eq", "type", None)}, "filters.value"),
        ({"filters": comparison("eq", "k" * 201, "x")}, "filters.key"),
        ({"filters": comparison("in", "type", "x")}, "filters"),
        ({"filters": comparison("in", "type", ["x"] * 201)}, "filters"),
        ({"filters": {"type": "and", "filters": []}}, "filters"),
        ({"filters": {"type": "or"}}, "filters"),
        ({"filters": {"type": []}}, "filters"),
        ({"filters": {**comparison("eq", "type", "x"), "more": 1}}, "more"),
        ({"ranking_options": {"score_threshold": 2}}, "ranking_options.score_threshold"),
        ({"ranking_options": {"hybrid_search": {"embedding_weight": 0, "text_weight": 0}}},
         "ranking_options.hybrid_search"),
        ({"extra_body": {"unknown": 1}}, "unknown"),
    ],
)  # fmt: skip
def test_invalid_parameter_is_named(client: openai.OpenAI, empty_collection: Collection, options: Any, param: str):
    with pytest.raises(openai.BadRequestError) as error_info:
        found(client, empty_collection, **options)
    assert error_info.value.param == param and error_info.value.type == "invalid_request_error"


def test_deep_filter_is_refused(client: openai.OpenAI, empty_collection: Collection):
    filters: Any = comparison("eq", "type", "manual")
    for _ in range(21):
        filters = {"type": "and", "filters": [filters]}
    with pytest.raises(openai.BadRequestError):
        found(client, empty_collection, filters=filters)


def test_hidden_and_missing_collections_get_the_same_error(client: openai.OpenAI):
    hidden = make_library_collection("hidden", readers=("others",))
    add_document(hidden, "toner")
    messages = set()
    for sys_id in (hidden.pk, "179999999900000000", "nothing-like-an-id"):
        with pytest.raises(openai.NotFoundError) as error_info:
            client.vector_stores.search(sys_id, query="toner")
        messages.add(str(error_info.value))
    assert len(messages) == 1


def test_errors_before_the_search_have_the_same_form(client: openai.OpenAI, empty_collection: Collection):
    with pytest.raises(openai.NotFoundError) as error_info:
        client.vector_stores.retrieve(empty_collection.pk)
    assert error_info.value.type == "not_found_error"
    with pytest.raises(openai.APIStatusError) as method_error:
        client.get(f"/vector_stores/{empty_collection.pk}/search", cast_to=object)
    assert method_error.value.status_code == 405 and method_error.value.type == "invalid_request_error"


def test_a_wrong_key_gets_an_error_of_openai(client: openai.OpenAI, empty_collection: Collection):
    with pytest.raises(openai.AuthenticationError) as error_info:
        client.with_options(api_key="sb_wrong").vector_stores.search(empty_collection.pk, query="toner")
    assert error_info.value.type == "authentication_error"

"""The two retrieval endpoints: GET and POST, filters, limits, and the content of responses."""

import json
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from collections_app import embed
from collections_app.models import Collection
from collections_app.search import metadata_listing
from tests.collections_app.http.calls import (
    API_PATH,
    BY_TAG_PATH,
    LOAD_TEXT_PATH,
    SEARCH_PATH,
    KeyCaller,
    error_of,
    make_key_caller,
)
from tests.collections_app.library import make_library_collection
from tests.support.users import make_user

pytestmark = pytest.mark.django_db
PASSAGE_FIELDS = [
    "id", "type", "page_content", "metadata", "doc_id", "collection_name", "chunk_index", "chunks_count", "page",
    "page_end", "page_label", "page_label_end", "is_ocr", "char_start", "char_end", "heading_path", "filename", "score",
    "scores", "highlights",
]  # fmt: skip


@pytest.fixture
def library_caller(manager: KeyCaller) -> KeyCaller:
    manager.load("The toner is red.", "printers", doc_id="toner", metadata={"type": "manual", "priority": 1})
    manager.load("Paper jams in tray two.", "printers", doc_id="paper", metadata={"type": "manual", "priority": 3})
    manager.load("A full mailbox refuses mail.", "mail", doc_id="box", metadata={"type": "note", "n": 3})
    return manager


@pytest.fixture
def empty_collection_caller(manager: KeyCaller) -> KeyCaller:
    """A caller with the same collections, but without documents."""
    make_library_collection("printers")
    make_library_collection("mail")
    return manager


def doc_ids(response: Any) -> list[str]:
    assert response.status_code == 200, response.content
    return [passage["doc_id"] for passage in response.json()]


def test_passage_has_the_documented_fields(library_caller: KeyCaller):  # C50
    response = library_caller.get(SEARCH_PATH, collection_names="printers", query="red toner")
    passage = response.json()[0]

    assert list(passage) == PASSAGE_FIELDS and response["Cache-Control"] == "no-store"
    assert (passage["type"], passage["page_content"], passage["doc_id"]) == ("Document", "The toner is red.", "toner")
    assert passage["score"] == 1.0 and set(passage["scores"]) == {"vector", "text", "characters", "match"}
    assert [passage["page_content"][start:stop] for start, stop in passage["highlights"]] == ["toner", "red"]
    assert "embedding" not in response.content.decode()


def test_get_and_post_read_query_and_body_alike(library_caller: KeyCaller):  # C48
    search_parameters = {
        "collection_names": ["printers", "mail"], "query": "toner", "k": 2, "metadata": "type=manual", "mode": "text"
    }  # fmt: skip
    tag_parameters = {"collection_name": "printers", "tag_info": "priority>1", "limit": 1}
    for path, parameters in ((SEARCH_PATH, search_parameters), (BY_TAG_PATH, tag_parameters)):
        expected = library_caller.post(path, parameters)
        for method in ("GET", "POST"):
            for body, query in ((parameters, {}), (None, parameters), (parameters, parameters)):
                assert library_caller.send(method, path, body, **query).content == expected.content, (method, path)


def test_head_has_the_headers_of_get(library_caller: KeyCaller):
    head_response = library_caller.send("HEAD", BY_TAG_PATH, collection_name="printers")

    assert head_response.content == b"" and head_response["X-Total-Count"] == "2"
    assert library_caller.send("HEAD", SEARCH_PATH, collection_names="printers", query="toner").status_code == 200


def test_collection_names_can_be_a_list_text_or_repeated(library_caller: KeyCaller):
    search = {"query": "toner mailbox", "k": 9, "mode": "text"}
    both_ids = doc_ids(library_caller.post(SEARCH_PATH, {**search, "collection_names": ["printers", "mail"]}))

    assert set(both_ids) == {"toner", "box"}
    assert doc_ids(library_caller.get(SEARCH_PATH, **search, collection_names=["printers", "mail", "mail"])) == both_ids
    assert doc_ids(library_caller.get(SEARCH_PATH, **search, collection_names='["printers", "mail"]')) == both_ids
    assert doc_ids(library_caller.post(SEARCH_PATH, {**search, "collection_names": "mail"})) == ["box"]


def test_k_limits_the_passages_and_is_five_by_default(manager: KeyCaller):
    for number in range(7):
        manager.load(f"The toner number {number}.")

    assert len(manager.get(SEARCH_PATH, collection_names="manuals", query="toner").json()) == 5
    assert len(manager.get(SEARCH_PATH, collection_names="manuals", query="toner", k=6).json()) == 6
    assert len(manager.get(SEARCH_PATH, collection_names="manuals", query="toner", k=200).json()) == 7


FILTERS = [
    ("", ["toner", "paper"]),
    ("type=manual", ["toner", "paper"]),
    ("type=manual^priority=1", ["toner"]),
    ("priority>1", ["paper"]),
    ("type=note", []),
    ("colour=red", []),
    ("colourISEMPTY", ["toner", "paper"]),
    ("doc_id=toner", []),  # C08
    ("type=manual' OR 1=1 --", []),  # C07
]


@pytest.mark.parametrize(
    "filter",
    [
        "owner=javascript:gs.getUserID()",
        "owner!=javascript:gs.getUserID()",
        "ownerIN1,javascript:gs.getUserID()",
        "ownerLIKEjavascript:gs.getUserID()",
        "owner>javascript:gs.getUserID()",
        "sys_idSTARTSWITHjavascript:gs.getUserID()",
        "ownerDYNAMICme",
    ],
)
def test_server_fields_are_not_metadata(library_caller: KeyCaller, carl: User, as_carl: Client, filter: str):
    collection = Collection.objects.get(name="printers")
    library_caller.load("Carl's.", "printers", metadata={"owner": carl.pk, "sys_id": carl.pk})
    parameters = {"query": "toner", "metadata": filter}

    for response, field in (
        (library_caller.get(SEARCH_PATH, collection_names="printers", **parameters), "metadata"),
        (library_caller.post(SEARCH_PATH, {"collection_names": "printers", **parameters}), "metadata"),
        (library_caller.get(BY_TAG_PATH, collection_name="printers", tag_info=filter), "tag_info"),
        (library_caller.post(f"{API_PATH}/{collection.pk}/search", parameters), "metadata"),
    ):
        assert error_of(response) == (400, "invalid_query", field)
    page = as_carl.get(f"/collections/{collection.pk}/", {"query": "toner", "filter": filter})
    assert page.status_code == 400 and b"Invalid filter" in page.content


def test_filter_applies_to_searches_and_lists(library_caller: KeyCaller):
    for filter, expected in FILTERS:
        response = library_caller.post(
            SEARCH_PATH, {"collection_names": ["printers"], "query": "toner paper", "metadata": filter}
        )
        assert sorted(doc_ids(response)) == sorted(expected), filter
        assert (
            doc_ids(library_caller.post(BY_TAG_PATH, {"collection_name": "printers", "tag_info": filter})) == expected
        ), filter


@pytest.mark.parametrize(("path", "parameter_name"), [(SEARCH_PATH, "metadata"), (BY_TAG_PATH, "tag_info")])
@pytest.mark.parametrize("filter", ["priority=high", "=", "type", "^^", "ORDERBYtype", "type=a^OR", "x" * 17_000])
def test_invalid_filter_is_400(empty_collection_caller: KeyCaller, path: str, parameter_name: str, filter: str):  # C07
    parameters = (
        {"collection_names": "printers", "query": "a"} if path == SEARCH_PATH else {"collection_name": "printers"}
    )
    response = empty_collection_caller.post(path, {parameter_name: filter, **parameters})

    status, code, field = error_of(response)
    assert (status, field) == (400, parameter_name) and code in ("invalid_query", "invalid_parameter")
    if code == "invalid_query":
        assert response.json()["errors"][0]["position"] >= 0


@pytest.mark.parametrize(
    ("parameters", "expected_error"),
    [
        ({"query": ""}, (400, "invalid_parameter", "query")),  # C32
        ({"query": "x" * 1_000_000}, (400, "invalid_parameter", "query")),  # C32
        ({"query": None}, (400, "mandatory", "query")),
        *(({"k": k}, (400, "invalid_parameter", "k")) for k in (0, -1, 201, 10**9, "5", 5.5, True)),  # C32
        ({"mode": "exact"}, (400, "invalid_parameter", "mode")),
        ({"alpha": 1.5}, (400, "invalid_parameter", "alpha")),
        ({"collection_names": []}, (400, "invalid_parameter", "collection_names")),  # C03
        ({"collection_names": None}, (400, "mandatory", "collection_names")),
        ({"collection_names": [str(number) for number in range(51)]}, (400, "invalid_parameter", "collection_names")),
        ({"collection_names": ["mail", "nothing"]}, (404, "not_found", "collection_names")),
        ({"model": "gpt"}, (400, "unknown_field", "model")),  # C28
        ({"base_url": "http://x"}, (400, "unknown_field", "base_url")),  # C28
    ],
)
def test_invalid_search_is_refused(empty_collection_caller: KeyCaller, parameters: Any, expected_error: Any):
    assert (
        error_of(empty_collection_caller.post(SEARCH_PATH, {"collection_names": ["mail"], "query": "a", **parameters}))
        == expected_error
    )


def test_body_of_another_type_is_415(empty_collection_caller: KeyCaller):
    for method in ("GET", "POST"):
        response = Client().generic(
            method, SEARCH_PATH, b"query=a", content_type="text/plain", headers=empty_collection_caller.headers
        )
        assert error_of(response)[:2] == (415, "unsupported_media_type")


def test_whole_documents_are_returned_by_metadata(library_caller: KeyCaller):
    response = library_caller.get(BY_TAG_PATH, collection_name="printers", tag_info="priority=1")
    (document,) = response.json()

    assert list(document) == [
        "doc_id", "collection_name", "page_content", "metadata", "filename", "chunks_count", "created_at", "updated_at"
    ]  # fmt: skip
    assert document["page_content"] == "The toner is red." and document["metadata"] == {"type": "manual", "priority": 1}
    assert response["X-Total-Count"] == "1" and "X-Next-Offset" not in response


def test_whole_documents_are_paged(manager: KeyCaller):
    for number in range(5):
        manager.load(f"Text {number}.", doc_id=f"d{number}")
    manager.post(LOAD_TEXT_PATH, {"text": "Not yet.", "wait": False}, collection_name="manuals")

    first_page = manager.get(BY_TAG_PATH, collection_name="manuals", limit=2)
    second_page = manager.get(BY_TAG_PATH, collection_name="manuals", limit=2, offset=first_page["X-Next-Offset"])
    last_page = manager.get(BY_TAG_PATH, collection_name="manuals", limit=2, offset=second_page["X-Next-Offset"])
    assert doc_ids(first_page) + doc_ids(second_page) + doc_ids(last_page) == ["d0", "d1", "d2", "d3", "d4"]
    assert {response["X-Total-Count"] for response in (first_page, second_page, last_page)} == {
        "5"
    } and "X-Next-Offset" not in last_page
    page_past_the_end = manager.get(BY_TAG_PATH, collection_name="manuals", offset=99)
    assert (page_past_the_end.json(), page_past_the_end["X-Total-Count"]) == ([], "5")


def test_response_size_is_limited(manager: KeyCaller, monkeypatch: Any):
    monkeypatch.setattr(metadata_listing, "MAX_CHARACTERS", 100)
    for number, length in enumerate((40, 50, 60, 300, 10)):
        manager.load(f"{number}" * length, doc_id=f"d{number}")

    pages, offset = [], "0"
    while offset:
        page = manager.get(BY_TAG_PATH, collection_name="manuals", offset=offset)
        pages.append(doc_ids(page))
        offset = page.headers.get("X-Next-Offset", "")
    assert pages == [["d0", "d1"], ["d2"], ["d3"], ["d4"]]


def test_replaced_document_keeps_its_position(library_caller: KeyCaller):
    library_caller.load("New toner.", "printers", doc_id="toner", on_duplicate="replace")

    body = library_caller.get(BY_TAG_PATH, collection_name="printers").json()
    assert [(passage["doc_id"], passage["page_content"]) for passage in body] == [
        ("toner", "New toner."), ("paper", "Paper jams in tray two.")
    ]  # fmt: skip


def test_document_being_reloaded_is_shown_unchanged(library_caller: KeyCaller):  # C41
    body = {"text": "New toner.", "doc_id": "toner", "on_duplicate": "replace", "wait": False}
    assert library_caller.post(LOAD_TEXT_PATH, body, collection_name="printers").status_code == 202

    assert library_caller.get(BY_TAG_PATH, collection_name="printers").json()[0]["page_content"] == "The toner is red."
    assert (
        library_caller.get(SEARCH_PATH, collection_names="printers", query="toner").json()[0]["page_content"]
        == "The toner is red."
    )


@pytest.mark.parametrize("limit", [0, 201, -1, "a", 10**12])
def test_invalid_page_limit_is_refused(empty_collection_caller: KeyCaller, limit: Any):
    assert error_of(empty_collection_caller.get(BY_TAG_PATH, collection_name="printers", limit=limit)) == (
        400,
        "invalid_parameter",
        "limit",
    )


def test_search_without_the_provider_reports_keyword_mode(library_caller: KeyCaller, monkeypatch: Any):
    def fail_to_embed(*_: Any) -> Any:
        raise embed.EmbeddingUnavailable("The provider is unavailable.")

    parameters = {"collection_names": "printers", "query": "toner"}
    assert "X-Search-Mode" not in library_caller.get(SEARCH_PATH, **parameters)
    monkeypatch.setattr(embed, "Embedder", fail_to_embed)
    response = library_caller.get(SEARCH_PATH, **parameters)

    assert response["X-Search-Mode"] == "text" and doc_ids(response) == ["toner"]
    assert "X-Search-Mode" not in library_caller.get(SEARCH_PATH, mode="text", **parameters)
    refusal = library_caller.get(SEARCH_PATH, mode="vector", **parameters)
    assert error_of(refusal)[:2] == (503, "embedding_unavailable") and int(refusal["Retry-After"]) > 0


def test_searching_requires_read_permission(library_caller: KeyCaller, stranger: KeyCaller):
    Collection.objects.filter(name="mail").update(
        reader_roles=make_library_collection("other", readers=("crew",)).reader_roles
    )
    reader = make_key_caller(make_user("dora", "crew"))

    assert doc_ids(reader.get(SEARCH_PATH, collection_names="mail", query="mailbox")) == ["box"]
    assert doc_ids(reader.get(BY_TAG_PATH, collection_name="mail")) == ["box"]
    for path, query in (
        (SEARCH_PATH, {"collection_names": "mail", "query": "a"}),
        (BY_TAG_PATH, {"collection_name": "mail"}),
    ):
        assert error_of(stranger.get(path, **query))[:2] == (404, "not_found")
    assert error_of(reader.get(SEARCH_PATH, collection_names=["mail", "printers"], query="a"))[0] == 404


def test_hostile_text_is_returned_unchanged(manager: KeyCaller):  # C25, C26
    hostile_text = "<script>alert(1)</script> ![x](https://evil.example/?q=1) </script>"
    manager.load(hostile_text)
    response = manager.get(SEARCH_PATH, collection_names="manuals", query="alert")

    assert response.json()[0]["page_content"] == hostile_text
    assert response["Content-Type"] == "application/json" and response["X-Content-Type-Options"] == "nosniff"
    assert json.loads(response.content)


def test_several_queries_are_answered_at_once(library_caller: KeyCaller):
    queries = ["red toner", "paper jams", "red toner"]
    response = library_caller.post(SEARCH_PATH, {"collection_names": ["printers"], "queries": queries, "k": 1})
    assert response.status_code == 200, response.content
    single = [
        library_caller.get(SEARCH_PATH, collection_names="printers", query=query, k=1).json() for query in queries
    ]
    assert response.json() == single
    assert library_caller.get(SEARCH_PATH, collection_names="printers", queries=queries, k=1).json() == single
    assert library_caller.get(SEARCH_PATH, collection_names="printers", queries="red toner", k=1).json() == single[:1]


@pytest.mark.parametrize(
    ("parameters", "field", "code"),
    [
        ({"query": None}, "query", "mandatory"),
        ({"queries": ["a"]}, "queries", "contradiction"),
        ({"query": None, "queries": []}, "queries", "invalid_parameter"),
        ({"query": None, "queries": ["a", " "]}, "queries", "invalid_parameter"),
        ({"query": None, "queries": ["a"] * 21}, "queries", "invalid_parameter"),
        ({"query": None, "queries": ["a"] * 3, "k": 70}, "k", "invalid_parameter"),
        ({"group_by": "page"}, "group_by", "invalid_parameter"),
        ({"context": 6}, "context", "invalid_parameter"),
        ({"min_score": 1.1}, "min_score", "invalid_parameter"),
        ({"context": True}, "context", "invalid_parameter"),
        ({"max_characters": 99}, "max_characters", "invalid_parameter"),
        ({"collapse": "maybe"}, "collapse", "invalid_parameter"),
    ],
)
def test_invalid_arrangements_are_refused(library_caller: KeyCaller, parameters: Any, field: str, code: str):
    body = {"collection_names": ["printers"], "query": "red", **parameters}
    response = library_caller.post(SEARCH_PATH, body)
    error = response.json()["errors"][0]
    assert (response.status_code, error["field"], error["code"]) == (400, field, code), error


def test_passages_are_arranged_as_asked(library_caller: KeyCaller):
    library_caller.load("The TONER is red.", "printers", doc_id="copy")
    collection = Collection.objects.get(name="printers")
    for path, scope in ((SEARCH_PATH, {"collection_names": ["printers"]}), (f"{API_PATH}/{collection.pk}/search", {})):
        body = {**scope, "query": "red toner", "mode": "text"}
        assert len(library_caller.post(path, body).json()) == 2
        assert len(library_caller.post(path, {**body, "collapse": True}).json()) == 1
        wishes = {"group_by": "document", "context": 1, "max_characters": 100}
        assert doc_ids(library_caller.post(path, {**body, **wishes})) == doc_ids(library_caller.post(path, body))

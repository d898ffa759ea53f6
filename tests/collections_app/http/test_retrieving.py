"""The two retrieval endpoints: GET and POST, filters, limits, and the content of a response."""

import json
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from collections_app import embed
from collections_app.models import Collection
from collections_app.search import metadata_listing
from tests.collections_app.http.calls import BY_TAG, LOAD_TEXT, MANAGED, RELEVANT, Caller, by_key, failed
from tests.collections_app.library import make
from tests.support.users import make_user

pytestmark = pytest.mark.django_db
PASSAGE = [
    "id", "type", "page_content", "metadata", "doc_id", "collection_name", "chunk_index", "chunks_count", "page",
    "page_end", "char_start", "char_end", "heading_path", "filename", "score", "scores", "highlights",
]  # fmt: skip


@pytest.fixture
def library(manager: Caller) -> Caller:
    manager.load("The toner is red.", "printers", doc_id="toner", metadata={"type": "manual", "priority": 1})
    manager.load("Paper jams in tray two.", "printers", doc_id="paper", metadata={"type": "manual", "priority": 3})
    manager.load("A full mailbox refuses mail.", "mail", doc_id="box", metadata={"type": "note", "n": 3})
    return manager


@pytest.fixture
def empty(manager: Caller) -> Caller:
    """The same collections, with nothing in them."""
    make("printers")
    make("mail")
    return manager


def ids(response: Any) -> list[str]:
    assert response.status_code == 200, response.content
    return [passage["doc_id"] for passage in response.json()]


def test_passage_has_the_documented_fields(library: Caller):  # C50
    response = library.get(RELEVANT, collection_names="printers", query="red toner")
    first = response.json()[0]

    assert list(first) == PASSAGE and response["Cache-Control"] == "no-store"
    assert (first["type"], first["page_content"], first["doc_id"]) == ("Document", "The toner is red.", "toner")
    assert first["score"] == 1.0 and set(first["scores"]) == {"vector", "text"}
    assert [first["page_content"][start:end] for start, end in first["highlights"]] == ["toner", "red"]
    assert "embedding" not in response.content.decode()


def test_get_and_post_and_both_places_are_alike(library: Caller):  # C48
    searched = {
        "collection_names": ["printers", "mail"], "query": "toner", "k": 2, "metadata": "type=manual", "mode": "text"
    }  # fmt: skip
    tagged = {"collection_name": "printers", "tag_info": "priority>1", "limit": 1}
    for path, asked in ((RELEVANT, searched), (BY_TAG, tagged)):
        expected = library.post(path, asked)
        for method in ("GET", "POST"):
            for body, query in ((asked, {}), (None, asked), (asked, asked)):
                assert library.send(method, path, body, **query).content == expected.content, (method, path)


def test_head_has_the_headers_of_get(library: Caller):
    head = library.send("HEAD", BY_TAG, collection_name="printers")

    assert head.content == b"" and head["X-Total-Count"] == "2"
    assert library.send("HEAD", RELEVANT, collection_names="printers", query="toner").status_code == 200


def test_collection_names_can_be_a_list_text_or_repeated(library: Caller):
    query = {"query": "toner mailbox", "k": 9, "mode": "text"}
    both = ids(library.post(RELEVANT, {**query, "collection_names": ["printers", "mail"]}))

    assert set(both) == {"toner", "box"}
    assert ids(library.get(RELEVANT, **query, collection_names=["printers", "mail", "mail"])) == both
    assert ids(library.get(RELEVANT, **query, collection_names='["printers", "mail"]')) == both
    assert ids(library.post(RELEVANT, {**query, "collection_names": "mail"})) == ["box"]


def test_k_passages_at_most_and_five_by_default(manager: Caller):
    for number in range(7):
        manager.load(f"The toner number {number}.")

    assert len(manager.get(RELEVANT, collection_names="manuals", query="toner").json()) == 5
    assert len(manager.get(RELEVANT, collection_names="manuals", query="toner", k=6).json()) == 6
    assert len(manager.get(RELEVANT, collection_names="manuals", query="toner", k=200).json()) == 7


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
def test_server_fields_are_not_metadata(library: Caller, carl: User, as_carl: Client, filter: str):
    place = Collection.objects.get(name="printers")
    library.load("Carl's.", "printers", metadata={"owner": carl.pk, "sys_id": carl.pk})
    query = {"query": "toner", "metadata": filter}

    for response, field in (
        (library.get(RELEVANT, collection_names="printers", **query), "metadata"),
        (library.post(RELEVANT, {"collection_names": "printers", **query}), "metadata"),
        (library.get(BY_TAG, collection_name="printers", tag_info=filter), "tag_info"),
        (library.post(f"{MANAGED}/{place.pk}/search", query), "metadata"),
    ):
        assert failed(response) == (400, "invalid_query", field)
    page = as_carl.get(f"/collections/{place.pk}/", {"query": "toner", "filter": filter})
    assert page.status_code == 400 and b"Invalid filter" in page.content


def test_filter_applies_to_searches_and_lists(library: Caller):
    for filter, expected in FILTERS:
        response = library.post(
            RELEVANT, {"collection_names": ["printers"], "query": "toner paper", "metadata": filter}
        )
        assert sorted(ids(response)) == sorted(expected), filter
        assert ids(library.post(BY_TAG, {"collection_name": "printers", "tag_info": filter})) == expected, filter


@pytest.mark.parametrize(("path", "name"), [(RELEVANT, "metadata"), (BY_TAG, "tag_info")])
@pytest.mark.parametrize("filter", ["priority=high", "=", "type", "^^", "ORDERBYtype", "type=a^OR", "x" * 17_000])
def test_invalid_filter_is_400(empty: Caller, path: str, name: str, filter: str):  # C07
    needed = {"collection_names": "printers", "query": "a"} if path == RELEVANT else {"collection_name": "printers"}
    response = empty.post(path, {name: filter, **needed})

    status, code, field = failed(response)
    assert (status, field) == (400, name) and code in ("invalid_query", "invalid_parameter")
    if code == "invalid_query":
        assert response.json()["errors"][0]["position"] >= 0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"query": ""}, (400, "invalid_parameter", "query")),  # C32
        ({"query": "x" * 1_000_000}, (400, "invalid_parameter", "query")),  # C32
        ({"query": None}, (400, "mandatory", "query")),
        *(({"k": k}, (400, "invalid_parameter", "k")) for k in (0, -1, 201, 10**9, "5", 5.5, True)),  # C32
        ({"mode": "exact"}, (400, "invalid_parameter", "mode")),
        ({"alpha": 1.5}, (400, "invalid_parameter", "alpha")),
        ({"collection_names": []}, (400, "invalid_parameter", "collection_names")),  # C03
        ({"collection_names": None}, (400, "mandatory", "collection_names")),
        ({"collection_names": [str(n) for n in range(51)]}, (400, "invalid_parameter", "collection_names")),
        ({"collection_names": ["mail", "nothing"]}, (404, "not_found", "collection_names")),
        ({"model": "gpt"}, (400, "unknown_field", "model")),  # C28
        ({"base_url": "http://x"}, (400, "unknown_field", "base_url")),  # C28
    ],
)
def test_invalid_search_is_refused(empty: Caller, given: Any, expected: Any):
    assert failed(empty.post(RELEVANT, {"collection_names": ["mail"], "query": "a", **given})) == expected


def test_body_of_another_type_is_415(empty: Caller):
    for method in ("GET", "POST"):
        response = Client().generic(method, RELEVANT, b"query=a", content_type="text/plain", headers=empty.headers)
        assert failed(response)[:2] == (415, "unsupported_media_type")


def test_whole_documents_by_their_metadata(library: Caller):
    response = library.get(BY_TAG, collection_name="printers", tag_info="priority=1")
    (body,) = response.json()

    assert list(body) == [
        "doc_id", "collection_name", "page_content", "metadata", "filename", "chunks_count", "created_at", "updated_at"
    ]  # fmt: skip
    assert body["page_content"] == "The toner is red." and body["metadata"] == {"type": "manual", "priority": 1}
    assert response["X-Total-Count"] == "1" and "X-Next-Offset" not in response


def test_whole_documents_page_after_page(manager: Caller):
    for number in range(5):
        manager.load(f"Text {number}.", doc_id=f"d{number}")
    manager.post(LOAD_TEXT, {"text": "Not yet.", "wait": False}, collection_name="manuals")

    first = manager.get(BY_TAG, collection_name="manuals", limit=2)
    second = manager.get(BY_TAG, collection_name="manuals", limit=2, offset=first["X-Next-Offset"])
    last = manager.get(BY_TAG, collection_name="manuals", limit=2, offset=second["X-Next-Offset"])
    assert ids(first) + ids(second) + ids(last) == ["d0", "d1", "d2", "d3", "d4"]
    assert {response["X-Total-Count"] for response in (first, second, last)} == {"5"} and "X-Next-Offset" not in last
    past = manager.get(BY_TAG, collection_name="manuals", offset=99)
    assert (past.json(), past["X-Total-Count"]) == ([], "5")


def test_response_size_is_limited(manager: Caller, monkeypatch: Any):
    monkeypatch.setattr(metadata_listing, "MAX_CHARACTERS", 100)
    for number, size in enumerate((40, 50, 60, 300, 10)):
        manager.load(f"{number}" * size, doc_id=f"d{number}")

    pages, offset = [], "0"
    while offset:
        page = manager.get(BY_TAG, collection_name="manuals", offset=offset)
        pages.append(ids(page))
        offset = page.headers.get("X-Next-Offset", "")
    assert pages == [["d0", "d1"], ["d2"], ["d3"], ["d4"]]


def test_replaced_document_keeps_its_place(library: Caller):
    library.load("New toner.", "printers", doc_id="toner", on_duplicate="replace")

    body = library.get(BY_TAG, collection_name="printers").json()
    assert [(passage["doc_id"], passage["page_content"]) for passage in body] == [
        ("toner", "New toner."), ("paper", "Paper jams in tray two.")
    ]  # fmt: skip


def test_document_being_reloaded_is_shown_unchanged(library: Caller):  # C41
    query = {"text": "New toner.", "doc_id": "toner", "on_duplicate": "replace", "wait": False}
    assert library.post(LOAD_TEXT, query, collection_name="printers").status_code == 202

    assert library.get(BY_TAG, collection_name="printers").json()[0]["page_content"] == "The toner is red."
    assert (
        library.get(RELEVANT, collection_names="printers", query="toner").json()[0]["page_content"]
        == "The toner is red."
    )


@pytest.mark.parametrize("limit", [0, 201, -1, "a", 10**12])
def test_page_is_limited(empty: Caller, limit: Any):
    assert failed(empty.get(BY_TAG, collection_name="printers", limit=limit)) == (400, "invalid_parameter", "limit")


def test_search_without_the_provider_is_by_words_and_says_so(library: Caller, monkeypatch: Any):
    def away(*_: Any) -> Any:
        raise embed.EmbeddingUnavailable("It is away.")

    query = {"collection_names": "printers", "query": "toner"}
    assert "X-Search-Mode" not in library.get(RELEVANT, **query)
    monkeypatch.setattr(embed, "embedder", away)
    response = library.get(RELEVANT, **query)

    assert response["X-Search-Mode"] == "text" and ids(response) == ["toner"]
    assert "X-Search-Mode" not in library.get(RELEVANT, mode="text", **query)
    refused = library.get(RELEVANT, mode="vector", **query)
    assert failed(refused)[:2] == (503, "embedding_unavailable") and int(refused["Retry-After"]) > 0


def test_searching_requires_read_permission(library: Caller, stranger: Caller):
    Collection.objects.filter(name="mail").update(reader_roles=make("other", readers=("crew",)).reader_roles)
    reader = by_key(make_user("dora", "crew"))

    assert ids(reader.get(RELEVANT, collection_names="mail", query="mailbox")) == ["box"]
    assert ids(reader.get(BY_TAG, collection_name="mail")) == ["box"]
    for path, query in ((RELEVANT, {"collection_names": "mail", "query": "a"}), (BY_TAG, {"collection_name": "mail"})):
        assert failed(stranger.get(path, **query))[:2] == (404, "not_found")
    assert failed(reader.get(RELEVANT, collection_names=["mail", "printers"], query="a"))[0] == 404


def test_hostile_text_is_returned_as_text(manager: Caller):  # C25, C26
    hostile = "<script>alert(1)</script> ![x](https://evil.example/?q=1) </script>"
    manager.load(hostile)
    response = manager.get(RELEVANT, collection_names="manuals", query="alert")

    assert response.json()[0]["page_content"] == hostile
    assert response["Content-Type"] == "application/json" and response["X-Content-Type-Options"] == "nosniff"
    assert json.loads(response.content)

"""The two list endpoints and the two deletion endpoints."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from collections_app.models import Collection, Document
from tests.collections_app.http.calls import (
    BY_TAG,
    DELETE,
    DELETE_DOCUMENT,
    LIST,
    LOAD_TEXT,
    NAMES,
    RELEVANT,
    Caller,
    by_key,
    failed,
)
from tests.collections_app.library import add, add_failing, make
from tests.support.users import make_user

pytestmark = pytest.mark.django_db


def test_list_contains_all_but_deleted_collections(manager: Caller):
    manager.load("A text.", doc_id="ready")
    manager.load("Gone.", doc_id="gone")
    manager.post(LOAD_TEXT, {"text": "Later.", "doc_id": "queued", "wait": False}, collection_name="manuals")
    manager.load(" ", doc_id="empty")
    add_failing(Collection.objects.get(), doc_id="failed")
    manager.delete(DELETE_DOCUMENT, collection_name="manuals", id_value="gone")

    assert manager.get(NAMES, collection_name="manuals").json() == ["ready", "queued", "empty", "failed"]


def test_list_counts_documents_by_their_state(manager: Caller):
    manager.load("A text.", "b")
    manager.load("Another text. " * 200, "b")
    manager.post(LOAD_TEXT, {"text": "Later.", "wait": False}, collection_name="b")
    add_failing(Collection.objects.get())
    make("a")
    response = manager.get(LIST)
    a, b = response.json()

    assert list(b) == [
        "collection_name", "documents_count", "chunks_count", "documents_by_status", "embedding_model", "chunk_size",
        "chunk_overlap", "created_at", "updated_at",
    ]  # fmt: skip
    assert (a["collection_name"], a["documents_count"], a["chunks_count"], a["documents_by_status"]) == ("a", 0, 0, {})
    assert (b["documents_count"], b["documents_by_status"]) == (4, {"ready": 2, "failed": 1, "queued": 1})
    assert b["chunks_count"] > 3 and (b["chunk_size"], b["chunk_overlap"]) == (1000, 200)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b["created_at"])


def test_list_runs_a_constant_number_of_queries(manager: Caller):
    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert manager.get(LIST).status_code == 200
        return len([query for query in queries if '"document' in query["sql"]])

    make("a")
    few = statements()
    for number in range(12):
        add(make(f"more {number}"), is_loaded=False)
    assert statements() == few <= 3


def test_only_readable_collections_are_listed_and_counted(manager: Caller, stranger: Caller):  # C06
    manager.load("Secret.", "hidden")
    make("open", readers=("crew",))

    assert stranger.get(LIST).json() == []
    assert [collection["collection_name"] for collection in by_key(make_user("dora", "crew")).get(LIST).json()] == [
        "open"
    ]


def test_deleted_document_is_not_found(manager: Caller):
    manager.load("The toner is red.", doc_id="one")
    manager.load("The toner is blue.", doc_id="two")
    response = manager.delete(DELETE_DOCUMENT, collection_name="manuals", id_value="one")

    assert response.status_code == 200
    assert response.json() == {
        "status": "OK", "collection_name": "manuals", "doc_id": "one", "deleted": True, "deleted_chunks": 1
    }  # fmt: skip
    assert [
        passage["doc_id"] for passage in manager.get(RELEVANT, collection_names="manuals", query="toner").json()
    ] == ["two"]
    assert [passage["doc_id"] for passage in manager.get(BY_TAG, collection_name="manuals").json()] == ["two"]
    assert manager.get(LIST).json()[0]["documents_count"] == 1
    again = manager.delete(DELETE_DOCUMENT, collection_name="manuals", id_value="one")
    assert failed(again)[:2] == (404, "not_found")


def test_parameters_of_deletions_may_be_in_the_body(manager: Caller):
    manager.load("A text.", doc_id="one")

    body = {"collection_name": "manuals", "id_value": "one"}
    assert manager.delete(DELETE_DOCUMENT, body).status_code == 200
    assert manager.delete(DELETE, {"collection_name": "manuals"}).status_code == 200
    assert manager.get(LIST).json() == []


def test_deleted_collection_is_not_found_and_its_name_is_free(manager: Caller):
    manager.load("A text.")
    manager.load("Another text.")
    response = manager.delete(DELETE, collection_name="manuals")

    assert response.json() == {
        "status": "OK", "collection_name": "manuals", "deleted": True, "deleted_documents": 2, "deleted_chunks": 2
    }  # fmt: skip
    assert failed(manager.delete(DELETE, collection_name="manuals")) == (404, "not_found", "collection_name")
    assert failed(manager.get(NAMES, collection_name="manuals"))[0] == 404
    manager.load("A new text.")
    assert len(manager.get(NAMES, collection_name="manuals").json()) == 1


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        (DELETE, {}, (400, "mandatory", "collection_name")),
        (DELETE_DOCUMENT, {"collection_name": "manuals"}, (400, "mandatory", "id_value")),
        (DELETE_DOCUMENT, {"id_value": "one"}, (400, "mandatory", "collection_name")),
        (DELETE_DOCUMENT, {"collection_name": "manuals", "id_value": "two"}, (404, "not_found", "id_value")),
        (DELETE_DOCUMENT, {"collection_name": "manuals", "id_value": ""}, (404, "not_found", "id_value")),
        (DELETE_DOCUMENT, {"collection_name": "other", "id_value": "one"}, (404, "not_found", "collection_name")),
        (DELETE, {"collection_name": "manuals", "all": "1"}, (400, "unknown_field", "all")),
        (DELETE, {"collection_name": ["manuals", "manuals"]}, (400, "invalid_parameter", "collection_name")),
    ],
)
def test_invalid_deletion_deletes_nothing(manager: Caller, path: str, query: Any, expected: Any):
    add(make("manuals"), doc_id="one", is_loaded=False)

    assert failed(manager.delete(path, **query)) == expected
    assert Document.objects.filter(deleted_at=None).count() == 1


def test_document_is_deleted_only_in_its_own_collection(manager: Caller):  # C12
    add(make("mine"), doc_id="one", is_loaded=False)
    add(make("other"), doc_id="two", is_loaded=False)

    of_other = manager.delete(DELETE_DOCUMENT, collection_name="mine", id_value="two")
    missing = manager.delete(DELETE_DOCUMENT, collection_name="mine", id_value="six")
    assert of_other.status_code == 404
    assert of_other.content.replace(b"two", b"six") == missing.content
    assert Document.objects.filter(deleted_at=None).count() == 2


def test_deletion_requires_permission(manager: Caller, stranger: Caller, as_admin: Caller):
    """Documents: writers. The collection itself: a writer who also makes collections, and admin."""
    place = make("manuals", readers=("crew",), writers=("chiefs",))
    for name in ("one", "two"):
        add(place, doc_id=name, text=f"The text {name}.", is_loaded=False)
    reader, writer = by_key(make_user("dora", "crew")), by_key(make_user("emil", "chiefs"))
    one, whole = {"collection_name": "manuals", "id_value": "one"}, {"collection_name": "manuals"}

    for caller in (stranger, manager):
        assert failed(caller.delete(DELETE_DOCUMENT, **one))[0] == failed(caller.delete(DELETE, **whole))[0] == 404
    assert failed(reader.delete(DELETE_DOCUMENT, **one))[:2] == (403, "access_denied")
    assert (
        failed(reader.delete(DELETE, **whole))[:2]
        == failed(writer.delete(DELETE, **whole))[:2]
        == (403, "access_denied")
    )
    assert writer.delete(DELETE_DOCUMENT, **one).status_code == 200
    assert as_admin.delete(DELETE, **whole).status_code == 200

"""The two list endpoints and the two deletion endpoints."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from collections_app.models import Collection, Document
from tests.collections_app.http.calls import (
    BY_TAG_PATH,
    COLLECTION_LIST_PATH,
    DELETE_COLLECTION_PATH,
    DELETE_DOCUMENT_PATH,
    DOCUMENT_NAMES_PATH,
    LOAD_TEXT_PATH,
    SEARCH_PATH,
    KeyCaller,
    error_of,
    make_key_caller,
)
from tests.collections_app.library import add_document, add_failing_document, make_library_collection
from tests.support.users import make_user

pytestmark = pytest.mark.django_db


def test_list_contains_all_but_deleted_documents(manager: KeyCaller):
    manager.load("A text.", doc_id="ready")
    manager.load("Gone.", doc_id="gone")
    manager.post(LOAD_TEXT_PATH, {"text": "Later.", "doc_id": "queued", "wait": False}, collection_name="manuals")
    manager.load(" ", doc_id="empty")
    add_failing_document(Collection.objects.get(), doc_id="failed")
    manager.delete(DELETE_DOCUMENT_PATH, collection_name="manuals", id_value="gone")

    assert manager.get(DOCUMENT_NAMES_PATH, collection_name="manuals").json() == ["ready", "queued", "empty", "failed"]


def test_list_counts_documents_by_their_state(manager: KeyCaller):
    manager.load("A text.", "b")
    manager.load("Another text. " * 200, "b")
    manager.post(LOAD_TEXT_PATH, {"text": "Later.", "wait": False}, collection_name="b")
    add_failing_document(Collection.objects.get())
    make_library_collection("a")
    response = manager.get(COLLECTION_LIST_PATH)
    empty_item, filled_item = response.json()

    assert list(filled_item) == [
        "collection_name", "documents_count", "chunks_count", "documents_by_status", "embedding_model",
        "embedding_progress", "chunk_size",
        "chunk_overlap", "created_at", "updated_at",
    ]  # fmt: skip
    assert empty_item["collection_name"] == "a" and empty_item["documents_by_status"] == {}
    assert (empty_item["documents_count"], empty_item["chunks_count"]) == (0, 0)
    assert filled_item["documents_count"] == 4
    assert filled_item["documents_by_status"] == {"ready": 2, "failed": 1, "queued": 1}
    assert filled_item["chunks_count"] > 3 and (filled_item["chunk_size"], filled_item["chunk_overlap"]) == (1000, 200)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", filled_item["created_at"])


def test_list_runs_a_constant_number_of_queries(manager: KeyCaller):
    def count_statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert manager.get(COLLECTION_LIST_PATH).status_code == 200
        return len([query for query in queries if '"document' in query["sql"]])

    make_library_collection("a")
    initial_count = count_statements()
    for number in range(12):
        add_document(make_library_collection(f"more {number}"), is_loaded=False)
    assert count_statements() == initial_count <= 3


def test_only_readable_collections_are_listed_and_counted(manager: KeyCaller, stranger: KeyCaller):  # C06
    manager.load("Secret.", "hidden")
    make_library_collection("open", readers=("crew",))

    assert stranger.get(COLLECTION_LIST_PATH).json() == []
    assert [
        collection["collection_name"]
        for collection in make_key_caller(make_user("dora", "crew")).get(COLLECTION_LIST_PATH).json()
    ] == ["open"]


def test_deleted_document_is_not_found(manager: KeyCaller):
    manager.load("The toner is red.", doc_id="one")
    manager.load("The toner is blue.", doc_id="two")
    response = manager.delete(DELETE_DOCUMENT_PATH, collection_name="manuals", id_value="one")

    assert response.status_code == 200
    assert response.json() == {
        "status": "OK", "collection_name": "manuals", "doc_id": "one", "deleted": True, "deleted_chunks": 1
    }  # fmt: skip
    assert [
        passage["doc_id"] for passage in manager.get(SEARCH_PATH, collection_names="manuals", query="toner").json()
    ] == ["two"]
    assert [passage["doc_id"] for passage in manager.get(BY_TAG_PATH, collection_name="manuals").json()] == ["two"]
    assert manager.get(COLLECTION_LIST_PATH).json()[0]["documents_count"] == 1
    second_response = manager.delete(DELETE_DOCUMENT_PATH, collection_name="manuals", id_value="one")
    assert error_of(second_response)[:2] == (404, "not_found")


def test_parameters_of_deletions_may_be_in_the_body(manager: KeyCaller):
    manager.load("A text.", doc_id="one")

    body = {"collection_name": "manuals", "id_value": "one"}
    assert manager.delete(DELETE_DOCUMENT_PATH, body).status_code == 200
    assert manager.delete(DELETE_COLLECTION_PATH, {"collection_name": "manuals"}).status_code == 200
    assert manager.get(COLLECTION_LIST_PATH).json() == []


def test_deleted_collection_is_not_found_and_its_name_is_free(manager: KeyCaller):
    manager.load("A text.")
    manager.load("Another text.")
    response = manager.delete(DELETE_COLLECTION_PATH, collection_name="manuals")

    assert response.json() == {
        "status": "OK", "collection_name": "manuals", "deleted": True, "deleted_documents": 2, "deleted_chunks": 2
    }  # fmt: skip
    assert error_of(manager.delete(DELETE_COLLECTION_PATH, collection_name="manuals")) == (
        404,
        "not_found",
        "collection_name",
    )
    assert error_of(manager.get(DOCUMENT_NAMES_PATH, collection_name="manuals"))[0] == 404
    manager.load("A new text.")
    assert len(manager.get(DOCUMENT_NAMES_PATH, collection_name="manuals").json()) == 1


@pytest.mark.parametrize(
    ("path", "query", "expected_error"),
    [
        (DELETE_COLLECTION_PATH, {}, (400, "mandatory", "collection_name")),
        (DELETE_DOCUMENT_PATH, {"collection_name": "manuals"}, (400, "mandatory", "id_value")),
        (DELETE_DOCUMENT_PATH, {"id_value": "one"}, (400, "mandatory", "collection_name")),
        (DELETE_DOCUMENT_PATH, {"collection_name": "manuals", "id_value": "two"}, (404, "not_found", "id_value")),
        (DELETE_DOCUMENT_PATH, {"collection_name": "manuals", "id_value": ""}, (404, "not_found", "id_value")),
        (DELETE_DOCUMENT_PATH, {"collection_name": "other", "id_value": "one"}, (404, "not_found", "collection_name")),
        (DELETE_COLLECTION_PATH, {"collection_name": "manuals", "all": "1"}, (400, "unknown_field", "all")),
        (
            DELETE_COLLECTION_PATH,
            {"collection_name": ["manuals", "manuals"]},
            (400, "invalid_parameter", "collection_name"),
        ),
    ],
)
def test_invalid_deletion_deletes_nothing(manager: KeyCaller, path: str, query: Any, expected_error: Any):
    add_document(make_library_collection("manuals"), doc_id="one", is_loaded=False)

    assert error_of(manager.delete(path, **query)) == expected_error
    assert Document.objects.filter(deleted_at=None).count() == 1


def test_document_is_deleted_only_in_its_own_collection(manager: KeyCaller):  # C12
    add_document(make_library_collection("mine"), doc_id="one", is_loaded=False)
    add_document(make_library_collection("other"), doc_id="two", is_loaded=False)

    refusal = manager.delete(DELETE_DOCUMENT_PATH, collection_name="mine", id_value="two")
    missing_refusal = manager.delete(DELETE_DOCUMENT_PATH, collection_name="mine", id_value="six")
    assert refusal.status_code == 404
    assert refusal.content.replace(b"two", b"six") == missing_refusal.content
    assert Document.objects.filter(deleted_at=None).count() == 2


def test_deletion_requires_permission(manager: KeyCaller, stranger: KeyCaller, as_admin: KeyCaller):
    """Writers delete documents. Collections need a writer with the role collection_admin, or admin."""
    collection = make_library_collection("manuals", readers=("crew",), writers=("chiefs",))
    for doc_id in ("one", "two"):
        add_document(collection, doc_id=doc_id, text=f"The text {doc_id}.", is_loaded=False)
    reader, writer = make_key_caller(make_user("dora", "crew")), make_key_caller(make_user("emil", "chiefs"))
    document_parameters, collection_parameters = (
        {"collection_name": "manuals", "id_value": "one"},
        {"collection_name": "manuals"},
    )

    for caller in (stranger, manager):
        assert (
            error_of(caller.delete(DELETE_DOCUMENT_PATH, **document_parameters))[0]
            == error_of(caller.delete(DELETE_COLLECTION_PATH, **collection_parameters))[0]
            == 404
        )
    assert error_of(reader.delete(DELETE_DOCUMENT_PATH, **document_parameters))[:2] == (403, "access_denied")
    assert (
        error_of(reader.delete(DELETE_COLLECTION_PATH, **collection_parameters))[:2]
        == error_of(writer.delete(DELETE_COLLECTION_PATH, **collection_parameters))[:2]
        == (403, "access_denied")
    )
    assert writer.delete(DELETE_DOCUMENT_PATH, **document_parameters).status_code == 200
    assert as_admin.delete(DELETE_COLLECTION_PATH, **collection_parameters).status_code == 200

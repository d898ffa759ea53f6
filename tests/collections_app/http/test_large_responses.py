"""Long responses are built one at a time, and their memory is freed after they are sent."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import RequestFactory

from collections_app.http import endpoints
from collections_app.http.api import collections as managed_collections
from collections_app.http.api import documents as managed_documents
from collections_app.models import Document, Piece
from collections_app.search import metadata_listing
from tests.collections_app.http.calls import API_PATH, BY_TAG_PATH, LOAD_TEXT_PATH, KeyCaller, error_of
from tests.collections_app.library import add_document, make_library_collection

pytestmark = pytest.mark.django_db


@pytest.fixture
def disabled_garbage_collector() -> Iterator[None]:
    """Disables the garbage collector, so only unreferenced objects are freed."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("disabled_garbage_collector")
def test_response_memory_is_released(manager: KeyCaller):
    document = add_document(make_library_collection("manuals"), is_loaded=False)
    document_kwargs = {"sys_id": document.collection_id, "document": document.pk}
    requests: list[tuple[Any, str, dict[str, str]]] = [
        (managed_documents.DocumentContent, "/", document_kwargs),
        (managed_documents.DocumentDetail, "/", document_kwargs),
        (managed_collections.CollectionList, "/", {}),
        (endpoints.CollectionList, "/", {}),
        (endpoints.DocumentNames, "/?collection_name=manuals", {}),
        (endpoints.ContentByTag, "/?collection_name=manuals", {}),
    ]
    for view, path, url_kwargs in requests:
        response = view.as_view()(RequestFactory().get(path, headers=manager.headers), **url_kwargs)
        assert response.status_code == 200
        reference = weakref.ref(response.render() if hasattr(response, "render") else response)
        del response
        assert reference() is None, view


def test_large_original_is_complete(manager: KeyCaller):
    text = "0123456789" * 250_000
    document = add_document(make_library_collection("manuals"), text, is_loaded=False)
    path = f"{API_PATH}/{document.collection_id}/documents/{document.pk}/content"
    response, head_response = manager.get(path), manager.send("HEAD", path)

    assert Piece.objects.count() == 3 and response.content == text.encode()
    assert response["Content-Length"] == head_response["Content-Length"] == "2500000" and head_response.content == b""
    assert {name: response[name] for name in response.headers if name != "X-Request-ID"} == {
        name: head_response[name] for name in head_response.headers if name != "X-Request-ID"
    }
    Piece.objects.filter(number=2).delete()
    assert error_of(manager.get(path))[:2] == (404, "not_found")


def test_long_documents_are_returned_one_at_a_time(manager: KeyCaller, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(metadata_listing, "MAX_CHARACTERS", 100)
    add_document(make_library_collection("manuals"), "Long. " * 40, doc_id="long", metadata={"n": 1})
    add_document(Document.objects.get().collection, "Short.", doc_id="short", metadata={"n": 2})
    with metadata_listing.LONG_RESPONSE_SLOT:
        refusal = manager.get(BY_TAG_PATH, collection_name="manuals", tag_info="n=1")
        short_response = manager.get(BY_TAG_PATH, collection_name="manuals", tag_info="n=2")

    assert error_of(refusal)[:2] == (503, "unavailable") and refusal["Retry-After"]
    assert [passage["page_content"] for passage in short_response.json()] == ["Short."]
    for _ in range(2):  # the slot is released
        response = manager.get(BY_TAG_PATH, collection_name="manuals")
        assert [len(passage["page_content"]) for passage in response.json()] == [len("Long. " * 40)]
        assert (response["X-Total-Count"], response["X-Next-Offset"]) == ("2", "1")
        assert response["Content-Type"] == "application/json"


def test_ids_and_names_are_normalized_before_comparison(manager: KeyCaller):
    composed, decomposed = "Caf\u00e9", "Cafe\u0301"
    collection = make_library_collection(composed)
    for doc_id in (composed, "other"):
        add_document(collection, f"A text {doc_id}.", doc_id=doc_id, is_loaded=False)
    list_response = manager.get(f"{API_PATH}/{collection.pk}/documents", doc_id=decomposed)
    assert [document["doc_id"] for document in list_response.json()] == [composed]
    assert manager.get(f"{API_PATH}/{collection.pk}/documents", doc_id="a\n").json() == []
    assert [
        collection["collection_name"] for collection in manager.get(API_PATH, collection_name=decomposed).json()
    ] == [composed]
    refusal = manager.delete("/delete_document_from_collection", collection_name=decomposed, id_value="a\n")
    assert error_of(refusal) == (404, "not_found", "id_value")
    response = manager.delete("/delete_document_from_collection", collection_name=decomposed, id_value=decomposed)
    assert (response.status_code, response.json()["doc_id"]) == (200, composed)
    assert (
        manager.post(
            LOAD_TEXT_PATH, {"text": "New.", "wait": False}, collection_name=decomposed, doc_id=decomposed
        ).status_code
        == 202
    )


def test_documents_being_purged_are_hidden(manager: KeyCaller):
    document = add_document(make_library_collection("manuals"), is_loaded=False)
    document.versions.all().delete()
    path = f"{API_PATH}/{document.collection_id}/documents"

    assert manager.get(path).json() == [] and manager.get(path)["X-Total-Count"] == "0"
    for response in (
        manager.get(f"{path}/{document.pk}"),
        manager.get(f"{path}/{document.pk}/content"),
        manager.patch(f"{path}/{document.pk}", {"metadata": {}}),
    ):
        assert error_of(response)[:2] == (404, "not_found")


def test_roles_are_not_validated_before_permissions(stranger: KeyCaller):
    responses = [
        stranger.post(API_PATH, {"collection_name": "a", "reader_roles": [name]}) for name in ("admin", "nobody", 5)
    ]

    assert [error_of(response)[:2] for response in responses] == [(403, "access_denied")] * 3
    assert len({response.content for response in responses}) == 1

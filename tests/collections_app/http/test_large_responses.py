"""Long responses are built one at a time, and their memory is released when they are sent."""

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
from tests.collections_app.http.calls import BY_TAG, LOAD_TEXT, MANAGED, Caller, failed
from tests.collections_app.library import add, make

pytestmark = pytest.mark.django_db


@pytest.fixture
def without_collector() -> Iterator[None]:
    """Only what nothing refers to goes."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collector")
def test_response_memory_is_released(manager: Caller):
    document = add(make("manuals"), is_loaded=False)
    ids = {"sys_id": document.collection_id, "document": document.pk}
    request: list[tuple[Any, str, dict[str, str]]] = [
        (managed_documents.DocumentContent, "/", ids),
        (managed_documents.DocumentDetail, "/", ids),
        (managed_collections.CollectionList, "/", {}),
        (endpoints.CollectionList, "/", {}),
        (endpoints.DocumentNames, "/?collection_name=manuals", {}),
        (endpoints.ContentByTag, "/?collection_name=manuals", {}),
    ]
    for view, address, named in request:
        response = view.as_view()(RequestFactory().get(address, headers=manager.headers), **named)
        assert response.status_code == 200
        sent = weakref.ref(response.render() if hasattr(response, "render") else response)
        del response
        assert sent() is None, view


def test_large_original_is_complete(manager: Caller):
    text = "0123456789" * 250_000
    document = add(make("manuals"), text, is_loaded=False)
    path = f"{MANAGED}/{document.collection_id}/documents/{document.pk}/content"
    response, head = manager.get(path), manager.send("HEAD", path)

    assert Piece.objects.count() == 3 and response.content == text.encode()
    assert response["Content-Length"] == head["Content-Length"] == "2500000" and head.content == b""
    assert {name: response[name] for name in response.headers if name != "X-Request-ID"} == {
        name: head[name] for name in head.headers if name != "X-Request-ID"
    }
    Piece.objects.filter(number=2).delete()
    assert failed(manager.get(path))[:2] == (404, "not_found")


def test_long_documents_are_returned_one_at_a_time(manager: Caller, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(metadata_listing, "MAX_CHARACTERS", 100)
    add(make("manuals"), "Long. " * 40, doc_id="long", metadata={"n": 1})
    add(Document.objects.get().collection, "Short.", doc_id="short", metadata={"n": 2})
    with metadata_listing.LONG_RESPONSES:
        busy = manager.get(BY_TAG, collection_name="manuals", tag_info="n=1")
        short = manager.get(BY_TAG, collection_name="manuals", tag_info="n=2")

    assert failed(busy)[:2] == (503, "unavailable") and busy["Retry-After"]
    assert [passage["page_content"] for passage in short.json()] == ["Short."]
    for _ in range(2):  # the turn is given back
        response = manager.get(BY_TAG, collection_name="manuals")
        assert [len(passage["page_content"]) for passage in response.json()] == [len("Long. " * 40)]
        assert (response["X-Total-Count"], response["X-Next-Offset"]) == ("2", "1")
        assert response["Content-Type"] == "application/json"


def test_id_is_compared_in_the_form_that_is_stored(manager: Caller):
    stored, sent = "Caf\u00e9", "Cafe\u0301"
    place = make(stored)
    for doc_id in (stored, "other"):
        add(place, f"A text {doc_id}.", doc_id=doc_id, is_loaded=False)
    listed = manager.get(f"{MANAGED}/{place.pk}/documents", doc_id=sent)
    assert [document["doc_id"] for document in listed.json()] == [stored]
    assert manager.get(f"{MANAGED}/{place.pk}/documents", doc_id="a\n").json() == []
    assert [collection["collection_name"] for collection in manager.get(MANAGED, collection_name=sent).json()] == [
        stored
    ]
    missing = manager.delete("/delete_document_from_collection", collection_name=sent, id_value="a\n")
    assert failed(missing) == (404, "not_found", "id_value")
    gone = manager.delete("/delete_document_from_collection", collection_name=sent, id_value=sent)
    assert (gone.status_code, gone.json()["doc_id"]) == (200, stored)
    assert (
        manager.post(LOAD_TEXT, {"text": "New.", "wait": False}, collection_name=sent, doc_id=sent).status_code == 202
    )


def test_documents_being_purged_are_hidden(manager: Caller):
    document = add(make("manuals"), is_loaded=False)
    document.versions.all().delete()
    path = f"{MANAGED}/{document.collection_id}/documents"

    assert manager.get(path).json() == [] and manager.get(path)["X-Total-Count"] == "0"
    for call in (
        manager.get(f"{path}/{document.pk}"),
        manager.get(f"{path}/{document.pk}/content"),
        manager.patch(f"{path}/{document.pk}", {"metadata": {}}),
    ):
        assert failed(call)[:2] == (404, "not_found")


def test_role_names_are_hidden_without_the_role(stranger: Caller):
    responses = [
        stranger.post(MANAGED, {"collection_name": "a", "reader_roles": [name]}) for name in ("admin", "nobody", 5)
    ]

    assert [failed(response)[:2] for response in responses] == [(403, "access_denied")] * 3
    assert len({response.content for response in responses}) == 1

"""Loading a file or a text: the responses, and refused loads, which store nothing."""

import hashlib
import json
from typing import Any

import pytest
from django.conf import settings
from django.test import Client, override_settings

from accounts.models import Role, User
from collections_app.ingest import loading
from collections_app.models import Collection, Document, Version
from tests.collections_app.http.calls import (
    DOCUMENT_NAMES_PATH,
    LOAD_TEXT_PATH,
    SEARCH_PATH,
    KeyCaller,
    error_of,
    make_key_caller,
)
from tests.collections_app.library import make_library_collection, pdf
from tests.support.users import make_user

pytestmark = pytest.mark.django_db
TEXT = "Replace the toner when the lamp is red."
METADATA = {
    "sys_id": "1", "status": "active", "priority": 2, "flag": True, "type": "manual", "created": "2024-05-19T13:45:00Z"
}  # fmt: skip


def test_text_is_searchable_when_the_load_returns(manager: KeyCaller):
    response = manager.post(LOAD_TEXT_PATH, {"text": TEXT, "metadata": METADATA}, collection_name="manuals")
    body = response.json()

    assert response.status_code == 201 and response["Cache-Control"] == "no-store"
    assert body == {
        "status": "OK",
        "doc_id": Document.objects.get().pk,
        "collection_name": "manuals",
        "document_status": "ready",
        "duplicate": False,
        "chunks_count": 1,
        "pages": None,
        "sha256": hashlib.sha256(TEXT.encode()).hexdigest(),
        "metadata": METADATA,
        "status_url": f"http://testserver/api/collections/{Collection.objects.get().pk}/documents/{body['doc_id']}",
        "warnings": [],
    }
    hits = manager.get(SEARCH_PATH, collection_names="manuals", query="toner").json()
    assert [(hit["doc_id"], hit["page_content"], hit["metadata"]) for hit in hits] == [(body["doc_id"], TEXT, METADATA)]
    assert manager.get(body["status_url"].removeprefix("http://testserver")).json()["document_status"] == "ready"


def test_file_is_searchable_when_the_load_returns(manager: KeyCaller):
    form = {"metadata": json.dumps(METADATA)}
    response = manager.upload(
        pdf("The toner is red", "The mailbox is full"), "a.pdf", form=form, collection_name="manuals"
    )

    assert response.status_code == 201, response.content
    assert (response.json()["pages"], response.json()["document_status"], response.json()["metadata"]) == (
        2,
        "ready",
        METADATA,
    )
    passage = manager.get(SEARCH_PATH, collection_names="manuals", query="mailbox", k=1).json()[0]
    assert (passage["page"], passage["page_end"], passage["filename"]) == (1, 2, "a.pdf")


def test_parameters_are_accepted_in_query_and_body(manager: KeyCaller):
    parameters = {"collection_name": "manuals", "metadata": '{"type": "a"}', "doc_id": "one", "on_duplicate": "error"}
    responses = [
        manager.post(LOAD_TEXT_PATH, text=TEXT, wait="true", **parameters),
        manager.post(LOAD_TEXT_PATH, {**parameters, "text": TEXT, "wait": True, "doc_id": "two"}),
        manager.upload(TEXT.encode(), "a.txt", form={**parameters, "doc_id": "three"}),
        manager.upload(TEXT.encode(), "a.txt", **{**parameters, "doc_id": "four"}),
    ]

    assert [response.status_code for response in responses] == [201] * 4
    assert [response.json()["metadata"] for response in responses] == [{"type": "a"}] * 4
    assert manager.get(DOCUMENT_NAMES_PATH, collection_name="manuals").json() == ["one", "two", "three", "four"]


def test_repeated_load_returns_the_same_document(manager: KeyCaller):
    first_response, second_response = (
        manager.post(LOAD_TEXT_PATH, {"text": TEXT}, collection_name="manuals") for _ in range(2)
    )

    assert (first_response.status_code, second_response.status_code) == (201, 200)
    assert second_response.json() == {**first_response.json(), "duplicate": True}
    other_response = manager.post(LOAD_TEXT_PATH, {"text": TEXT, "metadata": {"type": "x"}}, collection_name="manuals")
    assert other_response.status_code == 201 and Document.objects.count() == 2


def test_document_is_replaced_only_if_requested(manager: KeyCaller):
    manager.load("The first text.", doc_id="one")
    refusal = manager.post(LOAD_TEXT_PATH, {"text": "The second text.", "doc_id": "one"}, collection_name="manuals")
    assert error_of(refusal) == (409, "duplicate", "doc_id")
    body = {"text": "The second text.", "doc_id": "one", "on_duplicate": "replace"}
    replacement = manager.post(LOAD_TEXT_PATH, body, collection_name="manuals")

    assert replacement.status_code == 201
    hits = manager.get(SEARCH_PATH, collection_names="manuals", query="text").json()
    assert [hit["page_content"] for hit in hits] == ["The second text."]


def test_load_without_waiting_is_202(manager: KeyCaller):
    response = manager.post(LOAD_TEXT_PATH, {"text": TEXT, "wait": False}, collection_name="manuals", wait="")

    assert (response.status_code, response.json()["document_status"]) == (202, "queued")
    assert manager.get(DOCUMENT_NAMES_PATH, collection_name="manuals").json() == [response.json()["doc_id"]]


def test_queue_limit_applies_per_caller(  # C46
    manager: KeyCaller, settings: Any
):
    settings.COLLECTIONS = {**settings.COLLECTIONS, "waiting_limit": 3}
    for number in range(3):
        assert (
            manager.post(LOAD_TEXT_PATH, {"text": f"{number}", "wait": False}, collection_name="flood").status_code
            == 202
        )
    refusal = manager.post(LOAD_TEXT_PATH, {"text": "one more"}, collection_name="flood")

    assert (error_of(refusal), int(refusal["Retry-After"])) == ((429, "too_many_waiting", None), 10)
    assert error_of(manager.post(LOAD_TEXT_PATH, {"text": "one more"}, collection_name="another")) == error_of(refusal)
    assert manager.get(DOCUMENT_NAMES_PATH, collection_name="another").status_code == 404, "no document is created"
    assert Document.objects.count() == 3
    Version.objects.update(created_by="somebody else")
    assert manager.post(LOAD_TEXT_PATH, {"text": "one more"}, collection_name="flood").status_code == 201


def test_large_document_is_left_to_the_worker(manager: KeyCaller, settings: Any):
    settings.COLLECTIONS = {**settings.COLLECTIONS, "wait_limit": 100}

    assert manager.post(LOAD_TEXT_PATH, {"text": "a " * 50}, collection_name="manuals").status_code == 201
    assert manager.post(LOAD_TEXT_PATH, {"text": "b " * 51}, collection_name="manuals").status_code == 202


def test_unreadable_file_is_stored_with_the_reason(manager: KeyCaller):  # C16
    response = manager.upload(b"%PDF-1.7 broken", "broken.pdf", collection_name="manuals")
    document = Document.objects.get()

    assert error_of(response) == (422, "extraction_failed", "file")
    (error,) = response.json()["errors"]
    assert error["doc_id"] == document.doc_id and error["reason"] and error["message"]
    assert document.newest is not None and document.newest.state == "failed"
    assert manager.get(DOCUMENT_NAMES_PATH, collection_name="manuals").json() == [document.doc_id]


def test_document_without_text_is_empty(manager: KeyCaller):  # C23
    response = manager.post(LOAD_TEXT_PATH, {"text": " \n\t "}, collection_name="manuals")

    assert (response.status_code, response.json()["document_status"]) == (201, "empty")
    assert response.json()["warnings"]


@pytest.mark.parametrize(
    ("content", "filename", "expected_error"),
    [
        (b"<!DOCTYPE html><p>Hi", "a.pdf", (415, "unsupported_media_type", "file")),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "a.png", (415, "unsupported_media_type", "file")),
        (b"MZ" + bytes(50), "setup.exe", (415, "unsupported_media_type", "file")),
        (b"", "a.txt", (400, "empty_file", "file")),
    ],
)
def test_invalid_load_leaves_nothing(manager: KeyCaller, content: bytes, filename: str, expected_error: Any):  # C16
    response = manager.upload(content, filename, collection_name="manuals")

    assert error_of(response) == expected_error
    assert not Collection.objects.exists() and not Version.objects.exists()


@pytest.mark.parametrize(
    ("body", "query", "expected_error"),
    [
        ({"text": ""}, {}, (400, "invalid_parameter", "text")),
        ({}, {}, (400, "mandatory", "text")),
        ({"text": 5}, {}, (400, "invalid_parameter", "text")),
        (b'{"text": "a\\u0000b"}', {}, (400, "invalid_json", None)),  # C23
        (b'{"text": "\\ud800"}', {}, (400, "invalid_json", None)),  # C23
        (b'{"text": "a", "text": "b"}', {}, (400, "invalid_json", None)),
        (b"[]", {}, (400, "invalid_json", None)),
        (b"nonsense", {}, (400, "invalid_json", None)),
        ({"text": "a", "metadata": []}, {}, (400, "invalid_metadata", "metadata")),
        ({"text": "a", "metadata": {"priority": "5"}}, {}, (400, "invalid_metadata", "priority")),
        ({"text": "a", "metadata": {"n": 10**400}}, {}, (400, "invalid_json", None)),
        ({"text": "a", "metadata": {"n": "x" * 17_000}}, {}, (400, "invalid_metadata", "metadata")),
        ({"text": "a", "doc_id": ""}, {}, (400, "invalid_parameter", "doc_id")),
        ({"text": "a", "doc_id": "x" * 201}, {}, (400, "invalid_parameter", "doc_id")),
        ({"text": "a", "on_duplicate": "merge"}, {}, (400, "invalid_parameter", "on_duplicate")),
        ({"text": "a", "wait": "yes"}, {}, (400, "invalid_parameter", "wait")),
        ({"text": "a", "owner": "me"}, {}, (400, "unknown_field", "owner")),  # C08
        ({"text": "a", "embedding_model": "x"}, {}, (400, "unknown_field", "embedding_model")),  # C28
        ({"text": "a", "collection_name": "other"}, {}, (400, "contradiction", "collection_name")),
        ({"text": "a"}, {"collection_name": ""}, (400, "invalid_parameter", "collection_name")),
        ({"text": "a"}, {"collection_name": "a" * 201}, (400, "invalid_parameter", "collection_name")),  # C11
        ({"text": "a"}, {"collection_name": "a\x00"}, (400, "invalid_parameter", "collection_name")),  # C11
    ],
)
def test_invalid_text_is_refused_and_leaves_nothing(manager: KeyCaller, body: Any, query: Any, expected_error: Any):
    response = manager.post(LOAD_TEXT_PATH, body, **{"collection_name": "manuals", **query})

    assert error_of(response) == expected_error
    assert not Collection.objects.exists() and not Version.objects.exists()


def test_collection_name_is_required(manager: KeyCaller):
    assert error_of(manager.post(LOAD_TEXT_PATH, {"text": "a"})) == (400, "mandatory", "collection_name")
    assert error_of(manager.upload(b"a", "a.txt")) == (400, "mandatory", "collection_name")


@pytest.mark.parametrize("name", [".", "..", "a/b", "😀", "SELECT 1; --", "%2e%2e", "a b", "Ü"])
def test_collection_names_allow_any_script(manager: KeyCaller, name: str):  # C11
    response = manager.post(LOAD_TEXT_PATH, {"text": TEXT, "wait": False}, collection_name=name)
    assert (response.status_code, response.json()["collection_name"]) == (202, name)
    assert manager.get(DOCUMENT_NAMES_PATH, collection_name=name).status_code == 200


@override_settings(
    COLLECTIONS={
        **settings.COLLECTIONS,
        "text_limit": 1000,
        "file_limit": 1000,
        "wait_limit": 1000,
        "metadata_limit": 1000,
    }
)
def test_too_large_load_is_413(manager: KeyCaller):  # C14
    assert error_of(manager.post(LOAD_TEXT_PATH, {"text": "ю" * 501}, collection_name="a"))[:2] == (413, "too_large")
    assert error_of(manager.upload(b"x" * 1001, "a.txt", collection_name="a"))[:2] == (413, "too_large")
    assert not Collection.objects.exists()


@pytest.mark.parametrize("path", ["/load_document_to_collection", LOAD_TEXT_PATH])
def test_load_with_a_too_large_content_length_is_not_read(manager: KeyCaller, path: str):  # C14
    refusal = Client().post(path, b"x", content_type="text/plain", headers=manager.headers, CONTENT_LENGTH=str(10**8))

    assert error_of(refusal)[:2] == (413, "too_large")


def test_load_is_403_for_readers_and_404_for_others(manager: KeyCaller, stranger: KeyCaller):
    make_library_collection("manuals", readers=("crew",))
    reader = make_key_caller(make_user("dora", "crew"))

    for caller, expected_error in ((reader, (403, "access_denied")), (stranger, (404, "not_found"))):
        responses = [
            caller.post(LOAD_TEXT_PATH, {"text": "a"}, collection_name="manuals"),
            caller.upload(b"a", "a.txt", collection_name="manuals"),
        ]
        assert [error_of(response)[:2] for response in responses] == [expected_error] * 2
    missing_refusal = stranger.post(LOAD_TEXT_PATH, {"text": "a"}, collection_name="nothing")
    assert error_of(missing_refusal) == (404, "not_found", "collection_name")
    assert Collection.objects.count() == 1 and not Document.objects.exists()


@pytest.mark.parametrize("content", [b"<!DOCTYPE html><p>Hi", b"PK\x03\x04" + b"\xff" * 100])
def test_permission_is_checked_before_the_file(manager: KeyCaller, stranger: KeyCaller, content: bytes):
    collection = make_library_collection("manuals", readers=("crew",))
    reader = make_key_caller(make_user("dora", "crew"))
    documents_path = f"/api/collections/{collection.pk}/documents"

    for caller, expected_status in ((stranger, 404), (reader, 403), (manager, 415)):
        assert caller.upload(content, "a.pdf", collection_name="manuals").status_code == expected_status
        assert caller.upload(content, "a.pdf", path=documents_path).status_code == expected_status
    assert stranger.upload(content, "a.pdf", collection_name="nothing").status_code == 404
    assert error_of(manager.upload(content, "a.pdf"))[:2] == (400, "mandatory")
    # An invalid parameter is reported whether or not the collection exists.
    for name in ("manuals", "nothing"):
        refusal = stranger.upload(content, "a.pdf", collection_name=name, on_duplicate="merge")
        assert error_of(refusal) == (400, "invalid_parameter", "on_duplicate")


def test_third_concurrent_load_is_left_to_the_worker(manager: KeyCaller):
    acquired_slots = [loading.LOAD_SLOTS.acquire(blocking=False) for _ in range(2)]
    try:
        responses = [
            manager.post(LOAD_TEXT_PATH, {"text": "The third."}, collection_name="manuals"),
            manager.upload(b"The fourth.", "a.txt", collection_name="manuals"),
        ]
    finally:
        for _ in acquired_slots:
            loading.LOAD_SLOTS.release()
    assert acquired_slots == [True, True]
    assert [(response.status_code, response.json()["document_status"]) for response in responses] == [
        (202, "queued")
    ] * 2

    for number in range(5):  # each load releases its slot, even if it is refused
        assert manager.post(LOAD_TEXT_PATH, {"text": f"{number}"}, collection_name="manuals").status_code == 201
        body = {"text": f"{number}", "on_duplicate": "error"}
        assert manager.post(LOAD_TEXT_PATH, body, collection_name="manuals").status_code == 409


def test_scoped_key_loads_with_its_roles(carl: User):
    caller = make_key_caller(carl, scope=[Role.objects.get(name="itil").pk])

    assert error_of(caller.post(LOAD_TEXT_PATH, {"text": "a"}, collection_name="manuals"))[:2] == (404, "not_found")
    assert Document.objects.count() == 0


def test_loader_is_recorded(manager: KeyCaller, carl: User):
    manager.load(TEXT)

    assert Version.objects.get().created_by == Document.objects.get().created_by == carl.pk
    assert Collection.objects.get().sys_created_by == carl.pk


@pytest.mark.parametrize(
    "text",
    [
        "naïve café",
        "Привет, мир",
        "こんにちは世界",
        "a\r\nb\rc\u2028d",
        "a\u0301 \u200b e",
        "<script>alert(1)</script>",
    ],
)
def test_text_is_returned_unchanged(manager: KeyCaller, text: str):  # C25, C26
    manager.load(text)
    (document,) = manager.get("/get_content_by_tag", collection_name="manuals").json()

    assert document["page_content"] == text

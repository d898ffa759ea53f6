"""/api/collections/{id}/documents: the documents of a collection."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from collections_app.models import Collection, Document, Version
from tests.collections_app.http.calls import (
    API_PATH,
    BY_TAG_PATH,
    LOAD_TEXT_PATH,
    SEARCH_PATH,
    KeyCaller,
    error_of,
    make_key_caller,
)
from tests.collections_app.library import add_document, add_failing_document, make_library_collection, pdf
from tests.support.users import make_user

pytestmark = pytest.mark.django_db


def documents_path(collection: Collection) -> str:
    return f"{API_PATH}/{collection.pk}/documents"


def document_path(document: Document, suffix: str = "") -> str:
    return f"{API_PATH}/{document.collection_id}/documents/{document.pk}{suffix}"


@pytest.fixture
def collection(manager: KeyCaller) -> Collection:
    return make_library_collection("manuals", readers=("crew",))


@pytest.fixture
def reader_caller(collection: Collection) -> KeyCaller:
    return make_key_caller(make_user("dora", "crew"))


def test_document_shows_its_progress(manager: KeyCaller, collection: Collection):
    document = add_document(collection, "The toner is red.", doc_id="one", metadata={"type": "manual"})
    body = manager.get(document_path(document)).json()

    assert body.items() >= {
        "sys_id": document.pk, "doc_id": "one", "collection_name": "manuals", "document_status": "ready",
        "is_searched": True, "error": None, "error_code": None, "filename": "handbook.md", "format": "markdown",
        "size": 17, "metadata": {"type": "manual"}, "characters": 17,
        "chunks_count": 1, "generation": 1, "progress": None,
    }.items()  # fmt: skip
    queued_body = manager.get(document_path(add_document(collection, "Later.", is_loaded=False))).json()
    assert (queued_body["document_status"], queued_body["is_searched"], queued_body["ready_at"]) == (
        "queued",
        False,
        None,
    )
    Version.objects.filter(document=document).update(state="embedding")
    assert manager.get(document_path(document)).json()["progress"] == {"chunks": 1, "embedded": 1}


def test_failed_document_shows_the_reason_and_can_be_retried(manager: KeyCaller, collection: Collection):
    document = add_failing_document(collection)
    body = manager.get(document_path(document)).json()
    assert (body["document_status"], body["is_searched"]) == ("failed", False) and body["error"] and body["error_code"]

    response = manager.post(document_path(document, "/retry"))
    assert (response.status_code, response.json()["document_status"]) == (202, "queued")
    assert error_of(manager.post(document_path(document, "/retry"))) == (409, "not_failed", None)


def test_refused_retry_explains_what_to_do(manager: KeyCaller, collection: Collection):
    loaded_document, queued_document = add_document(collection), add_document(collection, "Later.", is_loaded=False)
    messages = [
        manager.post(document_path(document, "/retry")).json()["errors"][0]["message"]
        for document in (loaded_document, queued_document)
    ]

    assert "This document is ready." in messages[0] and "/reload." in messages[0]
    assert "This document is queued." in messages[1] and "reload" not in messages[1]


def test_list_supports_filter_order_and_limit(manager: KeyCaller, collection: Collection):
    add_document(collection, "One.", filename="b.md", doc_id="one")
    add_document(collection, "Two.", filename="A.md", doc_id="two")
    add_failing_document(collection, doc_id="three")
    add_document(collection, "Four.", is_loaded=False, filename="c.md", doc_id="four")
    add_document(make_library_collection("other"), "Five.", doc_id="five")

    def list_ids(**query: Any) -> list[str]:
        response = manager.get(documents_path(collection), **query)
        assert response.status_code == 200, response.content
        return [document["doc_id"] for document in response.json()]

    assert list_ids() == ["one", "two", "three", "four"]
    assert list_ids(document_status="failed") == ["three"]
    assert list_ids(filename=".MD") == ["one", "two", "four"]
    assert list_ids(doc_id="two") == ["two"]
    assert list_ids(ordering="filename", limit=2) == ["two", "one"]
    assert list_ids(ordering="-created_at") == ["four", "three", "two", "one"]
    page = manager.get(documents_path(collection), limit=3)
    assert (page["X-Total-Count"], page["X-Next-Offset"]) == ("4", "3")
    refusal = manager.get(documents_path(collection), document_status="lost")
    assert error_of(refusal) == (400, "invalid_parameter", "document_status")
    assert "queued, extracting" in refusal.json()["errors"][0]["message"]
    assert manager.get(documents_path(collection), filename="a\x00b").status_code == 400


def test_list_runs_a_constant_number_of_queries(manager: KeyCaller, collection: Collection):
    def count_statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert manager.get(documents_path(collection)).status_code == 200
        return len([query for query in queries if '"document' in query["sql"]])

    add_document(collection, "One.", is_loaded=False)
    initial_count = count_statements()
    for number in range(8):
        add_document(collection, f"Text {number}.", is_loaded=False)
    assert count_statements() == initial_count <= 5


def test_upload_equals_the_load_endpoint(manager: KeyCaller, collection: Collection, reader_caller: KeyCaller):
    response = manager.upload(
        pdf("The toner is red"), "a.pdf", path=documents_path(collection), form={"metadata": '{"type": "x"}'}
    )

    assert response.status_code == 201 and response.json()["collection_name"] == "manuals"
    queued_response = manager.upload(b"A text.", "b.txt", path=documents_path(collection), wait="false")
    assert queued_response.status_code == 202
    refusal = manager.upload(b"A text.", "b.txt", path=documents_path(collection), collection_name="other")
    assert error_of(refusal) == (400, "unknown_field", "collection_name")
    assert error_of(manager.upload(b"", "b.txt", path=documents_path(collection)))[:2] == (400, "empty_file")
    assert error_of(reader_caller.upload(b"a", "b.txt", path=documents_path(collection)))[:2] == (403, "access_denied")
    large_refusal: Any = Client().post(
        documents_path(collection), b"x", content_type="text/plain", headers=manager.headers, CONTENT_LENGTH=str(10**8)
    )
    assert error_of(large_refusal)[:2] == (413, "too_large")


def test_browser_uploads_with_its_csrf_token_in_a_header(carl: User, collection: Collection):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(carl)
    browser.get("/account/")
    csrf_headers = {"X-CSRFToken": browser.cookies["servicebase_csrf"].value}
    from django.core.files.uploadedfile import SimpleUploadedFile

    response = browser.post(
        documents_path(collection), {"file": SimpleUploadedFile("a.txt", b"A text.")}, headers=csrf_headers
    )
    assert response.status_code == 201 and Document.objects.get().created_by == carl.pk


def test_metadata_is_replaced_and_searches_use_it(manager: KeyCaller, collection: Collection):
    document = add_document(collection, "The toner is red.", metadata={"type": "manual", "n": 1})
    response = manager.patch(document_path(document), {"metadata": {"type": "note"}})

    assert response.status_code == 200 and response.json()["metadata"] == {"type": "note"}
    assert manager.get(BY_TAG_PATH, collection_name="manuals", tag_info="type=manual").json() == []
    (hit,) = manager.get(SEARCH_PATH, collection_names="manuals", query="toner", metadata="type=note").json()
    assert hit["metadata"] == {"type": "note"}


def test_metadata_applies_to_old_and_new_version(manager: KeyCaller, collection: Collection):
    document = add_document(collection, "Old.", doc_id="one")
    add_document(collection, "New.", doc_id="one", is_loaded=False, metadata={"type": "new"})
    manager.patch(document_path(document), {"metadata": {"type": "set"}})

    assert [version.metadata for version in Version.objects.all()] == [{"type": "set"}] * 2


@pytest.mark.parametrize(
    ("body", "expected_error"),
    [
        ({}, (422, "mandatory", "metadata")),
        ({"metadata": []}, (400, "invalid_metadata", "metadata")),
        ({"metadata": "x"}, (400, "invalid_metadata", "metadata")),
        ({"metadata": {"": 1}}, (400, "invalid_metadata", "metadata")),
        ({"": 1}, (400, "unknown_field", None)),
        ([], (400, "invalid_json", None)),
        ({"metadata": None}, (422, "mandatory", "metadata")),
        ({"metadata": {"priority": "5"}}, (400, "invalid_metadata", "priority")),  # C10
        ({"metadata": {}, "doc_id": "x"}, (400, "unknown_field", "doc_id")),  # C08
        ({"metadata": {}, "state": "ready"}, (400, "unknown_field", "state")),  # C08
    ],
)
def test_invalid_metadata_changes_nothing(manager: KeyCaller, collection: Collection, body: Any, expected_error: Any):
    document = add_document(collection, metadata={"n": 1}, is_loaded=False)
    assert error_of(manager.patch(document_path(document), body)) == expected_error
    assert Version.objects.get().metadata == {"n": 1}


@pytest.mark.parametrize("metadata", [5, [], {"": 1}, {"priority": "5"}, {"n" * 201: 1}])
def test_metadata_rules_equal_those_of_a_load(manager: KeyCaller, collection: Collection, metadata: Any):
    document = add_document(collection, is_loaded=False)
    refusal = manager.patch(document_path(document), {"metadata": metadata})
    load_refusal = manager.post(LOAD_TEXT_PATH, {"text": "A text.", "metadata": metadata}, collection_name="manuals")

    assert refusal.status_code == 400 and refusal.json() == load_refusal.json()


def test_if_match_prevents_lost_updates(manager: KeyCaller, collection: Collection):
    document = add_document(collection, metadata={"n": 1})
    etag = {"If-Match": manager.get(document_path(document))["ETag"]}

    assert manager.patch(document_path(document), {"metadata": {"n": 2}}, headers=etag).status_code == 200
    assert error_of(manager.patch(document_path(document), {"metadata": {"n": 3}}, headers=etag))[:2] == (412, "stale")
    assert Version.objects.get().metadata == {"n": 2}


def test_original_can_be_downloaded(manager: KeyCaller, reader_caller: KeyCaller, collection: Collection):  # C13, C25
    content = b"<!DOCTYPE html><script>alert(1)</script><p>Hi"
    manager.upload(content, 'naïve "x";.html', path=documents_path(collection))
    response = reader_caller.get(document_path(Document.objects.get(), "/content"))

    assert response.content == content
    assert response["Content-Type"] == "application/octet-stream" and response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"] == "attachment; filename*=utf-8''na%C3%AFve%20%22x%22%3B.html"
    assert response["Content-Security-Policy"] == "default-src 'none'; sandbox"
    manager.load("A text.")
    assert (
        ".txt"
        in manager.get(document_path(Document.objects.get(newest__filename=""), "/content"))["Content-Disposition"]
    )


def test_reload_uses_current_settings(manager: KeyCaller, collection: Collection):
    first_document = add_document(collection, "The toner is red. " * 50, doc_id="one")
    second_document = add_document(collection, "The toner is red. " * 50, doc_id="two")
    manager.patch(f"{API_PATH}/{collection.pk}", {"chunk_size": 100, "chunk_overlap": 0})
    response = manager.post(document_path(second_document, "/reload"))

    assert (response.status_code, response.json()["document_status"], response.json()["doc_id"]) == (
        202,
        "queued",
        "two",
    )
    assert response.json()["sha256"] == Version.objects.get(document=first_document).sha256
    assert (
        manager.get(document_path(second_document)).json()["generation"] == 2
        and manager.get(document_path(first_document)).json()["generation"] == 1
    )


def test_document_is_deleted_by_its_id(manager: KeyCaller, collection: Collection):
    document = add_document(collection, doc_id="one")

    assert manager.delete(document_path(document)).json()["doc_id"] == "one"
    assert (
        error_of(manager.get(document_path(document)))[:2]
        == error_of(manager.delete(document_path(document)))[:2]
        == (404, "not_found")
    )


REQUESTS: list[Any] = [
    lambda caller, path: caller.get(path),
    lambda caller, path: caller.patch(path, {"metadata": {}}),
    lambda caller, path: caller.delete(path),
    lambda caller, path: caller.get(f"{path}/content"),
    lambda caller, path: caller.post(f"{path}/reload"),
    lambda caller, path: caller.post(f"{path}/retry"),
]


def test_document_is_found_only_in_its_own_collection(manager: KeyCaller, collection: Collection):  # C12
    document = add_document(make_library_collection("other"), is_loaded=False)

    for send_request in REQUESTS:
        other_response = send_request(manager, f"{documents_path(collection)}/{document.pk}")
        missing_response = send_request(manager, f"{documents_path(collection)}/1")
        assert other_response.status_code == 404 and other_response.content == missing_response.content


def test_unreadable_collection_is_404(stranger: KeyCaller, collection: Collection):  # C02
    document = add_document(collection, is_loaded=False)

    for send_request in REQUESTS:
        hidden_response, missing_response = (
            send_request(stranger, document_path(document)),
            send_request(stranger, f"{API_PATH}/1/documents/1"),
        )
        assert hidden_response.status_code == 404 and hidden_response.content == missing_response.content


def test_readers_cannot_change_documents(reader_caller: KeyCaller, collection: Collection):
    document = add_document(collection, is_loaded=False)

    assert [send_request(reader_caller, document_path(document)).status_code for send_request in REQUESTS] == [
        200,
        403,
        403,
        200,
        403,
        403,
    ]


def test_documents_of_a_deleted_collection_are_404(manager: KeyCaller, collection: Collection):
    document = add_document(collection, is_loaded=False)
    manager.delete(f"{API_PATH}/{collection.pk}")

    assert {send_request(manager, document_path(document)).status_code for send_request in REQUESTS} == {404}


@pytest.mark.parametrize("filename", ["cafe\u0301.txt", "caf\u00e9.txt"])
def test_file_name_filter_ignores_unicode_composition(manager: KeyCaller, filename: str):
    document = manager.upload(b"One text.", filename, collection_name="manuals").json()
    list_path = document["status_url"].removeprefix("http://testserver").rpartition("/")[0]

    for name in ("cafe\u0301", "caf\u00e9"):
        assert [document["filename"] for document in manager.get(list_path, filename=name).json()] == ["caf\u00e9.txt"]
    Version.objects.update(filename="cafe\u0301.txt")
    assert len(manager.get(list_path, filename="caf\u00e9").json()) == 1, "a name stored before names were normalized"

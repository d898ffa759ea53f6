"""If-Match under /api/collections prevents changes and deletions of records that have changed."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from collections_app.documents import deletion
from collections_app.http.api import documents
from collections_app.models import Collection, Document, Version
from tests.collections_app.http.calls import API_PATH, KeyCaller, error_of
from tests.collections_app.ingest.processes import another_connection
from tests.collections_app.library import add_document, make_library_collection
from tests.config.stack import eventually

pytestmark = pytest.mark.django_db
MALFORMED_TAGS = ("", "x", '"x', "W/x", '"a",')
BLOCKED_QUERY = "SELECT 1 FROM pg_locks WHERE NOT granted AND %s = ANY(pg_blocking_pids(pid))"


def record_path(record: Collection | Document) -> str:
    if isinstance(record, Collection):
        return f"{API_PATH}/{record.pk}"
    return f"{API_PATH}/{record.collection_id}/documents/{record.pk}"


def if_match(caller: KeyCaller, path: str) -> dict[str, str]:
    return {"If-Match": caller.get(path)["ETag"]}


@pytest.fixture
def collection(manager: KeyCaller) -> Collection:
    return make_library_collection("manuals")


@pytest.fixture
def document(collection: Collection) -> Document:
    return add_document(collection, "Old.", doc_id="one", is_loaded=False)


def exists(path: str, caller: KeyCaller) -> bool:
    return bool(caller.get(path).status_code == 200)


def test_changed_collection_is_not_deleted(manager: KeyCaller, collection: Collection):
    path, etag_headers = record_path(collection), if_match(manager, record_path(collection))
    manager.patch(path, {"alpha": 0.25})

    assert error_of(manager.delete(path, headers=etag_headers))[:2] == (412, "stale") and exists(path, manager)
    for malformed_tag in MALFORMED_TAGS:
        response = manager.delete(path, headers={"If-Match": malformed_tag})
        assert error_of(response) == (400, "invalid_parameter", "If-Match") and exists(path, manager), malformed_tag
    assert manager.delete(path, headers=if_match(manager, path)).status_code == 200 and not exists(path, manager)


def test_changed_document_is_not_deleted(manager: KeyCaller, document: Document):
    path, etag_headers = record_path(document), if_match(manager, record_path(document))
    manager.patch(path, {"metadata": {"n": 2}})

    assert error_of(manager.delete(path, headers=etag_headers))[:2] == (412, "stale") and exists(path, manager)
    for malformed_tag in MALFORMED_TAGS:
        response = manager.delete(path, headers={"If-Match": malformed_tag})
        assert error_of(response) == (400, "invalid_parameter", "If-Match") and exists(path, manager), malformed_tag
    assert manager.delete(path, headers=if_match(manager, path)).status_code == 200 and not exists(path, manager)


def test_wildcard_etag_matches_any_state(manager: KeyCaller, document: Document, collection: Collection):
    for path in (record_path(document), record_path(collection)):
        assert manager.delete(path, headers={"If-Match": "*"}).status_code == 200


def test_changed_content_changes_the_etag(manager: KeyCaller, collection: Collection, document: Document):
    etag_headers = if_match(manager, record_path(document))
    add_document(collection, "New.", doc_id="one", is_loaded=False)

    assert if_match(manager, record_path(document)) != etag_headers
    assert error_of(manager.patch(record_path(document), {"metadata": {"n": 1}}, headers=etag_headers))[:2] == (
        412,
        "stale",
    )
    assert error_of(manager.delete(record_path(document), headers=etag_headers))[:2] == (412, "stale")
    new_etag_headers = if_match(manager, record_path(document))
    assert (
        manager.post(f"{record_path(document)}/reload").status_code == 202
        and if_match(manager, record_path(document)) != new_etag_headers
    )


def test_recreated_document_is_not_deleted(
    manager: KeyCaller, collection: Collection, document: Document, monkeypatch: Any
):
    original_find_document = documents.find_document

    def find_and_delete(*args: Any) -> Document:
        found_document = original_find_document(*args)
        deletion.delete_document(collection, "one")
        add_document(collection, "Another.", doc_id="one", is_loaded=False)
        return found_document

    monkeypatch.setattr(documents, "find_document", find_and_delete)
    assert error_of(manager.delete(record_path(document)))[:2] == (404, "not_found")
    assert Document.objects.filter(doc_id="one", deleted_at=None).exists()


def test_progress_does_not_change_the_etag(manager: KeyCaller, document: Document):
    etag_headers = if_match(manager, record_path(document))
    for state in ("embedding", "failed", "ready"):
        Version.objects.filter(document=document).update(state=state, attempt=3)
        assert if_match(manager, record_path(document)) == etag_headers


@pytest.mark.django_db(transaction=True)
class TestConcurrentChanges:
    """Another user changes the record while the request waits for its lock; the earlier read is then outdated."""

    @staticmethod
    def request_during_change(statements: list[tuple[str, list[Any]]], send_request: Callable[[], Any]) -> Any:
        def send_and_close_connections() -> Any:
            try:
                return send_request()
            finally:
                connections.close_all()

        with another_connection() as blocker, another_connection() as observer, ThreadPoolExecutor(1) as pool:
            with blocker.transaction():
                for statement, parameters in statements:
                    blocker.execute(statement, parameters)
                future = pool.submit(send_and_close_connections)
                eventually(lambda: observer.execute(BLOCKED_QUERY, [blocker.info.backend_pid]).fetchone())
            return future.result()

    @pytest.mark.parametrize("method", ["PATCH", "DELETE"])
    def test_document_is_not_changed(self, manager: KeyCaller, document: Document, method: str):
        etag_headers = if_match(manager, record_path(document))
        statements = [
            ("UPDATE document_version SET metadata = '{\"n\": 2}' WHERE document_id = %s", [document.pk]),
            ("UPDATE document SET updated_at = now() WHERE id = %s", [document.pk]),
        ]
        body = {"metadata": {"n": 3}} if method == "PATCH" else None
        response = self.request_during_change(
            statements, lambda: manager.send(method, record_path(document), body, headers=etag_headers)
        )

        assert error_of(response)[:2] == (412, "stale") and Version.objects.get().metadata == {"n": 2}
        assert exists(record_path(document), manager)

    def test_collection_is_not_deleted(self, manager: KeyCaller, collection: Collection):
        etag_headers = if_match(manager, record_path(collection))
        statement = "UPDATE document_collection SET sys_version = sys_version + 1 WHERE sys_id = %s"
        response = self.request_during_change(
            [(statement, [collection.pk])], lambda: manager.delete(record_path(collection), headers=etag_headers)
        )

        assert error_of(response)[:2] == (412, "stale") and exists(record_path(collection), manager)

"""If-Match under /api/collections prevents changes and deletions of records that have changed."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from collections_app.documents import deletion
from collections_app.http.api import documents
from collections_app.models import Collection, Document, Version
from tests.collections_app.http.calls import MANAGED_PATH, KeyCaller, error_of
from tests.collections_app.ingest.processes import another_connection
from tests.collections_app.library import add_document, make_library_collection
from tests.config.stack import eventually

pytestmark = pytest.mark.django_db
MALFORMED_TAGS = ("", "x", '"x', "W/x", '"a",')
BLOCKED_QUERY = "SELECT 1 FROM pg_locks WHERE NOT granted AND %s = ANY(pg_blocking_pids(pid))"


def collection_path(collection: Collection | Document) -> str:
    if isinstance(collection, Collection):
        return f"{MANAGED_PATH}/{collection.pk}"
    return f"{MANAGED_PATH}/{collection.collection_id}/documents/{collection.pk}"


def etag_of(caller: KeyCaller, path: str) -> dict[str, str]:
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
    path, etag_headers = collection_path(collection), etag_of(manager, collection_path(collection))
    manager.patch(path, {"alpha": 0.25})

    assert error_of(manager.delete(path, headers=etag_headers))[:2] == (412, "stale") and exists(path, manager)
    for malformed in MALFORMED_TAGS:
        response = manager.delete(path, headers={"If-Match": malformed})
        assert error_of(response) == (400, "invalid_parameter", "If-Match") and exists(path, manager), malformed
    assert manager.delete(path, headers=etag_of(manager, path)).status_code == 200 and not exists(path, manager)


def test_changed_document_is_not_deleted(manager: KeyCaller, document: Document):
    path, etag_headers = collection_path(document), etag_of(manager, collection_path(document))
    manager.patch(path, {"metadata": {"n": 2}})

    assert error_of(manager.delete(path, headers=etag_headers))[:2] == (412, "stale") and exists(path, manager)
    for malformed in MALFORMED_TAGS:
        response = manager.delete(path, headers={"If-Match": malformed})
        assert error_of(response) == (400, "invalid_parameter", "If-Match") and exists(path, manager), malformed
    assert manager.delete(path, headers=etag_of(manager, path)).status_code == 200 and not exists(path, manager)


def test_wildcard_etag_matches_any_state(manager: KeyCaller, document: Document, collection: Collection):
    for path in (collection_path(document), collection_path(collection)):
        assert manager.delete(path, headers={"If-Match": "*"}).status_code == 200


def test_changed_content_changes_the_etag(manager: KeyCaller, collection: Collection, document: Document):
    etag_headers = etag_of(manager, collection_path(document))
    add_document(collection, "New.", doc_id="one", is_loaded=False)

    assert etag_of(manager, collection_path(document)) != etag_headers
    assert error_of(manager.patch(collection_path(document), {"metadata": {"n": 1}}, headers=etag_headers))[:2] == (
        412,
        "stale",
    )
    assert error_of(manager.delete(collection_path(document), headers=etag_headers))[:2] == (412, "stale")
    tag_after = etag_of(manager, collection_path(document))
    assert (
        manager.post(f"{collection_path(document)}/reload").status_code == 202
        and etag_of(manager, collection_path(document)) != tag_after
    )


def test_recreated_document_is_not_deleted(
    manager: KeyCaller, collection: Collection, document: Document, monkeypatch: Any
):
    original_find_document = documents.find_document

    def delete_and_find(*arguments: Any) -> Document:
        found_document = original_find_document(*arguments)
        deletion.delete_document(collection, "one")
        add_document(collection, "Another.", doc_id="one", is_loaded=False)
        return found_document

    monkeypatch.setattr(documents, "find_document", delete_and_find)
    assert error_of(manager.delete(collection_path(document)))[:2] == (404, "not_found")
    assert Document.objects.filter(doc_id="one", deleted_at=None).exists()


def test_progress_does_not_change_the_etag(manager: KeyCaller, document: Document):
    etag_headers = etag_of(manager, collection_path(document))
    for state in ("embedding", "failed", "ready"):
        Version.objects.filter(document=document).update(state=state, attempt=3)
        assert etag_of(manager, collection_path(document)) == etag_headers


@pytest.mark.django_db(transaction=True)
class TestConcurrentChanges:
    """Another user changes the record while the request waits for its lock; the earlier read is then outdated."""

    @staticmethod
    def request_during_change(statements: list[tuple[str, list[Any]]], request: Callable[[], Any]) -> Any:
        def send() -> Any:
            try:
                return request()
            finally:
                connections.close_all()

        with another_connection() as link, another_connection() as watch, ThreadPoolExecutor(1) as pool:
            with link.transaction():
                for statement, values in statements:
                    link.execute(statement, values)
                future = pool.submit(send)
                eventually(lambda: watch.execute(BLOCKED_QUERY, [link.info.backend_pid]).fetchone())
            return future.result()

    @pytest.mark.parametrize("method", ["PATCH", "DELETE"])
    def test_document(self, manager: KeyCaller, document: Document, method: str):
        etag_headers = etag_of(manager, collection_path(document))
        statements = [
            ("UPDATE document_version SET metadata = '{\"n\": 2}' WHERE document_id = %s", [document.pk]),
            ("UPDATE document SET updated_at = now() WHERE id = %s", [document.pk]),
        ]
        body = {"metadata": {"n": 3}} if method == "PATCH" else None
        response = self.request_during_change(
            statements, lambda: manager.send(method, collection_path(document), body, headers=etag_headers)
        )

        assert error_of(response)[:2] == (412, "stale") and Version.objects.get().metadata == {"n": 2}
        assert exists(collection_path(document), manager)

    def test_collection(self, manager: KeyCaller, collection: Collection):
        etag_headers = etag_of(manager, collection_path(collection))
        statement = "UPDATE document_collection SET sys_version = sys_version + 1 WHERE sys_id = %s"
        response = self.request_during_change(
            [(statement, [collection.pk])], lambda: manager.delete(collection_path(collection), headers=etag_headers)
        )

        assert error_of(response)[:2] == (412, "stale") and exists(collection_path(collection), manager)

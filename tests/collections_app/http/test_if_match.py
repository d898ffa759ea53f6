"""If-Match under /api/collections: nobody changes or deletes a state that they have not seen."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from collections_app.documents import deletion
from collections_app.http.api import documents
from collections_app.models import Collection, Document, Version
from tests.collections_app.http.calls import MANAGED, Caller, failed
from tests.collections_app.ingest.processes import another_connection
from tests.collections_app.library import add, make
from tests.config.stack import eventually

pytestmark = pytest.mark.django_db
MALFORMED = ("", "x", '"x', "W/x", '"a",')
BLOCKED = "SELECT 1 FROM pg_locks WHERE NOT granted AND %s = ANY(pg_blocking_pids(pid))"


def of(found: Collection | Document) -> str:
    if isinstance(found, Collection):
        return f"{MANAGED}/{found.pk}"
    return f"{MANAGED}/{found.collection_id}/documents/{found.pk}"


def tag(caller: Caller, path: str) -> dict[str, str]:
    return {"If-Match": caller.get(path)["ETag"]}


@pytest.fixture
def place(manager: Caller) -> Collection:
    return make("manuals")


@pytest.fixture
def document(place: Collection) -> Document:
    return add(place, "Old.", doc_id="one", is_loaded=False)


def is_there(path: str, caller: Caller) -> bool:
    return bool(caller.get(path).status_code == 200)


def test_changed_collection_is_not_deleted(manager: Caller, place: Collection):
    path, actual = of(place), tag(manager, of(place))
    manager.patch(path, {"alpha": 0.25})

    assert failed(manager.delete(path, headers=actual))[:2] == (412, "stale") and is_there(path, manager)
    for malformed in MALFORMED:
        response = manager.delete(path, headers={"If-Match": malformed})
        assert failed(response) == (400, "invalid_parameter", "If-Match") and is_there(path, manager), malformed
    assert manager.delete(path, headers=tag(manager, path)).status_code == 200 and not is_there(path, manager)


def test_changed_document_is_not_deleted(manager: Caller, document: Document):
    path, actual = of(document), tag(manager, of(document))
    manager.patch(path, {"metadata": {"n": 2}})

    assert failed(manager.delete(path, headers=actual))[:2] == (412, "stale") and is_there(path, manager)
    for malformed in MALFORMED:
        response = manager.delete(path, headers={"If-Match": malformed})
        assert failed(response) == (400, "invalid_parameter", "If-Match") and is_there(path, manager), malformed
    assert manager.delete(path, headers=tag(manager, path)).status_code == 200 and not is_there(path, manager)


def test_wildcard_matches_any_state(manager: Caller, document: Document, place: Collection):
    for path in (of(document), of(place)):
        assert manager.delete(path, headers={"If-Match": "*"}).status_code == 200


def test_changed_content_changes_the_etag(manager: Caller, place: Collection, document: Document):
    actual = tag(manager, of(document))
    add(place, "New.", doc_id="one", is_loaded=False)

    assert tag(manager, of(document)) != actual
    assert failed(manager.patch(of(document), {"metadata": {"n": 1}}, headers=actual))[:2] == (412, "stale")
    assert failed(manager.delete(of(document), headers=actual))[:2] == (412, "stale")
    again = tag(manager, of(document))
    assert manager.post(f"{of(document)}/reload").status_code == 202 and tag(manager, of(document)) != again


def test_recreated_document_is_not_deleted(manager: Caller, place: Collection, document: Document, monkeypatch: Any):
    result = documents.find_document

    def find_just_before(*asked: Any) -> Document:
        there = result(*asked)
        deletion.delete_document(place, "one")
        add(place, "Another.", doc_id="one", is_loaded=False)
        return there

    monkeypatch.setattr(documents, "find_document", find_just_before)
    assert failed(manager.delete(of(document)))[:2] == (404, "not_found")
    assert Document.objects.filter(doc_id="one", deleted_at=None).exists()


def test_progress_does_not_change_the_etag(manager: Caller, document: Document):
    actual = tag(manager, of(document))
    for state in ("embedding", "failed", "ready"):
        Version.objects.filter(document=document).update(state=state, attempt=3)
        assert tag(manager, of(document)) == actual


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    """Somebody changes it while the request waits for its lock: what was read before is not what is there."""

    @staticmethod
    def while_changed(statements: list[tuple[str, list[Any]]], request: Callable[[], Any]) -> Any:
        def send() -> Any:
            try:
                return request()
            finally:
                connections.close_all()

        with another_connection() as link, another_connection() as watch, ThreadPoolExecutor(1) as pool:
            with link.transaction():
                for statement, values in statements:
                    link.execute(statement, values)
                sent = pool.submit(send)
                eventually(lambda: watch.execute(BLOCKED, [link.info.backend_pid]).fetchone())
            return sent.result()

    @pytest.mark.parametrize("method", ["PATCH", "DELETE"])
    def test_document(self, manager: Caller, document: Document, method: str):
        actual = tag(manager, of(document))
        change = [
            ("UPDATE document_version SET metadata = '{\"n\": 2}' WHERE document_id = %s", [document.pk]),
            ("UPDATE document SET updated_at = now() WHERE id = %s", [document.pk]),
        ]
        body = {"metadata": {"n": 3}} if method == "PATCH" else None
        response = self.while_changed(change, lambda: manager.send(method, of(document), body, headers=actual))

        assert failed(response)[:2] == (412, "stale") and Version.objects.get().metadata == {"n": 2}
        assert is_there(of(document), manager)

    def test_collection(self, manager: Caller, place: Collection):
        actual = tag(manager, of(place))
        change = "UPDATE document_collection SET sys_version = sys_version + 1 WHERE sys_id = %s"
        response = self.while_changed([(change, [place.pk])], lambda: manager.delete(of(place), headers=actual))

        assert failed(response)[:2] == (412, "stale") and is_there(of(place), manager)

"""A collection or a document is deleted in the middle of a load, before each statement of it in turn."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from accounts.models import User
from collections_app import tasks
from collections_app.documents import deletion
from collections_app.models import Collection, Version
from collections_app.queue import worker_signals
from tests.collections_app.http.calls import DELETE, DELETE_DOCUMENT, LOAD_TEXT, Caller, by_key
from tests.collections_app.ingest.world import counted, rows, text, work
from tests.tableapi.test_write_concurrency import beside, result, settle

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = text(12)
# Before which statement of a load. Those of every run are in each step.
MOMENTS = [5, 14, 24, 35]
OTHERS = [moment for moment in range(1, 70) if moment not in MOMENTS]
WAYS: dict[str, Callable[[Caller], Any]] = {
    "collection": lambda manager: manager.delete(DELETE, collection_name="manuals"),
    "document": lambda manager: manager.delete(DELETE_DOCUMENT, collection_name="manuals", id_value="x"),
}


@pytest.fixture
def manager(transactional_db: Any, carl: User, monkeypatch: Any) -> Caller:
    for name in ("request_processing", "request_purge"):
        monkeypatch.setattr(worker_signals, name, lambda: None)
    return by_key(carl)


@contextmanager
def before_statement(number: int, act: Callable[[], Any]) -> Iterator[list[Any]]:
    """Another connection acts before this statement; the load goes on when it has ended or waits for the load."""
    execute, count = psycopg.Cursor.execute, 0
    running: list[Any] = []

    def counting(cursor: Any, *positional: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        if count == number and not running:
            running.append(None)
            with pytest.MonkeyPatch.context() as right:
                right.setattr(psycopg.Cursor, "execute", execute)
                running[0] = beside(act)
                settle(running[0])
        return execute(cursor, *positional, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(psycopg.Cursor, "execute", counting)
        yield running


def check_nothing_remains() -> None:
    """Nor is there anything left to do."""
    work()
    tasks.sweep()
    while deletion.purge_deleted(float("inf")):
        pass
    assert not deletion.is_purge_due()


def load(manager: Caller, **more: Any) -> Any:
    return manager.post(LOAD_TEXT, {"text": TEXT, "doc_id": "x", **more}, collection_name="manuals")


def nightly(moments: list[int]) -> list[Any]:
    return [*moments, *(pytest.param(moment, marks=pytest.mark.nightly) for moment in OTHERS)]


@pytest.mark.parametrize("what", WAYS)
@pytest.mark.parametrize("moment", nightly(MOMENTS))
def test_load_in_a_request(manager: Caller, what: str, moment: int):
    assert load(manager).status_code == 201
    with before_statement(moment, lambda: WAYS[what](manager)) as running:
        response = load(manager, text=TEXT.upper(), on_duplicate="replace")
    check(manager, response, running, what, moment)


@pytest.mark.parametrize("what", WAYS)
@pytest.mark.parametrize("moment", nightly(MOMENTS))
def test_load_in_a_worker(manager: Caller, what: str, moment: int):
    assert load(manager, wait=False).status_code == 202
    with before_statement(moment, lambda: WAYS[what](manager)) as running:
        work()
    check(manager, None, running, what, moment)


def check(manager: Caller, response: Any, running: list[Any], what: str, moment: int) -> None:
    assert running or moment not in MOMENTS, "the load has fewer statements"
    if running:
        assert result(running[0]).status_code == 200
    if response is not None:
        assert response.status_code in (200, 201, 404, 409), response.content
    assert not Version.objects.filter(is_searched=True, document__deleted_at__isnull=False).exists()
    check_nothing_remains()
    if what == "collection" and running and Collection.objects.exists():
        # The load made the collection again, after it was deleted.
        assert response is not None and response.status_code in (200, 201)
    for way in WAYS if Collection.objects.exists() else ():
        if way == "collection" or counted()["document"]:
            assert WAYS[way](manager).status_code in (200, 404)
    check_nothing_remains()
    if not Collection.objects.exists():
        assert set(counted().values()) == {0} and rows("SELECT * FROM term_count") == []

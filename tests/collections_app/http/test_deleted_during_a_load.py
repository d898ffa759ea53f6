"""A collection or document is deleted during a load, before each statement of the load in turn."""

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
from tests.collections_app.http.calls import (
    DELETE_COLLECTION_PATH,
    DELETE_DOCUMENT_PATH,
    LOAD_TEXT_PATH,
    KeyCaller,
    make_key_caller,
)
from tests.collections_app.ingest.world import fetch_rows, process_queue, row_counts, sample_text
from tests.tableapi.test_write_concurrency import result_of, run_in_thread, waits_for_lock

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = sample_text(12)
# The deletion runs before the statement with this number.
STATEMENT_NUMBERS = [5, 14, 24, 35]
NIGHTLY_STATEMENT_NUMBERS = [number for number in range(1, 70) if number not in STATEMENT_NUMBERS]
DELETIONS: dict[str, Callable[[KeyCaller], Any]] = {
    "collection": lambda manager: manager.delete(DELETE_COLLECTION_PATH, collection_name="manuals"),
    "document": lambda manager: manager.delete(DELETE_DOCUMENT_PATH, collection_name="manuals", id_value="x"),
}


@pytest.fixture
def manager(transactional_db: Any, carl: User, monkeypatch: Any) -> KeyCaller:
    for name in ("request_processing", "request_purge"):
        monkeypatch.setattr(worker_signals, name, lambda: None)
    return make_key_caller(carl)


@contextmanager
def run_before_statement(statement_number: int, interrupt: Callable[[], Any]) -> Iterator[list[Any]]:
    """Runs `interrupt` on another connection before this statement, until it ends or waits for the load."""
    original_execute, statement_count = psycopg.Cursor.execute, 0
    interruptions: list[Any] = []

    def execute_and_count(cursor: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal statement_count
        statement_count += 1
        if statement_count == statement_number and not interruptions:
            interruptions.append(None)
            with pytest.MonkeyPatch.context() as original_patch:
                original_patch.setattr(psycopg.Cursor, "execute", original_execute)
                interruptions[0] = run_in_thread(interrupt)
                waits_for_lock(interruptions[0])
        return original_execute(cursor, *args, **kwargs)

    with pytest.MonkeyPatch.context() as counting_patch:
        counting_patch.setattr(psycopg.Cursor, "execute", execute_and_count)
        yield interruptions


def check_nothing_remains() -> None:
    """Processes and purges everything; checks that no purge is due afterwards."""
    process_queue()
    tasks.sweep()
    while deletion.purge_deleted(float("inf")):
        pass
    assert not deletion.is_purge_due()


def load_document(manager: KeyCaller, **body_fields: Any) -> Any:
    return manager.post(LOAD_TEXT_PATH, {"text": TEXT, "doc_id": "x", **body_fields}, collection_name="manuals")


def statement_number_params() -> list[Any]:
    nightly_params = (pytest.param(number, marks=pytest.mark.nightly) for number in NIGHTLY_STATEMENT_NUMBERS)
    return [*STATEMENT_NUMBERS, *nightly_params]


@pytest.mark.parametrize("deletion_name", DELETIONS)
@pytest.mark.parametrize("number", statement_number_params())
def test_deletion_during_a_load_in_a_request_leaves_nothing(manager: KeyCaller, deletion_name: str, number: int):
    assert load_document(manager).status_code == 201
    with run_before_statement(number, lambda: DELETIONS[deletion_name](manager)) as interruptions:
        response = load_document(manager, text=TEXT.upper(), on_duplicate="replace")
    check_load(manager, response, interruptions, deletion_name, number)


@pytest.mark.parametrize("deletion_name", DELETIONS)
@pytest.mark.parametrize("number", statement_number_params())
def test_deletion_during_a_load_in_a_worker_leaves_nothing(manager: KeyCaller, deletion_name: str, number: int):
    assert load_document(manager, wait=False).status_code == 202
    with run_before_statement(number, lambda: DELETIONS[deletion_name](manager)) as interruptions:
        process_queue()
    check_load(manager, None, interruptions, deletion_name, number)


def check_load(manager: KeyCaller, response: Any, interruptions: list[Any], deletion_name: str, number: int) -> None:
    assert interruptions or number not in STATEMENT_NUMBERS, "the load has fewer statements"
    if interruptions:
        assert result_of(interruptions[0]).status_code == 200
    if response is not None:
        assert response.status_code in (200, 201, 404, 409), response.content
    assert not Version.objects.filter(is_searched=True, document__deleted_at__isnull=False).exists()
    check_nothing_remains()
    if deletion_name == "collection" and interruptions and Collection.objects.exists():
        # The load created the collection again after its deletion.
        assert response is not None and response.status_code in (200, 201)
    for name in DELETIONS if Collection.objects.exists() else ():
        if name == "collection" or row_counts()["document"]:
            assert DELETIONS[name](manager).status_code in (200, 404)
    check_nothing_remains()
    if not Collection.objects.exists():
        assert set(row_counts().values()) == {0} and fetch_rows("SELECT * FROM term_count") == []

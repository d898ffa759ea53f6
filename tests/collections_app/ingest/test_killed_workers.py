"""Workers are killed or paused at each step; the result is the same as without an interruption."""

import signal
from typing import Any

import pytest
from celery import current_app

from collections_app.documents import deletion
from collections_app.models import Collection, Version
from collections_app.queue import leases
from tests.collections_app.builders import make_collection
from tests.collections_app.ingest.processes import (
    CELERY_SCRIPT,
    QUEUE_NAME,
    another_connection,
    block_writes,
    running_worker,
    wait_for_blocked_connection,
    wait_until_gone,
)
from tests.collections_app.ingest.world import (
    chunk_rows,
    expire_leases,
    fetch_rows,
    process_queue,
    row_counts,
    sample_text,
    store_document,
    wrong_term_counts,
)
from tests.config.stack import eventually

pytestmark = pytest.mark.django_db(transaction=True)

# More than one batch of vectors.
LONG_TEXT = sample_text(1200).encode()
# The table that each step writes to, and the state of the version at that step.
STEPS = (
    ("document_text", "extracting"),
    pytest.param("chunk", "splitting", marks=pytest.mark.nightly),
    ("chunk_words", "splitting"),
    pytest.param("chunk_vector", "embedding", marks=pytest.mark.nightly),
    ("term_count", "embedding"),
)
BLOCK_LATER_BATCHES = """
CREATE FUNCTION of_test() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT number FROM chunk WHERE id = NEW.chunk_id) >= 300 THEN PERFORM pg_advisory_xact_lock(4711); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER of_test BEFORE INSERT ON chunk_vector FOR EACH ROW EXECUTE FUNCTION of_test()
"""


@pytest.fixture
def expected_rows(collection: Collection) -> list[Any]:
    """The stored rows of the long document without an interruption."""
    undisturbed_collection = make_collection("undisturbed", text_configuration="english")
    Collection.objects.update(text_configuration="english")
    store_document(undisturbed_collection, LONG_TEXT)
    assert process_queue() == 1
    return chunk_rows(Version.objects.get(collection=undisturbed_collection))


def assert_same_as_without_interruption(version: Version, expected_rows: list[Any], attempt: int) -> None:
    version.refresh_from_db()
    assert (version.state, version.is_searched, version.error, version.lease_token) == ("ready", True, "", None)
    assert chunk_rows(version) == expected_rows
    assert (
        row_counts()["chunk"] == row_counts()["chunk_words"] == row_counts()["chunk_vector"] == 2 * len(expected_rows)
    )
    assert wrong_term_counts(version.collection) == []


@pytest.mark.parametrize(("table", "state"), STEPS)
def test_another_worker_resumes_after_a_kill_at_any_step(
    collection: Collection, expected_rows: list[Any], table: str, state: str
):  # C33
    version = store_document(collection, LONG_TEXT).version
    with block_writes(table), running_worker() as first_worker:
        blocked_pid = wait_for_blocked_connection()
        first_worker.kill()
    wait_until_gone(blocked_pid)
    version.refresh_from_db()
    assert (version.state, version.is_searched) == (state, False)
    assert leases.take_next_lease() is None  # its lease has not expired
    expire_leases()
    assert process_queue() == 1
    assert_same_as_without_interruption(version, expected_rows, 2)


def test_stored_vectors_stay_after_a_kill_between_batches(collection: Collection, expected_rows: list[Any]):  # C33
    version = store_document(collection, LONG_TEXT).version
    with another_connection() as blocker:
        blocker.execute(BLOCK_LATER_BATCHES)
        try:
            blocker.execute("SELECT pg_advisory_lock(4711)")
            with running_worker() as first_worker:
                blocked_pid = wait_for_blocked_connection()
                first_worker.kill()
        finally:
            blocker.execute("SELECT pg_advisory_unlock(4711)")
            wait_until_gone(blocked_pid)
            blocker.execute("DROP FUNCTION of_test CASCADE")
    stored_chunk_ids = fetch_rows("SELECT chunk_id FROM chunk_vector WHERE version_id = %s", version.pk)
    assert 0 < len(stored_chunk_ids) < len(expected_rows)
    expire_leases()
    assert process_queue() == 1
    assert_same_as_without_interruption(version, expected_rows, 2)


def test_worker_paused_beyond_its_lease_stores_nothing(collection: Collection, expected_rows: list[Any]):  # C34
    slow_document = "".join(f"<p>{number}</p>" for number in range(8_000)).encode()
    version = store_document(collection, slow_document, format="html", filename="a.html").version
    with running_worker() as paused_worker:
        eventually(lambda: Version.objects.get(pk=version.pk).state == "extracting")
        paused_worker.send_signal(signal.SIGSTOP)
        expire_leases()
        assert process_queue() == 1
        rows_before = Version.objects.values().get(pk=version.pk), chunk_rows(version), row_counts()
        assert rows_before[0]["state"] == "ready"
        paused_worker.send_signal(signal.SIGCONT)
        paused_worker.wait()
        assert (paused_worker.process.returncode, "Traceback" in paused_worker.output) == (0, False)
    assert (Version.objects.values().get(pk=version.pk), chunk_rows(version), row_counts()) == rows_before


def test_worker_paused_within_a_transaction_continues(collection: Collection, expected_rows: list[Any]):
    version = store_document(collection, LONG_TEXT).version
    with running_worker() as paused_worker:
        with block_writes("chunk"):
            wait_for_blocked_connection()
            paused_worker.send_signal(signal.SIGSTOP)
        assert leases.take_next_lease() is None
        paused_worker.send_signal(signal.SIGCONT)
        paused_worker.wait()
    assert_same_as_without_interruption(version, expected_rows, 1)


def test_document_deleted_during_processing_leaves_nothing(collection: Collection, expected_rows: list[Any]):  # C42
    counts_before = row_counts()
    store_document(collection, LONG_TEXT, doc_id="x")
    with running_worker() as worker:
        with block_writes("chunk"):
            wait_for_blocked_connection()
            assert deletion.delete_document(collection, "x") == 0
        worker.wait()
        assert (worker.process.returncode, "Traceback" in worker.output) == (0, False)
    while deletion.purge_deleted(1e12):
        pass
    assert row_counts() == counts_before
    assert fetch_rows("SELECT 1 FROM term_count WHERE collection_id = %s", collection.pk) == []


def test_worker_that_shuts_down_returns_its_lease(collection: Collection, expected_rows: list[Any]):
    version = store_document(collection, LONG_TEXT).version
    with running_worker(*CELERY_SCRIPT) as celery_worker:
        with block_writes("chunk"):
            current_app.send_task("collections_app.tasks.work", queue=QUEUE_NAME)
            wait_for_blocked_connection()
            celery_worker.process.send_signal(signal.SIGTERM)
            eventually(lambda: "Warm shutdown" in celery_worker.output)
        celery_worker.wait()
    version.refresh_from_db()
    assert (version.state, version.lease_token, version.attempt) == ("embedding", None, 0)
    assert process_queue() == 1
    assert_same_as_without_interruption(version, expected_rows, 1)

"""Workers killed or paused at each step: another resumes, and the result is the same as without the interruption."""

import signal
from typing import Any

import pytest
from celery import current_app

from collections_app.documents import deletion
from collections_app.models import Collection, Version
from collections_app.queue import leases
from tests.collections_app.builders import make_collection
from tests.collections_app.ingest.processes import (
    CELERY,
    QUEUE,
    another_connection,
    block_writes,
    wait_for_blocked_connection,
    wait_until_gone,
    worker,
)
from tests.collections_app.ingest.world import (
    accept,
    chunks,
    counted,
    expire_leases,
    rows,
    text,
    work,
    wrong_counts,
)
from tests.config.stack import eventually

pytestmark = pytest.mark.django_db(transaction=True)

# Over one batch of vectors.
LONG = text(1200).encode()
# What a worker writes to at each step, with the state that it is in then.
STEPS = (
    ("document_text", "extracting"),
    pytest.param("chunk", "splitting", marks=pytest.mark.nightly),
    ("chunk_words", "splitting"),
    pytest.param("chunk_vector", "embedding", marks=pytest.mark.nightly),
    ("term_count", "embedding"),
)
LATER_BATCH = """
CREATE FUNCTION of_test() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT number FROM chunk WHERE id = NEW.chunk_id) >= 300 THEN PERFORM pg_advisory_xact_lock(4711); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER of_test BEFORE INSERT ON chunk_vector FOR EACH ROW EXECUTE FUNCTION of_test()
"""


@pytest.fixture
def expected_rows(collection: Collection) -> list[Any]:
    """The stored rows of the long document without an interruption."""
    elsewhere = make_collection("undisturbed", text_configuration="english")
    Collection.objects.update(text_configuration="english")
    accept(elsewhere, LONG)
    assert work() == 1
    return chunks(Version.objects.get(collection=elsewhere))


def assert_same_as_without_interruption(version: Version, expected_rows: list[Any], attempt: int) -> None:
    version.refresh_from_db()
    assert (version.state, version.is_searched, version.error, version.lease_token) == ("ready", True, "", None)
    assert chunks(version) == expected_rows
    assert counted()["chunk"] == counted()["chunk_words"] == counted()["chunk_vector"] == 2 * len(expected_rows)
    assert wrong_counts(version.collection) == []


@pytest.mark.parametrize(("table", "state"), STEPS)
def test_another_worker_resumes_after_a_kill_at_any_step(
    collection: Collection, expected_rows: list[Any], table: str, state: str
):  # C33
    version = accept(collection, LONG).version
    with block_writes(table), worker() as first:
        waiting = wait_for_blocked_connection()
        first.kill()
    wait_until_gone(waiting)
    version.refresh_from_db()
    assert (version.state, version.is_searched) == (state, False)
    assert leases.take_next_lease() is None  # its lease has not run out
    expire_leases()
    assert work() == 1
    assert_same_as_without_interruption(version, expected_rows, 2)


def test_stored_vectors_stay_after_a_kill_between_batches(collection: Collection, expected_rows: list[Any]):  # C33
    version = accept(collection, LONG).version
    with another_connection() as link:
        link.execute(LATER_BATCH)
        try:
            link.execute("SELECT pg_advisory_lock(4711)")
            with worker() as first:
                waiting = wait_for_blocked_connection()
                first.kill()
        finally:
            link.execute("SELECT pg_advisory_unlock(4711)")
            wait_until_gone(waiting)
            link.execute("DROP FUNCTION of_test CASCADE")
    chunk_ids = rows("SELECT chunk_id FROM chunk_vector WHERE version_id = %s", version.pk)
    assert 0 < len(chunk_ids) < len(expected_rows)
    expire_leases()
    assert work() == 1
    assert_same_as_without_interruption(version, expected_rows, 2)


def test_worker_paused_past_its_lease_stores_nothing_more(collection: Collection, expected_rows: list[Any]):  # C34
    slow = "".join(f"<p>{number}</p>" for number in range(8_000)).encode()
    version = accept(collection, slow, format="html", filename="a.html").version
    with worker() as zombie:
        eventually(lambda: Version.objects.get(pk=version.pk).state == "extracting")
        zombie.send(signal.SIGSTOP)
        expire_leases()
        assert work() == 1
        before = Version.objects.values().get(pk=version.pk), chunks(version), counted()
        assert before[0]["state"] == "ready"
        zombie.send(signal.SIGCONT)
        zombie.wait()
        assert (zombie.process.returncode, "Traceback" in zombie.output) == (0, False)
    assert (Version.objects.values().get(pk=version.pk), chunks(version), counted()) == before


def test_worker_paused_within_a_transaction_continues(collection: Collection, expected_rows: list[Any]):
    version = accept(collection, LONG).version
    with worker() as paused:
        with block_writes("chunk"):
            wait_for_blocked_connection()
            paused.send(signal.SIGSTOP)
        assert leases.take_next_lease() is None
        paused.send(signal.SIGCONT)
        paused.wait()
    assert_same_as_without_interruption(version, expected_rows, 1)


def test_document_deleted_during_processing_leaves_nothing(collection: Collection, expected_rows: list[Any]):  # C42
    before = counted()
    accept(collection, LONG, doc_id="x")
    with worker() as working:
        with block_writes("chunk"):
            wait_for_blocked_connection()
            assert deletion.delete_document(collection, "x") == 0
        working.wait()
        assert (working.process.returncode, "Traceback" in working.output) == (0, False)
    while deletion.purge_deleted(1e12):
        pass
    assert counted() == before
    assert rows("SELECT 1 FROM term_count WHERE collection_id = %s", collection.pk) == []


def test_worker_that_shuts_down_returns_its_lease(collection: Collection, expected_rows: list[Any]):
    version = accept(collection, LONG).version
    with worker(*CELERY) as celery:
        with block_writes("chunk"):
            current_app.send_task("collections_app.tasks.work", queue=QUEUE)
            wait_for_blocked_connection()
            celery.process.send_signal(signal.SIGTERM)
            eventually(lambda: "Warm shutdown" in celery.output)
        celery.wait()
    version.refresh_from_db()
    assert (version.state, version.lease_token, version.attempt) == ("embedding", None, 0)
    assert work() == 1
    assert_same_as_without_interruption(version, expected_rows, 1)

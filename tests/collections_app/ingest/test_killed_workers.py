"""Workers that are killed or paused at each step: another resumes, and what it stores is as if nothing had happened."""

import signal
from typing import Any

import pytest
from celery import current_app

from collections_app.documents import deletion
from collections_app.models import Collection, Version
from collections_app.queue import leases
from tests.collections_app.conftest import make_collection
from tests.collections_app.ingest.processes import (
    CELERY,
    QUEUE,
    another_connection,
    nobody_writes,
    wait_for_one_that_waits,
    wait_until_gone,
    worker,
)
from tests.collections_app.ingest.world import (
    accept,
    chunks,
    counted,
    let_leases_run_out,
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
def undisturbed(collection: Collection) -> list[Any]:
    """What is stored of the long document when nothing happens."""
    elsewhere = make_collection("undisturbed", text_configuration="english")
    Collection.objects.update(text_configuration="english")
    accept(elsewhere, LONG)
    assert work() == 1
    return chunks(Version.objects.get(collection=elsewhere))


def is_as_if_nothing_had_happened(version: Version, undisturbed: list[Any], attempt: int) -> None:
    version.refresh_from_db()
    assert (version.state, version.is_searched, version.error, version.lease_token) == ("ready", True, "", None)
    assert chunks(version) == undisturbed
    assert counted()["chunk"] == counted()["chunk_words"] == counted()["chunk_vector"] == 2 * len(undisturbed)
    assert wrong_counts(version.collection) == []


@pytest.mark.parametrize(("table", "state"), STEPS)
def test_killed_at_a_step_another_resumes(
    collection: Collection, undisturbed: list[Any], table: str, state: str
):  # C33
    version = accept(collection, LONG).version
    with nobody_writes(table), worker() as first:
        waiting = wait_for_one_that_waits()
        first.kill()
    wait_until_gone(waiting)
    version.refresh_from_db()
    assert (version.state, version.is_searched) == (state, False)
    assert leases.take_next() is None  # its lease has not run out
    let_leases_run_out()
    assert work() == 1
    is_as_if_nothing_had_happened(version, undisturbed, 2)


def test_killed_between_batches_what_is_embedded_stays(collection: Collection, undisturbed: list[Any]):  # C33
    version = accept(collection, LONG).version
    with another_connection() as link:
        link.execute(LATER_BATCH)
        try:
            link.execute("SELECT pg_advisory_lock(4711)")
            with worker() as first:
                waiting = wait_for_one_that_waits()
                first.kill()
        finally:
            link.execute("SELECT pg_advisory_unlock(4711)")
            wait_until_gone(waiting)
            link.execute("DROP FUNCTION of_test CASCADE")
    kept = rows("SELECT chunk_id FROM chunk_vector WHERE version_id = %s", version.pk)
    assert 0 < len(kept) < len(undisturbed)
    let_leases_run_out()
    assert work() == 1
    is_as_if_nothing_had_happened(version, undisturbed, 2)


def test_paused_past_its_lease_it_stores_nothing_more(collection: Collection, undisturbed: list[Any]):  # C34
    slow = "".join(f"<p>{number}</p>" for number in range(8_000)).encode()
    version = accept(collection, slow, format="html", filename="a.html").version
    with worker() as zombie:
        eventually(lambda: Version.objects.get(pk=version.pk).state == "extracting")
        zombie.send(signal.SIGSTOP)
        let_leases_run_out()
        assert work() == 1
        before = Version.objects.values().get(pk=version.pk), chunks(version), counted()
        assert before[0]["state"] == "ready"
        zombie.send(signal.SIGCONT)
        zombie.wait()
        assert (zombie.process.returncode, "Traceback" in zombie.said) == (0, False)
    assert (Version.objects.values().get(pk=version.pk), chunks(version), counted()) == before


def test_paused_within_a_transaction_it_goes_on(collection: Collection, undisturbed: list[Any]):
    version = accept(collection, LONG).version
    with worker() as paused:
        with nobody_writes("chunk"):
            wait_for_one_that_waits()
            paused.send(signal.SIGSTOP)
        assert leases.take_next() is None
        paused.send(signal.SIGCONT)
        paused.wait()
    is_as_if_nothing_had_happened(version, undisturbed, 1)


def test_deleted_while_a_worker_is_in_the_middle_of_it(collection: Collection, undisturbed: list[Any]):  # C42
    before = counted()
    accept(collection, LONG, doc_id="x")
    with worker() as working:
        with nobody_writes("chunk"):
            wait_for_one_that_waits()
            assert deletion.delete_document(collection, "x") == 0
        working.wait()
        assert (working.process.returncode, "Traceback" in working.said) == (0, False)
    while deletion.purge(1e12):
        pass
    assert counted() == before
    assert rows("SELECT 1 FROM term_count WHERE collection_id = %s", collection.pk) == []


def test_told_to_stop_a_worker_hands_back_what_it_holds(collection: Collection, undisturbed: list[Any]):
    version = accept(collection, LONG).version
    with worker(*CELERY) as celery:
        with nobody_writes("chunk"):
            current_app.send_task("collections_app.tasks.work", queue=QUEUE)
            wait_for_one_that_waits()
            celery.process.send_signal(signal.SIGTERM)
            eventually(lambda: "Warm shutdown" in celery.said)
        celery.wait()
    version.refresh_from_db()
    assert (version.state, version.lease_token, version.attempt) == ("embedding", None, 0)
    assert work() == 1
    is_as_if_nothing_had_happened(version, undisturbed, 1)

"""The queue: order, leases and retries."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from django.db import connections

from collections_app import tasks
from collections_app.ingest import worker
from collections_app.models import Collection, Version
from collections_app.models.documents import VersionState
from collections_app.queue import leases
from collections_app.queue.leases import LeaseLost
from tests.collections_app.builders import make_collection
from tests.collections_app.ingest.processes import another_connection
from tests.collections_app.ingest.world import (
    chunk_rows,
    end_pauses,
    expire_leases,
    fetch_rows,
    process_queue,
    sample_text,
    store_document,
)

pytestmark = pytest.mark.django_db


def leased_ids(max_count: int = 1000) -> list[int]:
    """The versions in the order in which one worker leases them."""
    owner = ""
    version_ids: list[int] = []
    while len(version_ids) < max_count and (lease := leases.take_next_lease(owner)):
        owner = lease.owner
        version_ids.append(lease.version_id)
    return version_ids


class TestOrder:
    def test_oldest_version_is_leased_first(self, collection: Collection):
        version_ids = [store_document(collection, b"%d" % number).version.pk for number in range(3)]
        assert leased_ids() == version_ids

    def test_many_files_of_one_owner_do_not_delay_another(self, collection: Collection):  # C46
        for number in range(50):
            store_document(collection, b"%d" % number, user_id="flooder")
        for owner in ("early", "late"):
            version_id = store_document(collection, owner.encode(), user_id=owner).version.pk
            assert version_id in leased_ids(3)

    @pytest.mark.parametrize("previous_owner", ["", "a", "flooder", "flooders", "z"])
    def test_all_versions_are_leased_after_any_previous_owner(self, collection: Collection, previous_owner: str):  # C46
        for owner in ("flooder", "x", "", "flooder", "flooder"):
            store_document(collection, repr((owner, Version.objects.count())).encode(), user_id=owner)
        served_owners = [previous_owner]
        for _ in range(3):
            lease = leases.take_next_lease(served_owners[-1])
            assert lease is not None
            served_owners.append(lease.owner)
        assert sorted(served_owners[1:]) == ["", "flooder", "x"]

    def test_leased_finished_failed_and_postponed_versions_are_skipped(self, collection: Collection):
        store_document(collection, b"held", takes_lease=True)
        finished_result = store_document(collection, b"done", takes_lease=True)
        worker.process_in_request(finished_result)
        failed_result = store_document(collection, b"broken", format="pdf", takes_lease=True)
        worker.process_in_request(failed_result)
        postponed_version = store_document(collection, b"later").version
        Version.objects.filter(pk=postponed_version.pk).update(
            next_at="2999-01-01T00:00Z", error_code="provider_unavailable"
        )
        assert (leased_ids(), leases.due_versions().count()) == ([], 0)

    def test_expired_lease_can_be_taken(self, collection: Collection):  # C33
        store_result = store_document(collection, takes_lease=True)
        assert leased_ids() == []
        expire_leases()
        lease = leases.take_next_lease()
        assert lease is not None
        assert (lease.version_id, lease.attempt, lease.token != store_result.lease_token) == (
            store_result.version.pk,
            2,
            True,
        )

    def test_lease_lasts_a_minute_by_the_clock_of_the_database(self, collection: Collection):  # X16
        store_document(collection, takes_lease=True)
        ((remaining_s,),) = fetch_rows(
            "SELECT extract(epoch FROM lease_until - clock_timestamp()) FROM document_version"
        )
        assert 58 < remaining_s <= 60


@pytest.mark.django_db(transaction=True)
def test_two_workers_never_lease_the_same_version():
    collection = make_collection("manuals")
    version_ids = [
        store_document(collection, b"%d" % number, user_id=str(number % 3)).version.pk for number in range(40)
    ]

    def lease_all(_: int) -> list[int]:
        try:
            return leased_ids()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        leased_version_ids = [
            version_id for worker_version_ids in pool.map(lease_all, range(4)) for version_id in worker_version_ids
        ]
    assert sorted(leased_version_ids) == version_ids


@pytest.mark.django_db(transaction=True)
def test_repeated_message_is_processed_once():  # X19
    collection, other_collection = make_collection("manuals"), make_collection("undisturbed")
    texts = [sample_text(60, start=100 * number).encode() for number in range(3)]
    undisturbed_versions = [store_document(other_collection, text).version for text in texts]
    process_queue()
    versions = [store_document(collection, text).version for text in texts]

    def deliver_message(_: int) -> None:
        try:
            tasks.work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(deliver_message, range(4)))
    assert (
        [chunk_rows(version) for version in versions]
        == [chunk_rows(version) for version in undisturbed_versions]
        != [[], [], []]
    )
    assert set(Version.objects.values_list("state", "attempt")) == {("ready", 1)}


@pytest.mark.django_db(transaction=True)
def test_locked_version_is_skipped_even_with_an_expired_lease():  # C34
    version = store_document(make_collection("manuals"), takes_lease=True).version
    expire_leases()
    with another_connection() as blocker, blocker.transaction():
        blocker.execute("SELECT 1 FROM document_version WHERE id = %s FOR NO KEY UPDATE", [version.pk])
        assert leased_ids() == []
    assert leased_ids() == [version.pk]


class TestFencing:
    """A worker that lost its lease, for example because it was paused, stores nothing and ends quietly."""

    WRITES = (
        lambda stale_version: leases.record_progress(stale_version, state=VersionState.SPLITTING),
        lambda stale_version: leases.finish_version(stale_version, VersionState.READY),
        lambda stale_version: leases.fail_version(stale_version, "x", "x"),
        lambda stale_version: leases.fail_attempt(stale_version, "x", "x"),
        lambda stale_version: leases.postpone_version(stale_version, 5, "x", "x"),
        lambda stale_version: leases.release_lease(stale_version),
        lambda stale_version: leases.lock_version(stale_version).__enter__(),
    )

    @pytest.mark.parametrize("write", WRITES)
    def test_worker_without_the_lease_writes_nothing(self, collection: Collection, write: object):  # C34
        store_result = store_document(collection, takes_lease=True)
        stale_version = leases.leased_version(store_result.version.pk, store_result.lease_token)  # type: ignore[arg-type]
        expire_leases()
        assert leased_ids() == [stale_version.pk]
        stored_row = Version.objects.values().get()
        with pytest.raises(LeaseLost):
            write(stale_version)  # type: ignore[operator]
        assert Version.objects.values().get() == stored_row

    def test_worker_without_the_lease_ends_quietly(self, collection: Collection):  # C34
        store_result = store_document(collection, takes_lease=True)
        expire_leases()
        assert process_queue() == 1
        stored_row = Version.objects.values().get()
        assert worker.process_version(store_result.version.pk, store_result.lease_token, deadline=1e12) == "ready"  # type: ignore[arg-type]
        assert Version.objects.values().get() == stored_row

    def test_unknown_id_or_token_holds_no_lease(self, collection: Collection):  # C37
        assert worker.process_version(999_999, uuid4(), deadline=1e12) == "deleting"
        version = store_document(collection).version
        assert worker.process_version(version.pk, uuid4(), deadline=1e12) == "queued"


class TestAttempts:
    def test_document_that_kills_each_worker_fails_after_five_attempts(self, collection: Collection):  # C47
        poison_version = store_document(collection, b"poison").version
        other_version = store_document(collection, b"other").version
        for attempt in range(1, 6):
            lease = leases.take_next_lease()
            assert lease is not None and (lease.version_id, lease.attempt) == (poison_version.pk, attempt)
            expire_leases()  # killed
        assert process_queue() == 2
        poison_version.refresh_from_db()
        assert (poison_version.state, poison_version.error_code, poison_version.is_searched) == (
            "failed",
            "attempts",
            False,
        )
        assert "Every attempt to process the document was interrupted" in poison_version.error
        assert Version.objects.get(pk=other_version.pk).state == "ready"

    def test_stored_result_resets_the_attempts(self, collection: Collection):
        store_result = store_document(collection, takes_lease=True)
        Version.objects.update(attempt=5)
        version = leases.leased_version(store_result.version.pk, store_result.lease_token)  # type: ignore[arg-type]
        leases.record_progress(version, state=VersionState.SPLITTING)
        assert Version.objects.get().attempt == 1

    def test_returned_lease_is_not_counted(self, collection: Collection):
        store_document(collection)
        for _ in range(20):
            lease = leases.take_next_lease()
            assert lease is not None
            leases.release_lease(leases.leased_version(lease.version_id, lease.token))
        assert process_queue() == 1
        assert Version.objects.get().state == "ready"

    def test_pauses_between_failed_attempts_grow(self, collection: Collection):
        store_document(collection)
        pauses = []
        for _ in range(5):
            lease = leases.take_next_lease()
            assert lease is not None
            leases.fail_attempt(leases.leased_version(lease.version_id, lease.token), "internal", "x" * 2000)
            pauses += fetch_rows("SELECT extract(epoch FROM next_at - clock_timestamp())::float FROM document_version")
            end_pauses()
        pause_bounds_s = [(4, 6), (8, 12), (16, 24), (32, 48)]
        assert all(
            shortest_s * 0.95 <= pause_s <= longest_s
            for (pause_s,), (shortest_s, longest_s) in zip(pauses, pause_bounds_s, strict=False)
        )
        version = Version.objects.get()
        assert (version.state, version.error_code, len(version.error), version.attempt) == (
            "failed",
            "internal",
            1000,
            5,
        )
        assert leased_ids() == []

"""The queue of documents when a host's clock is wrong or the database's clock was set back."""

import pytest

from collections_app.documents.storage import StoreResult
from collections_app.models import Collection, Version
from collections_app.models.documents import VersionState
from collections_app.queue import leases
from collections_app.vectors import reembedding
from tests.collections_app.ingest.world import process_queue, store_document
from tests.support.clocks import let_time_pass, set_database_clock_back, shifted_host_clock

pytestmark = pytest.mark.django_db
wrong_clocks = pytest.mark.parametrize("hours", [-1, 1], ids=["behind", "ahead"])


def leased_version(store_result: StoreResult) -> Version:
    assert store_result.lease_token is not None
    return leases.leased_version(store_result.version.pk, store_result.lease_token)


def version_state() -> str:
    return str(Version.objects.get().state)


@wrong_clocks
def test_document_is_due_immediately_regardless_of_the_host_clock(collection: Collection, hours: int):
    with shifted_host_clock(hours):
        store_document(collection)
    assert (leases.due_versions().count(), process_queue(), version_state()) == (1, 1, VersionState.READY)


@wrong_clocks
def test_lease_is_respected_by_a_worker_whose_clock_is_wrong(collection: Collection, hours: int):
    store_document(collection, takes_lease=True)
    with shifted_host_clock(hours):
        assert (leases.due_versions().count(), leases.take_next_lease()) == (0, None)


@wrong_clocks
def test_pause_is_respected_by_a_worker_whose_clock_is_wrong(collection: Collection, hours: int):
    store_result = store_document(collection, takes_lease=True)
    with shifted_host_clock(hours):
        leases.postpone_version(leased_version(store_result), 10, "provider", "away")
        assert (leases.due_versions().count(), leases.take_next_lease()) == (0, None)
    let_time_pass(Version.objects.all(), "next_at", seconds=13)
    assert (leases.due_versions().count(), process_queue(), version_state()) == (1, 1, VersionState.READY)


def test_document_does_not_wait_after_the_clock_was_set_back(collection: Collection):
    store_document(collection)
    set_database_clock_back(Version.objects.all(), "next_at")
    assert (leases.due_versions().count(), process_queue(), version_state()) == (1, 1, VersionState.READY)


def test_lease_of_a_killed_worker_ends_after_the_clock_was_set_back(collection: Collection):
    store_result = store_document(collection, takes_lease=True)
    set_database_clock_back(Version.objects.all(), "next_at", "lease_until")
    assert (leases.due_versions().count(), process_queue(), version_state()) == (1, 1, VersionState.READY)
    with pytest.raises(leases.LeaseLost):
        leased_version(store_result)


@wrong_clocks
def test_reembedding_waits_according_to_the_database_clock(collection: Collection, hours: int):
    Collection.objects.update(has_old_vectors=True)
    with shifted_host_clock(hours):
        reembedding._record_status(collection.pk, "away", 1, 60)
        assert not reembedding.due_collections().exists()
    assert not reembedding.due_collections().exists()
    let_time_pass(Collection.objects.all(), "reembed_at", seconds=61)
    with shifted_host_clock(hours):
        assert reembedding.due_collections().exists()


def test_reembedding_continues_after_the_clock_was_set_back(collection: Collection):
    Collection.objects.update(has_old_vectors=True)
    reembedding._record_status(collection.pk, "away", 1, 60)
    set_database_clock_back(Collection.objects.all(), "reembed_at")
    assert reembedding.due_collections().exists()

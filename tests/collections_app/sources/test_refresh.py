"""The schedule: one worker per source, a killed worker only delays, and deleted things stop."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models import QuerySet
from django.utils import timezone

from collections_app import tasks
from collections_app.documents import deletion
from collections_app.models import Collection, Document, Source
from collections_app.sources import refresh as refreshing
from tests.collections_app.http.calls import KeyCaller
from tests.collections_app.sources.world import Site, add_source, html, refresh, run_due, texts

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(site: Site, manager: KeyCaller, collection: Collection) -> Source:
    site.answers["/guide"] = html("The toner is red.")
    return add_source(manager, collection, "page", site.url(), doc_id="guide", interval_minutes=60)


def test_next_refresh_follows_after_the_interval(page: Source):
    run_due()
    delay = page.refreshed().next_at - timezone.now()
    assert timedelta(minutes=59) < delay <= timedelta(minutes=60)


def test_leased_source_is_not_taken_twice(page: Source, site: Site):
    leased = refreshing.lease_next_source()
    assert leased is not None and leased.pk == page.pk
    assert refreshing.lease_next_source() is None
    run_due()
    assert site.server.requests == []


def test_only_one_source_is_refreshed_at_a_time(page: Source, manager: KeyCaller, collection: Collection, site: Site):
    add_source(manager, collection, "page", site.url("/other"), doc_id="other")
    assert refreshing.lease_next_source() is not None
    assert refreshing.lease_next_source() is None


def test_source_that_was_leased_after_the_check_is_not_taken_twice(page: Source, monkeypatch: pytest.MonkeyPatch):
    assert refreshing.lease_next_source() is not None
    # As if the other process had committed its lease only now.
    monkeypatch.setattr(QuerySet, "exists", lambda queryset: False)
    assert refreshing.lease_next_source() is None


def test_killed_worker_delays_until_its_lease_expires(page: Source, collection: Collection):
    killed = refreshing.lease_next_source()
    assert killed is not None
    Source.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    run_due()
    assert texts(collection) == {"guide": "The toner is red."}
    after = page.refreshed()
    refreshing.refresh(killed)  # it was only slow: its outcome is discarded
    assert page.refreshed().checked_at == after.checked_at


def test_lease_from_before_the_clock_was_set_back_ends(page: Source, collection: Collection):
    Source.objects.update(lease_until=timezone.now() + timedelta(days=1), lease_token=uuid4())
    run_due()
    assert "guide" in texts(collection)


def test_unexpected_error_is_recorded_without_details(page: Source, monkeypatch: pytest.MonkeyPatch):
    def fail(source: Source) -> None:
        raise RuntimeError("/srv/secret")

    monkeypatch.setattr(refreshing, "HANDLERS", {"page": fail})
    assert refresh(page).error == "Internal error: RuntimeError."


def test_deleted_source_keeps_its_documents(page: Source, collection: Collection, site: Site):
    run_due()
    page.delete()
    run_due()
    assert len(site.server.requests) == 1 and "guide" in texts(collection)


def test_source_that_is_deleted_during_its_refresh_does_not_return(page: Source):
    leased = refreshing.lease_next_source()
    assert leased is not None
    page.delete()
    refreshing.refresh(leased)
    assert not Source.objects.exists()


def test_sources_of_a_deleted_collection_stop_and_are_purged(page: Source, collection: Collection, site: Site):
    deletion.delete_collection(collection)
    run_due()
    assert site.server.requests == []
    tasks.purge()
    assert not Source.objects.exists() and not Collection.objects.filter(pk=collection.pk).exists()


def test_collection_that_is_deleted_during_a_refresh_gets_no_documents(page: Source, collection: Collection):
    leased = refreshing.lease_next_source()
    assert leased is not None
    deletion.delete_collection(collection)
    refreshing.refresh(leased)
    assert not Document.objects.exists()

"""Changes to a document, its collection or its provider while it is processed."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest
from django.db import OperationalError, connection, connections
from django.test import RequestFactory
from rest_framework.request import Request

from collections_app import embed
from collections_app.documents import deletion, storage
from collections_app.http import responses
from collections_app.ingest import worker
from collections_app.models import Chunk, Collection, Document, EmbeddingSpace, Version
from collections_app.models.documents import VersionState
from collections_app.queue import leases
from system.errors import Conflict
from tests.collections_app.builders import DocumentLoader, make_collection
from tests.collections_app.ingest.processes import another_connection
from tests.collections_app.ingest.world import (
    end_pauses,
    fetch_rows,
    process_queue,
    row_counts,
    sample_text,
    store_document,
    wrong_term_counts,
)
from tests.config.stack import eventually

pytestmark = pytest.mark.django_db


def purge_once() -> bool:
    return deletion.purge_deleted(time.monotonic() + 60)


class TestRepeatedLoad:
    """A failed document is retried by the first request that sends it again."""

    @pytest.mark.django_db(transaction=True)
    def test_version_leased_during_a_repeated_load_stays_with_the_worker(self):
        collection = make_collection("manuals")
        version = store_document(collection).version
        Version.objects.update(state=VersionState.FAILED)
        token = uuid4()

        def load_again() -> storage.StoreResult:
            try:
                return store_document(collection, takes_lease=True)
            finally:
                connections.close_all()

        with another_connection() as blocker, another_connection() as observer, ThreadPoolExecutor(1) as pool:
            with blocker.transaction():
                blocker.execute("UPDATE document_version SET state = 'queued', lease_token = %s", [token])
                future = pool.submit(load_again)
                waiting_query = "SELECT 1 FROM pg_locks WHERE NOT granted AND %s = ANY(pg_blocking_pids(pid))"
                eventually(lambda: observer.execute(waiting_query, [blocker.info.backend_pid]).fetchone())
            store_result = future.result()
        assert store_result.version == version and store_result.is_duplicate
        assert store_result.lease_token is None
        assert Version.objects.get().lease_token == token

    def test_finished_version_is_not_leased(self, collection: Collection, document_loader: DocumentLoader):
        version = document_loader()
        assert leases.take_lease(version.pk) is None
        token = uuid4()
        Version.objects.update(lease_token=token)
        assert worker.process_version(version.pk, token, deadline=1e12) == "ready"
        version = Version.objects.get()
        assert (version.state, version.is_searched, version.lease_token) == ("ready", True, None)


@pytest.mark.parametrize("is_purged", [False, True])
@pytest.mark.parametrize("is_replaced", [False, True])
def test_document_replaced_or_deleted_during_its_load_is_not_reported_as_failed(
    collection: Collection, is_replaced: bool, is_purged: bool
):
    store_result = store_document(collection, doc_id="x", takes_lease=True)
    if is_replaced:
        store_document(collection, b"newer", doc_id="x", on_duplicate="replace")
    else:
        deletion.delete_document(collection, "x")
    if is_purged:
        Version.objects.filter(pk=store_result.version.pk).update(
            state=VersionState.FAILED, error_code=deletion.SUPERSEDED_CODE
        )
        purge_once()
    version = worker.process_in_request(store_result)
    updated_result = replace(store_result, version=version)
    with pytest.raises(Conflict) as exc_info:
        responses.load_response(Request(RequestFactory().get("/")), updated_result)
    assert exc_info.value.as_item() == {
        "message": "The document was replaced or deleted during the request.",
        "code": "superseded",
    }


def test_empty_document_keeps_no_chunks_of_an_earlier_attempt(collection: Collection):
    version = store_document(collection, b"  ").version
    Chunk.objects.create(version=version, collection=collection, number=0, text="x", char_start=0, char_end=1)
    Version.objects.update(chunks_count=1)
    assert process_queue() == 1
    assert (row_counts()["chunk"], Version.objects.get().chunks_count) == (0, 0)


class TestPurge:
    @pytest.mark.django_db(transaction=True)
    def test_failed_purge_does_not_delay_others(self, collection: Collection, document_loader: DocumentLoader):
        stuck_version = document_loader("Words that are counted just now.", doc_id="x")
        other_collection = make_collection("other")
        document_loader("Another.", target=other_collection, doc_id="y")
        Version.objects.update(is_searched=False)  # as for long documents
        with another_connection() as blocker, blocker.transaction(), connection.cursor() as cursor:
            blocker.execute("SELECT pg_advisory_xact_lock(%s)", [deletion.advisory_lock_key(f"words {collection.pk}")])
            cursor.execute("SET lock_timeout = '200ms'")
            assert not purge_once()
            cursor.execute("RESET lock_timeout")
        assert Version.objects.get() == stuck_version
        assert not purge_once() and Version.objects.exists()  # the provider is paused
        deletion._retry_times.clear()
        assert not purge_once() and not Version.objects.exists()

    @pytest.mark.django_db(transaction=True)
    def test_deletion_does_not_wait_for_the_term_counts(self, collection: Collection, document_loader: DocumentLoader):
        document_loader("Another.", doc_id="kept")
        document_loader("The same words.", doc_id="x")
        with another_connection() as blocker, blocker.transaction(), connection.cursor() as cursor:
            blocker.execute("SELECT pg_advisory_xact_lock(%s)", [deletion.advisory_lock_key(f"words {collection.pk}")])
            cursor.execute("SET lock_timeout = '200ms'")
            assert deletion.delete_document(collection, "x") == 1
            cursor.execute("RESET lock_timeout")
        assert Version.objects.filter(is_searched=True).count() == 1
        purge_once()
        assert (wrong_term_counts(collection), row_counts()["document"]) == ([], 1)

    def test_few_large_chunks_count_as_a_long_document(self, collection: Collection, document_loader: DocumentLoader):
        document_loader("The same words.", doc_id="x")
        Version.objects.update(characters=deletion.MAX_IMMEDIATE_CHARACTERS + 1)
        document_loader("Newer words.", doc_id="x", on_duplicate="replace")
        process_queue()
        assert row_counts()["document_version"] == 2
        purge_once()
        assert (wrong_term_counts(collection), row_counts()["document_version"]) == ([], 1)


def test_only_one_document_retries_an_unavailable_provider(
    collection: Collection, document_loader: DocumentLoader
):  # C29
    other_collection = make_collection("elsewhere")
    Collection.objects.filter(pk=collection.pk).update(
        space=EmbeddingSpace.objects.create(provider="retired", model="gone", dimensions=8)
    )
    for number in range(5):
        store_document(collection, sample_text(1, start=number).encode())
    process_queue()
    for round_number in range(3):
        end_pauses()
        embed.reset_providers()
        version = store_document(other_collection, b"%d" % round_number).version
        assert process_queue() == 2
        assert Version.objects.get(pk=version.pk).state == "ready"
    states = Version.objects.filter(collection=collection).values_list("state", "error_code", "attempt")
    assert list(states.order_by().distinct()) == [("embedding", "embedding_misconfigured", 0)]
    pauses_s = [
        pause_s
        for (pause_s,) in fetch_rows(
            "SELECT extract(epoch FROM next_at - clock_timestamp())::float FROM document_version WHERE state = %s",
            "embedding",
        )
    ]
    assert all(2 < pause_s <= 6 for pause_s in pauses_s) and len(set(pauses_s)) == 5


@pytest.mark.parametrize("cause", [psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure])
def test_deadlock_or_lock_timeout_is_retried(collection: Collection, cause: type[psycopg.Error]):
    store_result = store_document(collection, takes_lease=True)
    version = leases.leased_version(store_result.version.pk, store_result.lease_token)  # type: ignore[arg-type]
    error = OperationalError("x")
    error.__cause__ = cause("x")
    worker._handle_error(version, error, is_awaited=False)
    version = Version.objects.get()
    assert (version.error_code, version.attempt, version.lease_token) == ("database", 0, None)


# Two thousand other documents.
INSERT_MANY_DOCUMENTS = """
    INSERT INTO document (id, collection_id, doc_id, created_at, created_by, updated_at)
    SELECT 'copy' || n, collection_id, 'copy' || n, now(), '', now() FROM document, generate_series(1, 2000) n;
    INSERT INTO document_version (document_id, collection_id, generation, created_at, created_by, filename, format,
        size, sha256, metadata, state, error_code, error, warnings, attempt, next_at, characters, chunks_count,
        is_searched)
    SELECT 'copy' || n, collection_id, 1, now(), '', '', format, size, md5(n::text), metadata, state, '', '', warnings,
        0, now(), 0, 0, false FROM document_version, generate_series(1, 2000) n;
    UPDATE document SET newest_id = v.id FROM document_version v WHERE v.document_id = document.id;
    ANALYZE document, document_version
"""


def test_lookup_of_equal_content_uses_its_index(collection: Collection):
    store_document(collection)
    with connection.cursor() as cursor:
        cursor.execute(INSERT_MANY_DOCUMENTS)
    plan = storage.filter_same_content(Document.objects.all(), collection, "0" * 64, {}).explain()
    index_condition = plan.partition("document_version_same")[2].partition("Index Cond:")[2].partition("\n")[0]
    assert "collection_id" in index_condition and "sha256" in index_condition, plan

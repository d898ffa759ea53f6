"""Deleted documents are hidden immediately and purged later, also during concurrent operations."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import IntegrityError, connection, connections, transaction

from accounts.models import User
from collections_app import tasks
from collections_app.documents import deletion
from collections_app.ingest import worker
from collections_app.models import Collection, Document, Version
from collections_app.queue import leases
from system.errors import NotFound
from system.models import DeletionLogEntry
from system.records import acting_user
from tests.collections_app.builders import DocumentLoader, make_collection
from tests.collections_app.ingest.world import (
    fetch_rows,
    process_queue,
    row_counts,
    sample_text,
    store_document,
    wrong_term_counts,
)

pytestmark = pytest.mark.django_db


def purge_all() -> None:
    while deletion.purge_deleted(time.monotonic() + 60):
        pass


def zero_row_counts() -> dict[str, int]:
    return dict.fromkeys(row_counts(), 0)


class TestDocument:
    def test_deleted_document_leaves_no_rows(self, collection: Collection, document_loader: DocumentLoader):
        other_version = document_loader("Another document.", doc_id="kept")
        version = document_loader(sample_text(20), doc_id="x")
        assert deletion.delete_document(collection, "x") == version.chunks_count > 1
        assert list(Version.objects.filter(is_searched=True)) == [other_version]
        assert wrong_term_counts(collection) == []
        assert deletion.is_purge_due()
        tasks.purge()
        assert not deletion.is_purge_due()
        assert row_counts() == dict.fromkeys(row_counts(), 1)
        assert wrong_term_counts(collection) == []

    @pytest.mark.parametrize("state", ["queued", "extracting", "splitting", "embedding", "failed", "empty"])
    def test_document_in_any_state_can_be_deleted(self, collection: Collection, state: str):
        store_document(collection, doc_id="x")
        Version.objects.update(state=state, is_searched=state == "empty")
        assert deletion.delete_document(collection, "x") == 0
        purge_all()
        assert row_counts() == zero_row_counts()

    def test_document_is_deleted_once_and_only_in_its_collection(
        self, collection: Collection, document_loader: DocumentLoader
    ):  # C12
        document_loader(doc_id="x")
        other_collection = make_collection("elsewhere")
        for target, doc_id in ((other_collection, "x"), (collection, "y"), (collection, Document.objects.get().id)):
            with pytest.raises(NotFound) as exc_info:
                deletion.delete_document(target, doc_id)
            assert exc_info.value.code == "not_found"
        deletion.delete_document(collection, "x")
        with pytest.raises(NotFound):
            deletion.delete_document(collection, "x")

    def test_worker_subtracts_the_counts_of_a_long_document(
        self, collection: Collection, document_loader: DocumentLoader
    ):
        Collection.objects.update(chunk_size=100, chunk_overlap=50)
        collection.refresh_from_db()
        document_loader("Another document.", doc_id="kept")
        assert document_loader(sample_text(2500), doc_id="x").chunks_count > deletion.CHUNK_BATCH_SIZE
        deletion.delete_document(collection, "x")
        assert Version.objects.filter(is_searched=True).count() == 1
        assert wrong_term_counts(collection)
        purge_all()
        assert wrong_term_counts(collection) == []
        assert row_counts() == dict.fromkeys(row_counts(), 1)

    def test_interrupted_purge_is_continued(self, collection: Collection, document_loader: DocumentLoader):
        for number in range(5):
            document_loader(sample_text(20, start=number * 20), doc_id=str(number))
            deletion.delete_document(collection, str(number))
        purge_rounds = 1
        while deletion.purge_deleted(time.monotonic() - 1):
            purge_rounds += 1
        assert purge_rounds > 5
        assert row_counts() == zero_row_counts()


class TestCollection:
    def test_deleted_collection_leaves_no_rows(
        self, collection: Collection, document_loader: DocumentLoader, carl: User
    ):
        chunk_count = document_loader(sample_text(20)).chunks_count + document_loader("Another.").chunks_count
        store_document(collection, b"waiting")
        other_version = document_loader("Elsewhere.", target=make_collection("elsewhere"))
        with acting_user.acting_as(carl.pk):
            assert deletion.delete_collection(collection) == (3, chunk_count)
        log_entry = DeletionLogEntry.objects.get()
        assert (log_entry.table, log_entry.record_id, log_entry.display_value, log_entry.deleted_by) == (
            "document_collection", collection.pk, "manuals", carl.pk,
        )  # fmt: skip
        purge_all()
        assert (row_counts()["document"], Version.objects.get()) == (1, other_version)
        assert fetch_rows("SELECT DISTINCT collection_id FROM term_count") == [(other_version.collection_id,)]
        assert Collection.objects.get().name == "elsewhere"
        assert DeletionLogEntry.objects.count() == 1

    def test_name_of_a_deleted_collection_can_be_reused(
        self, collection: Collection, document_loader: DocumentLoader
    ):  # C43
        document_loader("The same.", doc_id="x")
        deletion.delete_collection(collection)
        new_collection = make_collection(collection.name)
        new_version = document_loader("The same.", target=new_collection, doc_id="x")
        purge_all()
        assert (Version.objects.get(), Collection.objects.get()) == (new_version, new_collection)
        assert wrong_term_counts(new_collection) == []

    def test_collection_is_deleted_only_once(self, collection: Collection):
        deletion.delete_collection(collection)
        with pytest.raises(NotFound):
            deletion.delete_collection(collection)
        purge_all()
        with pytest.raises(NotFound):
            deletion.delete_collection(collection)

    def test_row_with_documents_cannot_be_deleted_directly(
        self, collection: Collection, document_loader: DocumentLoader
    ):
        document_loader()
        connection.cursor().execute("SET CONSTRAINTS ALL IMMEDIATE")
        with pytest.raises(IntegrityError), transaction.atomic():
            Collection.objects.all().delete()
        assert Collection.objects.get() == collection

    def test_deleted_collection_leaves_one_log_entry(self, collection: Collection, document_loader: DocumentLoader):
        document_loader()
        deletion.delete_collection(collection)
        purge_all()
        assert (row_counts(), Collection.objects.count()) == (zero_row_counts(), 0)
        assert DeletionLogEntry.objects.filter(record_id=collection.pk).count() == 1

    def test_processing_of_a_deleted_document_ends_quietly(self, collection: Collection):  # C42
        store_result = store_document(collection, sample_text(20).encode(), takes_lease=True)
        deletion.delete_collection(collection)
        assert worker.process_in_request(store_result).state in ("queued", "failed")
        purge_all()
        assert (row_counts(), Collection.objects.count()) == (zero_row_counts(), 0)


@pytest.mark.django_db(transaction=True)
class TestConcurrency:
    """Runs operations in threads; each thread closes its database connection."""

    @staticmethod
    def run_concurrently(*operations: Callable[[], Any]) -> list[Any]:
        def run_operation(operation: Callable[[], Any]) -> Any:
            try:
                return operation()
            except NotFound as error:
                return error.status
            finally:
                connections.close_all()

        with ThreadPoolExecutor(len(operations)) as pool:
            return list(pool.map(run_operation, operations))

    def test_concurrent_deletions_of_a_document(self, document_loader: DocumentLoader, collection: Collection):
        for _ in range(5):
            chunk_count = document_loader(doc_id="x").chunks_count
            outcomes = self.run_concurrently(*[lambda: deletion.delete_document(collection, "x")] * 4)
            assert sorted(outcomes) == [chunk_count, 404, 404, 404]

    def test_concurrent_deletions_of_a_collection_during_loads(self, document_loader: DocumentLoader):  # C43
        for round_number in range(5):
            collection = make_collection(f"turn {round_number}")
            for number in range(3):
                document_loader(f"{number} {sample_text(5)}", target=collection, doc_id=str(number))

            def load(number: int, target: Collection = collection) -> Any:
                options: dict[str, Any] = {"doc_id": str(number), "on_duplicate": "replace", "takes_lease": True}
                return worker.process_in_request(store_document(target, b"new %d" % number, **options)).state

            outcomes = self.run_concurrently(
                *[lambda number=index: load(number) for index in range(6)],
                *[lambda target=collection: deletion.delete_collection(target)] * 2,
                process_queue,
            )
            assert sum(isinstance(outcome, tuple) for outcome in outcomes[6:8]) == 1
            assert outcomes[6:8].count(404) == 1
            assert set(outcomes[:6]) <= {
                "ready",
                "queued",
                "deleting",
                "failed",
                "extracting",
                "splitting",
                "embedding",
                404,
            }
            process_queue()
            purge_all()
            assert (row_counts(), Collection.objects.filter(pk=collection.pk).count()) == (zero_row_counts(), 0)
            assert fetch_rows("SELECT * FROM term_count") == []

    def test_replacements_deletions_and_workers_never_deadlock(
        self, document_loader: DocumentLoader, collection: Collection
    ):
        def load(number: int) -> Any:
            options: dict[str, Any] = {
                "doc_id": str(number % 3),
                "on_duplicate": "replace",
                "takes_lease": number % 2 == 0,
            }
            return worker.process_in_request(
                store_document(collection, sample_text(8, start=number).encode(), **options)
            ).state

        def delete(number: int) -> Any:
            return deletion.delete_document(collection, str(number % 3))

        for round_number in range(6):
            self.run_concurrently(
                *[lambda number=index: load(number + round_number) for index in range(5)],  # noqa: B023
                *[lambda number=index: delete(number + round_number) for index in range(2)],  # noqa: B023
                process_queue,
                purge_all,
            )
        process_queue()
        purge_all()
        assert wrong_term_counts(collection) == []
        assert not Version.objects.exclude(state__in=("ready", "failed")).exists()
        assert not Version.objects.filter(state="failed").exclude(document__newest__state="failed").exists()
        assert not Version.objects.filter(error_code="internal").exists()


@contextmanager
def collection_with_chunks(document_loader: DocumentLoader, count: int) -> Iterator[Collection]:
    """A collection with many copies of a document, created by SQL."""
    collection = make_collection("large")
    version = document_loader(sample_text(3), target=collection)
    chunks_per_version = 5000
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO document (id, collection_id, doc_id, created_at, updated_at)
            SELECT 'copy' || n, collection_id, 'copy' || n, now(), now()
            FROM document, generate_series(1, %s) n WHERE id = %s
            """,
            [count // chunks_per_version, version.document_id],
        )
        cursor.execute(
            """
            INSERT INTO document_version (document_id, collection_id, generation, created_at, filename, format, size,
                sha256, metadata, state, error_code, error, warnings, attempt, next_at, characters, chunks_count,
                is_searched)
            SELECT 'copy' || n, collection_id, 1, now(), '', format, size, sha256, metadata, state, '', '', warnings, 1,
                now(), characters, %s, true FROM document_version, generate_series(1, %s) n WHERE id = %s
            """,
            [chunks_per_version, count // chunks_per_version, version.pk],
        )
        cursor.execute("UPDATE document SET newest_id = v.id FROM document_version v WHERE v.document_id = document.id")
        cursor.execute(
            """
            INSERT INTO chunk (version_id, collection_id, number, text, heading_path, char_start, char_end)
            SELECT v.id, v.collection_id, n, 'x', '{}', 0, 1
            FROM document_version v, generate_series(1, %s) n WHERE v.document_id LIKE 'copy%%'
            """,
            [chunks_per_version],
        )
        cursor.execute(
            """
            INSERT INTO chunk_words (chunk_id, version_id, terms, weights)
            SELECT chunk.id, chunk.version_id, terms, weights FROM chunk, chunk_words w
            WHERE w.version_id = %s AND chunk.text = 'x'
            """,
            [version.pk],
        )
        cursor.execute(
            """
            INSERT INTO chunk_vector (chunk_id, space_id, collection_id, version_id, dimensions, embedding)
            SELECT chunk.id, space_id, v.collection_id, chunk.version_id, dimensions, embedding
            FROM chunk, chunk_vector v
            WHERE v.version_id = %s AND chunk.text = 'x'
            """,
            [version.pk],
        )
    yield collection


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_million_chunks_are_hidden_immediately_and_purged_in_short_transactions(document_loader: DocumentLoader):  # C44
    with collection_with_chunks(document_loader, 1_000_000) as collection:
        started_at = time.monotonic()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '5s'")  # as in a web process
            document_count, chunk_count = deletion.delete_collection(collection)
        assert (document_count, chunk_count > 1_000_000) == (201, True)
        print(f"marked in {time.monotonic() - started_at:.2f} s")
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = '10s'")
        purge_all()
        with connection.cursor() as cursor:
            cursor.execute("RESET statement_timeout")
        print(f"purged in {time.monotonic() - started_at:.0f} s")
        assert (row_counts(), Collection.objects.filter(pk=collection.pk).count()) == (zero_row_counts(), 0)


def test_lease_on_a_purged_version_is_lost(collection: Collection):
    store_result = store_document(collection, doc_id="x", takes_lease=True)
    deletion.delete_document(collection, "x")
    purge_all()
    with pytest.raises(leases.LeaseLost):
        leases.leased_version(store_result.version.pk, store_result.lease_token)  # type: ignore[arg-type]

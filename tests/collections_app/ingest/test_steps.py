"""The steps from bytes to searchable chunks, and each final state."""

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from collections_app import embed, extract
from collections_app.documents import deletion
from collections_app.embed.spaces import shared_breaker
from collections_app.extract import child_process
from collections_app.ingest import steps, worker
from collections_app.models import Chunk, Collection, Document, EmbeddingSpace, ExtractedText, Version
from collections_app.models.documents import VersionState
from collections_app.queue import leases
from collections_app.vectors import chunk_vectors
from system.errors import Conflict
from tests.collections_app.builders import DocumentLoader, make_collection
from tests.collections_app.extract.limits import limits_for_tests
from tests.collections_app.ingest.world import (
    chunk_rows,
    end_pauses,
    expire_leases,
    fetch_rows,
    process_queue,
    row_counts,
    sample_text,
    store_document,
    wrong_term_counts,
)

pytestmark = pytest.mark.django_db

SENTENCE_COUNT = 1000  # over 300 chunks, which is more than one batch of vectors


def space_without_provider(**columns: Any) -> EmbeddingSpace:
    return EmbeddingSpace.objects.create(**{"provider": "retired", "model": "gone", "dimensions": 8, **columns})


class TestSteps:
    def test_processed_document_is_searchable(self, collection: Collection, document_loader: DocumentLoader):
        version = document_loader(sample_text(20), metadata={"type": "guide"})
        assert (version.state, version.is_searched, version.lease_token, version.error) == ("ready", True, None, "")
        assert version.ready_at is not None
        assert version.characters == len(sample_text(20))
        assert ExtractedText.objects.get(version=version).text == sample_text(20)
        stored_chunks = chunk_rows(version)
        assert [row[0] for row in stored_chunks] == list(range(version.chunks_count))
        assert all(sample_text(20)[row[5] : row[6]] == row[1] for row in stored_chunks)
        assert all(row[7] and row[8] and len(row[9]) == 1 for row in stored_chunks)
        assert wrong_term_counts(collection) == []

    def test_request_and_worker_store_the_same_rows(self, collection: Collection, document_loader: DocumentLoader):
        version = document_loader(sample_text(SENTENCE_COUNT))
        other_collection = make_collection("elsewhere")
        store_document(other_collection, sample_text(SENTENCE_COUNT).encode())
        assert process_queue() == 1
        assert chunk_rows(Version.objects.get(collection=other_collection)) == chunk_rows(version)

    def test_each_step_can_run_in_another_worker(self, collection: Collection, document_loader: DocumentLoader):  # C33
        expected_chunks = chunk_rows(
            document_loader(sample_text(SENTENCE_COUNT), target=make_collection("undisturbed"))
        )
        version = store_document(collection, sample_text(SENTENCE_COUNT).encode()).version
        states = []
        while (lease := leases.take_next_lease()) is not None:
            leased_version = leases.leased_version(lease.version_id, lease.token)
            states.append(leased_version.state)
            steps.STEPS[leased_version.state](leased_version, 60.0)
            expire_leases()  # as if the worker was killed after the step
        assert states == [
            "queued",
            "splitting",
            *["embedding"] * (len(expected_chunks) // chunk_vectors.CHUNK_BATCH_SIZE + 2),
        ]
        assert chunk_rows(version) == expected_chunks
        assert wrong_term_counts(collection) == []

    def test_each_document_has_its_own_language(self, collection: Collection, document_loader: DocumentLoader):
        german = "Der Drucker im dritten Stock hat kein Papier mehr. Bitte füllen Sie das Fach und melden Sie es uns. "
        english = "The printer on the third floor is out of paper, and nobody knows where there is some more of it. "
        languages = [document_loader(sentence * 5).text_configuration for sentence in (german, english, "4711; 0815")]

        assert languages == ["german", "english", "simple"]
        assert Collection.objects.get().text_configuration == ""

    def test_language_of_a_collection_applies_to_each_document(
        self, collection: Collection, document_loader: DocumentLoader
    ):
        Collection.objects.update(text_configuration="german")
        collection.refresh_from_db()

        version = document_loader(
            "The printer on the third floor is out of paper, and nobody knows where there is some. " * 5
        )

        assert version.text_configuration == "german"

    def test_request_stops_in_time_and_the_worker_continues(self, collection: Collection):
        store_result = store_document(collection, sample_text(SENTENCE_COUNT).encode(), takes_lease=True)
        version = worker.process_in_request(store_result, timeout_s=-1)
        assert (version.state, version.lease_token, version.attempt) == ("queued", None, 0)
        assert process_queue() == 1
        assert Version.objects.get().state == "ready"

    def test_file_that_is_too_slow_for_a_request_is_left_to_the_worker(
        self, collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        (tmp_path / "slow.py").write_text("import time; time.sleep(60)")
        store_result = store_document(collection, b"<p>Hi", format="html", filename="a.html", takes_lease=True)
        with monkeypatch.context() as patch:
            patch.setattr(child_process, "PARSER_PROGRAM", tmp_path / "slow.py")
            version = worker.process_in_request(store_result, timeout_s=1)
        assert (version.state, version.lease_token, version.error) == ("extracting", None, "")
        assert process_queue() == 1
        assert Version.objects.get().state == "ready"

    def test_long_text_is_split_by_the_worker(
        self, collection: Collection, document_loader: DocumentLoader, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(steps, "LONG_TEXT_CHARACTERS", 1000)
        version = document_loader(sample_text(40))
        assert (version.state, version.lease_token, version.attempt, version.error) == ("splitting", None, 0, "")
        assert process_queue() == 1
        assert Version.objects.get().state == "ready"
        # A caller with more time, such as a command, processes it.
        store_result = store_document(collection, sample_text(41).encode(), takes_lease=True)
        assert worker.process_in_request(store_result, timeout_s=600).state == "ready"

    @pytest.mark.parametrize("new_text", ["Short.", " "])
    def test_long_text_is_replaced_by_the_worker(
        self,
        collection: Collection,
        document_loader: DocumentLoader,
        monkeypatch: pytest.MonkeyPatch,
        new_text: str,
    ):
        old_version = document_loader(sample_text(40), doc_id="x")
        monkeypatch.setattr(steps, "LONG_TEXT_CHARACTERS", 1000)
        version = document_loader(new_text, doc_id="x", on_duplicate="replace")
        assert (version.lease_token, version.attempt, version.error) == (None, 0, "")
        assert Version.objects.get(is_searched=True) == old_version
        assert process_queue() == 1
        assert Version.objects.get(is_searched=True) == version
        assert wrong_term_counts(collection) == []


class TestFinalStates:
    @pytest.mark.parametrize("data", [b"   \n\t ", b"\xef\xbb\xbf"])
    def test_document_without_text_is_empty(self, collection: Collection, data: bytes):
        version = worker.process_in_request(store_document(collection, data, takes_lease=True))
        assert (version.state, version.is_searched, version.chunks_count) == ("empty", True, 0)
        assert version.warnings == [steps.NO_TEXT_WARNING]

    def test_unreadable_file_fails_permanently(self, collection: Collection):
        version = worker.process_in_request(
            store_document(collection, b"%PDF-1.4 broken", format="pdf", takes_lease=True)
        )
        assert (version.state, version.error_code, version.is_searched) == ("failed", "damaged", False)
        assert version.error and process_queue() == 0

    def test_failed_document_can_be_retried(self, collection: Collection):
        store_result = store_document(collection, b"%PDF-1.4 broken", format="pdf", takes_lease=True)
        worker.process_in_request(store_result)
        Version.objects.update(format="text")  # as if a parser had been fixed
        worker.retry_document(store_result.document)
        assert process_queue() == 1
        assert Version.objects.get().state == "ready"
        with pytest.raises(Conflict) as exc_info:
            worker.retry_document(Document.objects.get())
        assert exc_info.value.code == "not_failed"

    def test_internal_error_is_retried_and_does_not_reveal_the_document(
        self, collection: Collection, document_loader: DocumentLoader
    ):
        Collection.objects.update(text_configuration="no_such_language")
        version = document_loader("A secret.")
        assert (version.state, version.attempt, version.error_code) == ("splitting", 1, "internal")
        assert "secret" not in version.error and "no_such" not in version.error
        Collection.objects.update(text_configuration="english")
        assert process_queue() == 0
        end_pauses()
        assert process_queue() == 1
        assert Version.objects.values_list("state", "error", "error_code").get() == ("ready", "", "")

    def test_statement_timeout_of_a_request_is_left_to_the_worker(
        self, collection: Collection, document_loader: DocumentLoader
    ):
        """After repeated statement timeouts in the worker, the document fails."""
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE FUNCTION cut_off() RETURNS trigger LANGUAGE plpgsql AS "
                "$$BEGIN RAISE 'over its time' USING ERRCODE = 'query_canceled'; END$$;"
                "CREATE TRIGGER cut_off BEFORE INSERT ON chunk_words EXECUTE FUNCTION cut_off()"
            )
        version = document_loader(sample_text(20))
        assert (version.state, version.lease_token, version.attempt, version.error) == ("splitting", None, 0, "")
        for attempt in range(1, leases.MAX_ATTEMPTS + 1):
            assert process_queue() == 1
            version.refresh_from_db()
            assert (version.attempt, version.error_code) == (attempt, "internal")
            end_pauses()
        assert version.state == "failed" and process_queue() == 0

    def test_file_that_got_no_processor_time_is_retried(
        self, collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        (tmp_path / "stopped.py").write_text("import time; time.sleep(60)")
        monkeypatch.setattr(child_process, "PARSER_PROGRAM", tmp_path / "stopped.py")
        monkeypatch.setattr(extract, "configured_limits", partial(limits_for_tests, wall_s=0.2))
        version = store_document(collection, b"<p>Hi", format="html", filename="a.html").version
        for attempt in range(1, leases.MAX_ATTEMPTS + 1):
            assert version.state != "failed" and process_queue() == 1
            version.refresh_from_db()
            assert (version.attempt, version.error_code) == (attempt, "limit_time")
            end_pauses()
        assert version.state == "failed" and process_queue() == 0


class TestReplacing:
    def test_old_version_is_searched_until_the_new_one_is_ready(
        self, collection: Collection, document_loader: DocumentLoader
    ):  # C41
        old_version = document_loader("The old words.", doc_id="x")
        new_version = store_document(collection, b"The new text.", doc_id="x", on_duplicate="replace").version
        assert list(Version.objects.filter(is_searched=True)) == [old_version]
        assert process_queue() == 1
        assert list(Version.objects.all()) == [new_version]
        assert Version.objects.get().is_searched
        assert row_counts() == dict.fromkeys(row_counts(), 1)
        assert wrong_term_counts(collection) == []

    def test_old_version_stays_if_the_new_one_fails(self, collection: Collection, document_loader: DocumentLoader):
        old_version = document_loader("The old words.", doc_id="x")
        options: dict[str, Any] = {"doc_id": "x", "on_duplicate": "replace"}
        failed_version = store_document(collection, b"%PDF-1.4 broken", format="pdf", **options).version
        assert process_queue() == 1
        assert list(Version.objects.filter(is_searched=True)) == [old_version]
        assert Document.objects.get().newest == Version.objects.get(pk=failed_version.pk, state="failed")

        store_document(collection, b"Better.", **options)
        process_queue()
        deletion.purge_deleted(time.monotonic() + 10)
        assert Version.objects.get().generation == 3

    def test_replacement_without_text_is_empty(self, collection: Collection, document_loader: DocumentLoader):
        document_loader("The old words.", doc_id="x")
        new_version = document_loader(" ", doc_id="x", on_duplicate="replace")
        assert (Version.objects.get(), new_version.state, new_version.is_searched) == (new_version, "empty", True)
        assert (row_counts()["chunk"], fetch_rows("SELECT * FROM term_count")) == (0, [])

    def test_newer_version_is_published_before_an_older_one(self, collection: Collection):
        for number in range(5):
            store_document(collection, b"%d" % number, doc_id="x", on_duplicate="replace", user_id=str(9 - number))
        process_queue()
        deletion.purge_deleted(time.monotonic() + 10)
        version = Version.objects.get()
        assert (version.generation, version.state, version.is_searched) == (5, "ready", True)
        assert wrong_term_counts(collection) == []

    def test_long_old_version_is_purged_in_batches(
        self, collection: Collection, document_loader: DocumentLoader, settings: Any
    ):
        Collection.objects.update(chunk_size=100, chunk_overlap=50)
        collection.refresh_from_db()
        old_version = document_loader(sample_text(2500), doc_id="x")
        assert old_version.chunks_count > deletion.CHUNK_BATCH_SIZE
        new_version = document_loader("Short.", doc_id="x", on_duplicate="replace")
        assert Version.objects.filter(is_searched=True).get() == new_version
        assert row_counts()["document_version"] == 2
        assert not deletion.purge_deleted(time.monotonic() + 60)
        assert Version.objects.get() == new_version
        assert wrong_term_counts(collection) == []


class TestProvider:
    def test_long_outage_fails_no_document(self, collection: Collection, document_loader: DocumentLoader):  # C29
        Collection.objects.update(space=space_without_provider())
        collection.refresh_from_db()
        version = document_loader()
        for _ in range(20):
            assert (version.state, version.error_code, version.attempt) == ("embedding", "embedding_misconfigured", 0)
            assert version.error
            end_pauses()
            embed.reset_providers()
            assert process_queue() == 1
            version.refresh_from_db()
        Collection.objects.update(space=embed.default_space())  # as a change of the model would
        end_pauses()
        assert process_queue() == 1
        assert Version.objects.values_list("state", "error").get() == ("ready", "")

    def test_other_documents_of_the_space_wait_during_the_pause(
        self, collection: Collection, document_loader: DocumentLoader
    ):  # X20
        retired_space = space_without_provider()
        Collection.objects.update(space=retired_space)
        collection.refresh_from_db()
        document_loader("One.")
        pause_left_s = shared_breaker(retired_space.pk).pause_left_s
        assert 4 < pause_left_s <= 5
        document_loader("Two.")
        assert shared_breaker(retired_space.pk).pause_left_s < pause_left_s  # the same pause as for the first document
        pauses_s = fetch_rows("SELECT extract(epoch FROM next_at - clock_timestamp())::float FROM document_version")
        assert all(3 < pause_s < 7 for (pause_s,) in pauses_s)

    def test_unavailable_next_space_delays_no_document(self, collection: Collection, document_loader: DocumentLoader):
        Collection.objects.update(next_space=space_without_provider())
        collection.refresh_from_db()
        version = document_loader()
        assert version.state == "ready"

    def test_vectors_follow_a_change_of_space_during_the_load(
        self, collection: Collection, document_loader: DocumentLoader
    ):
        store_result = store_document(collection, takes_lease=True)
        version = leases.leased_version(store_result.version.pk, store_result.lease_token)  # type: ignore[arg-type]
        steps.STEPS[version.state](version, 60)
        version.refresh_from_db()
        steps.STEPS[version.state](version, 60)
        version.refresh_from_db()
        steps.STEPS[version.state](version, 60)
        Collection.objects.update(space=space_without_provider())
        version = leases.leased_version(version.pk, version.lease_token)  # type: ignore[arg-type]
        assert not steps.publish_version(version, VersionState.READY)
        assert not Version.objects.get().is_searched


def test_document_deleted_during_its_load_leaves_nothing(collection: Collection):  # C42
    for step_count in range(4):
        store_result = store_document(collection, b"text", doc_id="x", takes_lease=True)
        for _ in range(step_count):
            version = leases.leased_version(store_result.version.pk, store_result.lease_token)  # type: ignore[arg-type]
            steps.STEPS[version.state](version, 60)
        deletion.delete_document(collection, "x")
        version = worker.process_in_request(store_result)
        deletion.purge_deleted(time.monotonic() + 10)
        assert set(row_counts().values()) == {0}
        assert Chunk.objects.count() == 0 and fetch_rows("SELECT * FROM term_count") == []

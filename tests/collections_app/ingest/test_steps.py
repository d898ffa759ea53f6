"""The steps from bytes to searchable chunks, and each final state."""

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from collections_app import embed, extract
from collections_app.documents import deletion
from collections_app.embed.spaces import circuit_breaker
from collections_app.extract import child_process
from collections_app.ingest import publishing, steps, time_budget, worker
from collections_app.models import Chunk, Collection, Document, EmbeddingSpace, ExtractedText, Version
from collections_app.models.documents import VersionState
from collections_app.queue import leases
from collections_app.vectors import chunk_vectors
from system.errors import Conflict
from tests.collections_app.builders import Loaded, make_collection
from tests.collections_app.extract.limits import limits_for_tests
from tests.collections_app.ingest.world import (
    accept,
    chunks,
    counted,
    end_pauses,
    expire_leases,
    rows,
    text,
    work,
    wrong_counts,
)

pytestmark = pytest.mark.django_db

MANY = 1000  # sentences: over 300 chunks, more than one batch of vectors


def space_without_provider(**columns: Any) -> EmbeddingSpace:
    return EmbeddingSpace.objects.create(**{"provider": "retired", "model": "gone", "dimensions": 8, **columns})


class TestSteps:
    def test_processed_document_is_searchable(self, collection: Collection, loaded: Loaded):
        version = loaded(text(20), metadata={"type": "guide"})
        assert (version.state, version.is_searched, version.lease_token, version.error) == ("ready", True, None, "")
        assert version.ready_at is not None
        assert version.characters == len(text(20))
        assert ExtractedText.objects.get(version=version).text == text(20)
        stored = chunks(version)
        assert [row[0] for row in stored] == list(range(version.chunks_count))
        assert all(text(20)[row[5] : row[6]] == row[1] for row in stored)
        assert all(row[7] and row[8] and len(row[9]) == 1 for row in stored)
        assert wrong_counts(collection) == []

    def test_request_and_the_worker_store_the_same(self, collection: Collection, loaded: Loaded):
        here = loaded(text(MANY))
        elsewhere = make_collection("elsewhere")
        accept(elsewhere, text(MANY).encode())
        assert work() == 1
        assert chunks(Version.objects.get(collection=elsewhere)) == chunks(here)

    def test_each_step_may_have_another_worker(self, collection: Collection, loaded: Loaded):  # C33
        undisturbed = chunks(loaded(text(MANY), into=make_collection("undisturbed")))
        version = accept(collection, text(MANY).encode()).version
        states = []
        while (lease := leases.take_next_lease()) is not None:
            held_values = leases.leased_version(lease.version_id, lease.token)
            states.append(held_values.state)
            steps.STEPS[held_values.state](held_values, 60.0)
            expire_leases()  # killed after what it stored
        assert states == [
            "queued",
            "splitting",
            *["embedding"] * (len(undisturbed) // chunk_vectors.CHUNK_BATCH_SIZE + 2),
        ]
        assert chunks(version) == undisturbed
        assert wrong_counts(collection) == []

    def test_each_document_has_its_own_language(self, collection: Collection, loaded: Loaded):
        german = "Der Drucker im dritten Stock hat kein Papier mehr. Bitte füllen Sie das Fach und melden Sie es uns. "
        english = "The printer on the third floor is out of paper, and nobody knows where there is some more of it. "
        result = [loaded(sentence * 5).text_configuration for sentence in (german, english, "4711; 0815")]

        assert result == ["german", "english", "simple"]
        assert Collection.objects.get().text_configuration == ""

    def test_language_of_a_collection_applies_to_each_document(self, collection: Collection, loaded: Loaded):
        Collection.objects.update(text_configuration="german")
        collection.refresh_from_db()

        result = loaded("The printer on the third floor is out of paper, and nobody knows where there is some. " * 5)

        assert result.text_configuration == "german"

    def test_request_stops_in_time_and_the_worker_continues(self, collection: Collection):
        accepted = accept(collection, text(MANY).encode(), takes_lease=True)
        version = worker.process_in_request(accepted, within_s=-1)
        assert (version.state, version.lease_token, version.attempt) == ("queued", None, 0)
        assert work() == 1
        assert Version.objects.get().state == "ready"

    def test_file_that_is_too_slow_for_a_request_is_left_to_the_worker(
        self, collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        (tmp_path / "slow.py").write_text("import time; time.sleep(60)")
        accepted = accept(collection, b"<p>Hi", format="html", filename="a.html", takes_lease=True)
        with monkeypatch.context() as patched:
            patched.setattr(child_process, "PARSER_PROGRAM", tmp_path / "slow.py")
            version = worker.process_in_request(accepted, within_s=1)
        assert (version.state, version.lease_token, version.error) == ("extracting", None, "")
        assert work() == 1
        assert Version.objects.get().state == "ready"

    def test_long_text_is_split_by_the_worker(
        self, collection: Collection, loaded: Loaded, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(time_budget, "LONG_TEXT_CHARACTERS", 1000)
        version = loaded(text(40))
        assert (version.state, version.lease_token, version.attempt, version.error) == ("splitting", None, 0, "")
        assert work() == 1
        assert Version.objects.get().state == "ready"
        # Whoever has more time, such as a command, does it.
        accepted = accept(collection, text(41).encode(), takes_lease=True)
        assert worker.process_in_request(accepted, within_s=600).state == "ready"

    @pytest.mark.parametrize("new", ["Short.", " "])
    def test_long_text_is_replaced_by_the_worker(
        self, collection: Collection, loaded: Loaded, monkeypatch: pytest.MonkeyPatch, new: str
    ):
        old = loaded(text(40), doc_id="x")
        monkeypatch.setattr(time_budget, "LONG_TEXT_CHARACTERS", 1000)
        version = loaded(new, doc_id="x", on_duplicate="replace")
        assert (version.lease_token, version.attempt, version.error) == (None, 0, "")
        assert Version.objects.get(is_searched=True) == old
        assert work() == 1
        assert Version.objects.get(is_searched=True) == version
        assert wrong_counts(collection) == []


class TestFinalStates:
    @pytest.mark.parametrize("data", [b"   \n\t ", b"\xef\xbb\xbf"])
    def test_document_without_text_is_empty(self, collection: Collection, data: bytes):
        version = worker.process_in_request(accept(collection, data, takes_lease=True))
        assert (version.state, version.is_searched, version.chunks_count) == ("empty", True, 0)
        assert version.warnings == [publishing.NO_TEXT_WARNING]

    def test_unreadable_file_fails_permanently(self, collection: Collection):
        version = worker.process_in_request(accept(collection, b"%PDF-1.4 broken", format="pdf", takes_lease=True))
        assert (version.state, version.error_code, version.is_searched) == ("failed", "damaged", False)
        assert version.error and work() == 0

    def test_failed_document_can_be_retried(self, collection: Collection):
        failed = accept(collection, b"%PDF-1.4 broken", format="pdf", takes_lease=True)
        worker.process_in_request(failed)
        Version.objects.update(format="text")  # as if a parser had been mended
        worker.retry_document(failed.document)
        assert work() == 1
        assert Version.objects.get().state == "ready"
        with pytest.raises(Conflict) as exc_info:
            worker.retry_document(Document.objects.get())
        assert exc_info.value.code == "not_failed"

    def test_internal_error_is_retried_and_reveals_nothing_of_the_document(
        self, collection: Collection, loaded: Loaded
    ):
        Collection.objects.update(text_configuration="no_such_language")
        version = loaded("A secret.")
        assert (version.state, version.attempt, version.error_code) == ("splitting", 1, "internal")
        assert "secret" not in version.error and "no_such" not in version.error
        Collection.objects.update(text_configuration="english")
        assert work() == 0
        end_pauses()
        assert work() == 1
        assert Version.objects.values_list("state", "error", "error_code").get() == ("ready", "", "")

    def test_statement_timeout_of_a_request_is_left_to_the_worker(self, collection: Collection, loaded: Loaded):
        """A worker with repeated statement timeouts fails in the end."""
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE FUNCTION cut_off() RETURNS trigger LANGUAGE plpgsql AS "
                "$$BEGIN RAISE 'over its time' USING ERRCODE = 'query_canceled'; END$$;"
                "CREATE TRIGGER cut_off BEFORE INSERT ON chunk_words EXECUTE FUNCTION cut_off()"
            )
        version = loaded(text(20))
        assert (version.state, version.lease_token, version.attempt, version.error) == ("splitting", None, 0, "")
        for attempt in range(1, leases.MAX_ATTEMPTS + 1):
            assert work() == 1
            version.refresh_from_db()
            assert (version.attempt, version.error_code) == (attempt, "internal")
            end_pauses()
        assert version.state == "failed" and work() == 0

    def test_file_that_got_no_processor_time_is_retried(
        self, collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        (tmp_path / "stopped.py").write_text("import time; time.sleep(60)")
        monkeypatch.setattr(child_process, "PARSER_PROGRAM", tmp_path / "stopped.py")
        monkeypatch.setattr(extract, "configured_limits", partial(limits_for_tests, wall_s=0.2))
        version = accept(collection, b"<p>Hi", format="html", filename="a.html").version
        for attempt in range(1, leases.MAX_ATTEMPTS + 1):
            assert version.state != "failed" and work() == 1
            version.refresh_from_db()
            assert (version.attempt, version.error_code) == (attempt, "limit_time")
            end_pauses()
        assert version.state == "failed" and work() == 0


class TestReplacing:
    def test_old_version_is_searched_until_the_new_one_is_ready(self, collection: Collection, loaded: Loaded):  # C41
        old = loaded("The old words.", doc_id="x")
        new = accept(collection, b"The new text.", doc_id="x", on_duplicate="replace").version
        assert list(Version.objects.filter(is_searched=True)) == [old]
        assert work() == 1
        assert list(Version.objects.all()) == [new]
        assert Version.objects.get().is_searched
        assert counted() == dict.fromkeys(counted(), 1)
        assert wrong_counts(collection) == []

    def test_old_version_stays_if_the_new_one_fails(self, collection: Collection, loaded: Loaded):
        old = loaded("The old words.", doc_id="x")
        options: dict[str, Any] = {"doc_id": "x", "on_duplicate": "replace"}
        failed = accept(collection, b"%PDF-1.4 broken", format="pdf", **options).version
        assert work() == 1
        assert list(Version.objects.filter(is_searched=True)) == [old]
        assert Document.objects.get().newest == Version.objects.get(pk=failed.pk, state="failed")

        accept(collection, b"Better.", **options)
        work()
        deletion.purge_deleted(time.monotonic() + 10)
        assert Version.objects.get().generation == 3

    def test_replacement_without_text_is_empty(self, collection: Collection, loaded: Loaded):
        loaded("The old words.", doc_id="x")
        new = loaded(" ", doc_id="x", on_duplicate="replace")
        assert (Version.objects.get(), new.state, new.is_searched) == (new, "empty", True)
        assert (counted()["chunk"], rows("SELECT * FROM term_count")) == (0, [])

    def test_newer_version_overtakes_an_older_one(self, collection: Collection):
        for number in range(5):
            accept(collection, b"%d" % number, doc_id="x", on_duplicate="replace", user_id=str(9 - number))
        work()
        deletion.purge_deleted(time.monotonic() + 10)
        version = Version.objects.get()
        assert (version.generation, version.state, version.is_searched) == (5, "ready", True)
        assert wrong_counts(collection) == []

    def test_long_old_version_is_purged_in_batches(self, collection: Collection, loaded: Loaded, settings: Any):
        Collection.objects.update(chunk_size=100, chunk_overlap=50)
        collection.refresh_from_db()
        old = loaded(text(2500), doc_id="x")
        assert old.chunks_count > deletion.CHUNK_BATCH_SIZE
        new = loaded("Short.", doc_id="x", on_duplicate="replace")
        assert Version.objects.filter(is_searched=True).get() == new
        assert counted()["document_version"] == 2
        assert not deletion.purge_deleted(time.monotonic() + 60)
        assert Version.objects.get() == new
        assert wrong_counts(collection) == []


class TestProvider:
    def test_long_outage_fails_no_document(self, collection: Collection, loaded: Loaded):  # C29
        Collection.objects.update(space=space_without_provider())
        collection.refresh_from_db()
        version = loaded()
        for _ in range(20):
            assert (version.state, version.error_code, version.attempt) == ("embedding", "embedding_misconfigured", 0)
            assert version.error
            end_pauses()
            embed.reset_providers()
            assert work() == 1
            version.refresh_from_db()
        Collection.objects.update(space=embed.default_space())  # as a change of the model would
        end_pauses()
        assert work() == 1
        assert Version.objects.values_list("state", "error").get() == ("ready", "")

    def test_other_documents_of_the_space_wait_during_the_pause(self, collection: Collection, loaded: Loaded):  # X20
        gone = space_without_provider()
        Collection.objects.update(space=gone)
        collection.refresh_from_db()
        loaded("One.")
        left = circuit_breaker(gone.pk).pause_left_s
        assert 4 < left <= 5
        loaded("Two.")
        assert circuit_breaker(gone.pk).pause_left_s < left  # the pause of the first, no longer one of its own
        waits = rows("SELECT extract(epoch FROM next_at - clock_timestamp())::float FROM document_version")
        assert all(3 < wait < 7 for (wait,) in waits)

    def test_next_space_is_filled_too_and_does_not_delay(self, collection: Collection, loaded: Loaded):
        Collection.objects.update(next_space=space_without_provider())
        collection.refresh_from_db()
        version = loaded()
        assert version.state == "ready"

    def test_vectors_follow_a_change_of_space_during_the_load(self, collection: Collection, loaded: Loaded):
        accepted = accept(collection, takes_lease=True)
        version = leases.leased_version(accepted.version.pk, accepted.lease_token)  # type: ignore[arg-type]
        steps.STEPS[version.state](version, 60)
        version.refresh_from_db()
        steps.STEPS[version.state](version, 60)
        version.refresh_from_db()
        steps.STEPS[version.state](version, 60)
        Collection.objects.update(space=space_without_provider())
        version = leases.leased_version(version.pk, version.lease_token)  # type: ignore[arg-type]
        assert not publishing.publish_version(version, VersionState.READY)
        assert not Version.objects.get().is_searched


def test_document_deleted_during_its_load_leaves_nothing(collection: Collection):  # C42
    for done in range(4):
        accepted = accept(collection, b"text", doc_id="x", takes_lease=True)
        for _ in range(done):
            version = leases.leased_version(accepted.version.pk, accepted.lease_token)  # type: ignore[arg-type]
            steps.STEPS[version.state](version, 60)
        deletion.delete_document(collection, "x")
        version = worker.process_in_request(accepted)
        deletion.purge_deleted(time.monotonic() + 10)
        assert set(counted().values()) == {0}
        assert Chunk.objects.count() == 0 and rows("SELECT * FROM term_count") == []

"""A collection changes to another model while it is searched and loaded."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from collections_app import embed, tasks
from collections_app.embed import EmbeddingUnavailable, local_model
from collections_app.models import Chunk, ChunkVector, Collection, EmbeddingSpace, Version
from collections_app.models.documents import VersionState
from collections_app.vectors import chunk_vectors, reembedding, vector_indexes
from system.errors import NotFound
from tests.collections_app.vector_rows import (
    DIMENSIONS,
    insert_vectors,
    make_collection,
    make_local_model,
    make_space,
    make_version,
    run_statement,
    stored_vectors,
    vector_of,
)

pytestmark = pytest.mark.django_db(transaction=True)


class FakeModel:
    """A fake model for the new space; `during_request` is called during each request and may fail."""

    def __init__(self) -> None:
        self.embedded_texts: list[str] = []
        self.during_request: Callable[[], Any] = lambda: None

    def load(self) -> Callable[[list[str]], Any]:
        encode = make_local_model("letters-b", self.embedded_texts).load()

        def embed(texts: list[str]) -> Any:
            self.during_request()
            return encode(texts)

        return embed


@pytest.fixture
def fake_model(monkeypatch: pytest.MonkeyPatch) -> FakeModel:
    fake = FakeModel()
    new_model = local_model.LocalModel(name="letters-b", dimensions=DIMENSIONS, load=fake.load)
    for model in (new_model, make_local_model("letters-a")):
        monkeypatch.setitem(local_model.LOCAL_MODELS, model.name, model)
    monkeypatch.setattr(local_model, "_encoders", {})
    vector_indexes.clear_cache()
    return fake


@pytest.fixture
def old_space(fake_model: FakeModel) -> EmbeddingSpace:
    return make_space("letters-a")


@pytest.fixture
def new_space(fake_model: FakeModel) -> EmbeddingSpace:
    return make_space("letters-b")


@pytest.fixture
def collection(old_space: EmbeddingSpace) -> Collection:
    collection = make_collection(old_space)
    make_version(collection, "doc-1", 3)
    make_version(collection, "doc-2", 300)
    return collection


def reembed(collection: Collection, timeout_s: float = 60) -> Collection:
    reembedding.continue_reembedding(collection, time.monotonic() + timeout_s)
    collection.refresh_from_db()
    return collection


def expire_running_searches(collection: Collection) -> Collection:
    """Ends the period in which running searches may still use the old vectors."""
    Collection.objects.filter(pk=collection.pk).update(reembed_at=timezone.now())
    return reembed(collection)


def has_correct_vectors(collection: Collection, space: EmbeddingSpace) -> bool:
    """Whether each searchable chunk has the expected vector in the space."""
    chunks = Chunk.objects.filter(version__collection=collection, version__is_searched=True)
    expected_vectors = {
        text: vector_of(space.model, f"Printers\n{text}") for text in chunks.values_list("text", flat=True)
    }
    vectors = stored_vectors(collection, space)
    return all(vectors.get(text) == pytest.approx(vector, abs=2e-3) for text, vector in expected_vectors.items())


def test_searches_change_to_complete_vectors_and_the_old_ones_are_deleted(
    collection: Collection, old_space: Any, new_space: Any
):
    reembedding.start_reembedding(collection, new_space)
    assert (collection.space, collection.next_space) == (old_space, new_space)
    assert list(reembedding.due_collections()) == [collection]

    reembed(collection)

    assert (collection.space, collection.next_space) == (new_space, None)
    assert has_correct_vectors(collection, new_space)
    expire_running_searches(collection)
    assert stored_vectors(collection, old_space) == {}
    assert not collection.has_old_vectors and list(reembedding.due_collections()) == []
    assert collection.history.first().space_id == new_space.pk, "the change of configuration is recorded"


def test_old_vectors_stay_for_running_searches(collection: Collection, old_space: Any, new_space: Any):
    reembedding.start_reembedding(collection, new_space)
    reembed(collection)
    reembed(collection)  # another worker has already selected it

    assert has_correct_vectors(collection, old_space) and collection.has_old_vectors
    assert list(reembedding.due_collections()) == []
    reembedding.start_reembedding(collection, new_space)  # it already has this space
    reembed(collection)
    assert has_correct_vectors(collection, old_space)
    assert expire_running_searches(collection).space == new_space
    assert stored_vectors(collection, old_space) == {}


def test_each_turn_makes_progress_however_short(collection: Collection, old_space: Any, new_space: Any):
    reembedding.start_reembedding(collection, new_space)
    stored_counts: list[int] = []
    while reembed(collection, -1).space == old_space and len(stored_counts) < 9:
        assert list(reembedding.due_collections()) == [collection]
        stored_counts.append(len(stored_vectors(collection, new_space)))

    assert stored_counts[:2] == [256, 303]
    assert collection.space == new_space and has_correct_vectors(collection, new_space)


@contextmanager
def searches_for_missing_vectors() -> Iterator[list[Any]]:
    """The parameters of each statement that searches for missing vectors."""
    parameters: list[Any] = []

    def record_parameters(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql == chunk_vectors.MISSING_SQL:
            parameters.append(params)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(record_parameters):
        yield parameters


def test_filled_versions_are_not_searched_in_each_turn(
    collection: Collection, old_space: Any, new_space: Any, monkeypatch: Any
):
    monkeypatch.setattr(reembedding, "VERSION_BATCH_SIZE", 1)
    monkeypatch.setattr(chunk_vectors, "CHUNK_BATCH_SIZE", 100)
    second_version = Version.objects.get(document__doc_id="doc-2")
    reembedding.start_reembedding(collection, new_space)
    reembed(collection, -1)
    reembed(collection, -1)
    with searches_for_missing_vectors() as parameters:
        reembed(collection, -1)
    assert [version_ids for version_ids, *_ in parameters] == [[second_version.pk]]
    reembed(collection)
    assert collection.space == new_space and has_correct_vectors(collection, new_space)


def test_missing_vectors_are_searched_after_the_last_stored_one(
    collection: Collection, fake_model: FakeModel, new_space: Any, monkeypatch: Any
):
    monkeypatch.setattr(chunk_vectors, "CHUNK_BATCH_SIZE", 100)
    reembedding.start_reembedding(collection, new_space)
    with searches_for_missing_vectors() as parameters:
        reembed(collection)
    assert [last_id for _, _, last_id, *_ in parameters][:5] == [-1, 96, 196, 296, 299]


def test_interrupted_change_continues_where_it_stopped(collection: Collection, fake_model: FakeModel, new_space: Any):
    reembedding.start_reembedding(collection, new_space)

    def count_and_stop() -> None:
        if len(fake_model.embedded_texts) > 256:
            raise KeyboardInterrupt

    fake_model.during_request = count_and_stop
    with pytest.raises(KeyboardInterrupt):
        reembed(collection)
    assert len(stored_vectors(collection, new_space)) == 256
    fake_model.during_request = lambda: None
    fake_model.embedded_texts.clear()

    assert reembed(collection).space == new_space
    assert len([text for text in fake_model.embedded_texts if text.startswith("Printers")]) == 303 - 256


def test_searches_see_the_old_vectors_until_the_new_are_complete(
    collection: Collection, fake_model: FakeModel, old_space: Any, new_space: Any
):
    observations: list[bool] = []

    def search_during_change() -> None:
        observations.append(Collection.objects.get().space == old_space and has_correct_vectors(collection, old_space))

    fake_model.during_request = search_during_change
    reembedding.start_reembedding(collection, new_space)
    reembed(collection)

    assert len(observations) >= 3 and all(observations)


class TestUnavailableProvider:
    @pytest.fixture
    def interrupted_collection(self, collection: Collection, fake_model: FakeModel, new_space: Any) -> Collection:
        def raise_unavailable() -> None:
            raise EmbeddingUnavailable("The embedding provider is unavailable.", retry_after_s=99)

        fake_model.during_request = raise_unavailable
        reembedding.start_reembedding(collection, new_space)
        return reembed(collection)

    def test_error_is_stored_and_reembedding_is_retried_later(
        self, interrupted_collection: Collection, old_space: Any, new_space: Any
    ):
        assert (interrupted_collection.space, interrupted_collection.next_space) == (old_space, new_space)
        assert interrupted_collection.reembed_error == "The embedding provider is unavailable."
        assert (
            interrupted_collection.reembed_at is not None
            and interrupted_collection.reembed_at > timezone.now() + timedelta(seconds=90)
        )
        assert list(reembedding.due_collections()) == []

    def test_pauses_grow(self, interrupted_collection: Collection):
        for _ in range(8):
            reembed(interrupted_collection)

        assert interrupted_collection.reembed_attempt == 9
        assert (
            interrupted_collection.reembed_at is not None
            and interrupted_collection.reembed_at > timezone.now() + timedelta(seconds=1000)
        )

    def test_reembedding_completes_when_the_provider_is_back(
        self, interrupted_collection: Collection, fake_model: FakeModel, new_space: Any
    ):
        fake_model.during_request = lambda: None
        embed.reset_providers()  # the pause of the provider has ended
        Collection.objects.update(reembed_at=timezone.now())
        assert list(reembedding.due_collections()) == [interrupted_collection]

        assert reembed(interrupted_collection).space == new_space
        assert (interrupted_collection.reembed_error, interrupted_collection.reembed_attempt) == ("", 0)

    def test_space_without_a_configured_provider_waits_too(self, collection: Collection, old_space: Any):
        reembedding.start_reembedding(
            collection, EmbeddingSpace.objects.create(provider="openai", model="gone", dimensions=8)
        )

        assert reembed(collection).space == old_space
        assert "No provider is configured" in collection.reembed_error


class TestConcurrentChanges:
    """Changes during a request to the provider."""

    @pytest.fixture
    def run_during_embedding(
        self, collection: Collection, fake_model: FakeModel, new_space: Any
    ) -> Callable[[Callable[[], Any]], None]:
        reembedding.start_reembedding(collection, new_space)

        def run_once(change: Callable[[], Any]) -> None:
            def change_and_clear() -> None:
                fake_model.during_request = lambda: None
                change()

            fake_model.during_request = change_and_clear

        return run_once

    def test_document_that_becomes_ready_is_not_left_behind(
        self, collection: Any, run_during_embedding: Any, old_space: Any, new_space: Any
    ):
        run_during_embedding(lambda: make_version(collection, "doc-3", 4, space=old_space))

        assert reembed(collection).space == new_space
        assert has_correct_vectors(collection, new_space) and len(stored_vectors(collection, new_space)) == 307

    def test_document_ready_at_the_last_moment_delays_the_change(
        self, collection: Any, old_space: Any, new_space: Any, monkeypatch: Any
    ):
        reembedding.start_reembedding(collection, new_space)
        original_check = reembedding._is_index_ready

        def add_document_late(*args: Any) -> bool:
            monkeypatch.setattr(reembedding, "_is_index_ready", original_check)
            make_version(collection, "doc-3", 4, space=old_space)
            return original_check(*args)

        monkeypatch.setattr(reembedding, "_is_index_ready", add_document_late)

        assert reembed(collection).space == old_space
        assert reembed(collection).space == new_space
        assert has_correct_vectors(collection, new_space)

    def test_document_ready_with_new_vectors_does_not_delay_the_change(
        self, collection: Any, old_space: Any, new_space: Any, monkeypatch: Any
    ):
        reembedding.start_reembedding(collection, new_space)
        original_check = reembedding._is_index_ready

        def add_document_late(*args: Any) -> bool:
            insert_vectors(make_version(collection, "doc-3", 4, space=old_space), new_space)
            return original_check(*args)

        monkeypatch.setattr(reembedding, "_is_index_ready", add_document_late)

        assert reembed(collection).space == new_space
        assert has_correct_vectors(collection, new_space)

    def test_deleted_document_is_skipped(self, collection: Collection, run_during_embedding: Any, new_space: Any):
        run_during_embedding(lambda: Version.objects.filter(document__doc_id="doc-1").delete())

        assert reembed(collection).space == new_space
        assert has_correct_vectors(collection, new_space) and len(stored_vectors(collection, new_space)) == 300

    def test_replaced_document_has_vectors_of_its_new_content(
        self, collection: Any, run_during_embedding: Any, old_space: Any, new_space: Any
    ):
        def replace_document() -> None:
            Version.objects.filter(document__doc_id="doc-2").delete()
            make_version(collection, "doc-2", 5, space=old_space)

        run_during_embedding(replace_document)

        assert reembed(collection).space == new_space
        assert has_correct_vectors(collection, new_space) and len(stored_vectors(collection, new_space)) == 8

    def test_document_being_embedded_gets_vectors_too(self, collection: Any, new_space: Any):
        pending_version = make_version(collection, "doc-3", 4, is_searched=False)
        reembedding.start_reembedding(collection, new_space)

        assert reembed(collection).space == new_space
        assert not chunk_vectors.chunks_to_embed([pending_version.pk], new_space.pk, limit=1)

    def test_deleted_collection_is_left_alone(
        self, collection: Collection, run_during_embedding: Any, old_space: Any, fake_model: Any
    ):
        run_during_embedding(lambda: Collection.objects.update(deleted_at=timezone.now()))

        assert reembed(collection).space == old_space
        assert list(reembedding.due_collections()) == []
        with pytest.raises(NotFound):
            reembedding.start_reembedding(collection, old_space)

    def test_another_change_of_model_takes_effect_with_the_next_batch(
        self, collection: Collection, run_during_embedding: Any, old_space: Any, new_space: Any
    ):
        run_during_embedding(lambda: reembedding.start_reembedding(Collection.objects.get(), old_space))
        reembed(collection)
        assert (collection.space, collection.next_space) == (old_space, None)
        assert collection.has_old_vectors, "the vectors of the abandoned space are deleted"

        expire_running_searches(collection)
        assert stored_vectors(collection, new_space) == {} and has_correct_vectors(collection, old_space)
        assert list(reembedding.due_collections()) == []


def test_changing_back_reuses_vectors_that_are_not_deleted_yet(collection: Collection, old_space: Any, new_space: Any):
    reembedding.start_reembedding(collection, new_space)
    reembed(collection)
    reembedding.start_reembedding(collection, old_space)

    assert len(stored_vectors(collection, old_space)) == 303
    assert collection.has_old_vectors


class TestErrors:
    """Internal errors and database errors, not those of a provider."""

    @pytest.fixture
    def failed_collection(self, collection: Collection, fake_model: FakeModel, new_space: Any) -> Collection:
        def raise_error() -> None:
            raise MemoryError("-".join(["canary", "text"]))

        fake_model.during_request = raise_error
        reembedding.start_reembedding(collection, new_space)
        return reembed(collection)

    def test_reembedding_is_retried_and_the_error_text_is_hidden(self, failed_collection: Collection, old_space: Any):
        with capture_logs() as log_entries:
            Collection.objects.update(reembed_attempt=0)
            reembed(failed_collection)

        assert (failed_collection.space, failed_collection.reembed_attempt) == (old_space, 1)
        assert failed_collection.reembed_error == "Internal error: MemoryError."
        assert log_entries[0]["event"] == "reembedding_failed" and "canary-text" not in str(log_entries)
        assert list(reembedding.due_collections()) == []

    def test_other_collections_get_their_turn(
        self, collection: Collection, fake_model: FakeModel, old_space: Any, new_space: Any
    ):
        def fail_once() -> None:
            fake_model.during_request = lambda: None
            raise MemoryError

        other_collection = make_collection(old_space, "other")
        make_version(other_collection, "doc-1", 5)
        for target in (collection, other_collection):
            reembedding.start_reembedding(target, new_space)
        fake_model.during_request = fail_once
        tasks.fill_new_spaces()

        other_collection.refresh_from_db()
        assert other_collection.space == new_space and has_correct_vectors(other_collection, new_space)

    def test_closed_database_connection_is_replaced(
        self, collection: Collection, fake_model: FakeModel, new_space: Any
    ):
        def close_connection() -> None:
            fake_model.during_request = lambda: None
            run_statement("SELECT pg_terminate_backend(pg_backend_pid())")

        fake_model.during_request = close_connection
        reembedding.start_reembedding(collection, new_space)

        assert reembed(collection).reembed_error == "Internal error: OperationalError."
        Collection.objects.update(reembed_at=timezone.now())
        assert reembed(collection).space == new_space


def test_only_one_process_works_on_a_collection(collection: Collection, fake_model: FakeModel, new_space: Any):
    is_working, may_finish, initial_count = threading.Event(), threading.Event(), len(fake_model.embedded_texts)

    def wait_until_allowed() -> None:
        is_working.set()
        may_finish.wait(10)

    def reembed_first() -> None:
        reembedding.continue_reembedding(collection, time.monotonic() + 60)
        connection.close()

    fake_model.during_request = wait_until_allowed
    reembedding.start_reembedding(collection, new_space)
    thread = threading.Thread(target=reembed_first)
    thread.start()
    assert is_working.wait(10)
    reembedding.continue_reembedding(collection, time.monotonic() + 60)
    assert len(fake_model.embedded_texts) == initial_count
    may_finish.set()
    thread.join()
    collection.refresh_from_db()

    assert collection.space == new_space


@pytest.mark.usefixtures("vector_index_cleanup")
def test_large_collection_waits_for_its_index(collection: Collection, old_space: Any, new_space: Any, monkeypatch: Any):
    monkeypatch.setattr(vector_indexes, "INDEX_THRESHOLD", 1000)
    reembedding.start_reembedding(collection, new_space)

    assert reembed(collection).space == old_space
    assert "index is being built" in collection.reembed_error and list(reembedding.due_collections()) == []
    assert vector_indexes.index_name(collection.pk, new_space.pk) in vector_indexes.maintain_indexes()
    assert reembed(collection).space == new_space
    assert vector_indexes.is_index_usable(collection.pk, new_space.pk)


def test_other_collections_keep_their_vectors(collection: Collection, old_space: Any, new_space: Any):
    other_collection = make_collection(old_space, "other")
    make_version(other_collection, "doc-1", 5)
    reembedding.start_reembedding(collection, new_space)
    reembed(collection)

    assert has_correct_vectors(other_collection, old_space) and len(stored_vectors(other_collection, old_space)) == 5


def test_empty_collection_changes_immediately(old_space: Any, new_space: Any):
    empty_collection = make_collection(old_space)
    reembedding.start_reembedding(empty_collection, new_space)

    assert reembed(empty_collection).space == new_space


STEP_LISTS = st.lists(
    st.tuples(st.sampled_from(("load", "delete", "replace", "work", "short", "start", "stop")), st.integers(1, 3)),
    max_size=8,
)


@pytest.mark.parametrize("examples", [8, pytest.param(150, marks=pytest.mark.nightly)])
def test_every_searched_chunk_always_has_its_vector(
    examples: int, fake_model: FakeModel, old_space: Any, new_space: Any
):  # C54
    @settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
    )
    @given(STEP_LISTS)
    def check_steps(steps: list[tuple[str, int]]) -> None:
        ChunkVector.objects.all().delete()
        collection = make_collection(old_space, f"collection-{Collection.objects.count()}")
        for step, number in steps:
            apply_step(collection, step, number, {"start": new_space, "stop": old_space})
            collection.refresh_from_db()
            assert has_correct_vectors(collection, collection.space)
        reembedding.start_reembedding(collection, new_space)
        assert reembed(collection).space == new_space and has_correct_vectors(collection, new_space)
        expire_running_searches(collection)
        assert stored_vectors(collection, old_space) == {}

    check_steps()


def apply_step(collection: Collection, step: str, number: int, spaces: dict[str, EmbeddingSpace]) -> None:
    if step in ("load", "replace", "delete"):
        Version.objects.filter(collection=collection, document__doc_id=f"doc-{number}").delete()
    if step in ("load", "replace"):
        make_version(collection, f"doc-{number}", number, space=Collection.objects.get(pk=collection.pk).space)
    if step in ("work", "short"):
        reembed(collection, 60 if step == "work" else -1)
    if step in spaces:
        reembedding.start_reembedding(collection, spaces[step])


def test_failed_version_does_not_delay_the_change(collection: Collection, new_space: Any):
    failed_version = make_version(collection, "doc-3", 2, is_searched=False)
    Version.objects.filter(pk=failed_version.pk).update(state=VersionState.FAILED)
    reembedding.start_reembedding(collection, new_space)

    assert reembed(collection).space == new_space


def test_documents_waiting_for_the_old_provider_are_processed_immediately(
    collection: Collection, old_space: Any, new_space: Any, monkeypatch: pytest.MonkeyPatch
):
    version = make_version(collection, "doc-3", 2)
    retry_at = timezone.now() + timedelta(seconds=100)
    Version.objects.filter(pk=version.pk).update(state=VersionState.EMBEDDING, is_searched=False, next_at=retry_at)
    woken_tasks: list[str] = []
    monkeypatch.setattr("collections_app.queue.worker_signals.wake_worker", woken_tasks.append)
    reembedding.start_reembedding(collection, new_space)
    reembed(collection)

    version.refresh_from_db()
    assert collection.space == new_space
    assert version.next_at <= timezone.now() and woken_tasks == ["collections_app.tasks.work"]

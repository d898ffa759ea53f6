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
from hypothesis import strategies as some
from structlog.testing import capture_logs

from collections_app import embed, tasks
from collections_app.embed import EmbeddingUnavailable, local_model
from collections_app.models import Chunk, ChunkVector, Collection, EmbeddingSpace, Version
from collections_app.models.documents import VersionState
from collections_app.vectors import chunk_vectors, reembedding, vector_indexes
from system.errors import NotFound
from tests.collections_app import vector_rows as rows

pytestmark = pytest.mark.django_db(transaction=True)


class Model:
    """A fake model for the new space; calls `then` during a request, which may fail."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.then: Callable[[], Any] = lambda: None

    def load(self) -> Callable[[list[str]], Any]:
        encode = rows.local_model("letters-b", self.asked).load()

        def embed(texts: list[str]) -> Any:
            self.then()
            return encode(texts)

        return embed


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    model = Model()
    new = local_model.LocalModel(name="letters-b", dimensions=rows.DIMENSIONS, load=model.load)
    for space in (new, rows.local_model("letters-a")):
        monkeypatch.setitem(local_model.LOCAL_MODELS, space.name, space)
    monkeypatch.setattr(local_model, "_loaded", {})
    vector_indexes.clear_cache()
    return model


@pytest.fixture
def old(model: Model) -> EmbeddingSpace:
    return rows.make_space("letters-a")


@pytest.fixture
def new(model: Model) -> EmbeddingSpace:
    return rows.make_space("letters-b")


@pytest.fixture
def collection(old: EmbeddingSpace) -> Collection:
    collection = rows.make_collection(old)
    rows.make_version(collection, "doc-1", 3)
    rows.make_version(collection, "doc-2", 300)
    return collection


def work(collection: Collection, seconds: float = 60) -> Collection:
    reembedding.continue_reembedding(collection, time.monotonic() + seconds)
    collection.refresh_from_db()
    return collection


def expire_running_searches(collection: Collection) -> Collection:
    """Ends the minute in which running searches may still use the old vectors."""
    Collection.objects.filter(pk=collection.pk).update(reembed_at=timezone.now())
    return work(collection)


def has_exactly_its_vectors(collection: Collection, space: EmbeddingSpace) -> bool:
    """Whether each searchable chunk has exactly its own vector in the space."""
    chunks = Chunk.objects.filter(version__collection=collection, version__is_searched=True)
    expected = {text: rows.vector(space.model, f"Printers\n{text}") for text in chunks.values_list("text", flat=True)}
    result = rows.vectors_in(collection, space)
    return all(result.get(text) == pytest.approx(vector, abs=2e-3) for text, vector in expected.items())


def test_searches_change_to_complete_vectors_and_the_old_ones_are_deleted(collection: Collection, old: Any, new: Any):
    reembedding.start_reembedding(collection, new)
    assert (collection.space, collection.next_space) == (old, new)
    assert list(reembedding.due_collections()) == [collection]

    work(collection)

    assert (collection.space, collection.next_space) == (new, None)
    assert has_exactly_its_vectors(collection, new)
    expire_running_searches(collection)
    assert rows.vectors_in(collection, old) == {}
    assert not collection.has_old_vectors and list(reembedding.due_collections()) == []
    assert collection.history.first().space_id == new.pk, "it is configuration"


def test_old_vectors_stay_for_running_searches(collection: Collection, old: Any, new: Any):
    reembedding.start_reembedding(collection, new)
    work(collection)
    work(collection)  # another worker that had found it due before

    assert has_exactly_its_vectors(collection, old) and collection.has_old_vectors
    assert list(reembedding.due_collections()) == []
    reembedding.start_reembedding(collection, new)  # where it is already
    work(collection)
    assert has_exactly_its_vectors(collection, old)
    assert expire_running_searches(collection).space == new
    assert rows.vectors_in(collection, old) == {}


def test_each_turn_makes_progress_however_short(collection: Collection, old: Any, new: Any):
    reembedding.start_reembedding(collection, new)
    stored: list[int] = []
    while work(collection, -1).space == old and len(stored) < 9:
        assert list(reembedding.due_collections()) == [collection]
        stored.append(len(rows.vectors_in(collection, new)))

    assert stored[:2] == [256, 303]
    assert collection.space == new and has_exactly_its_vectors(collection, new)


@contextmanager
def searches_for_missing_vectors() -> Iterator[list[Any]]:
    """The parameters of each statement that searches for missing vectors."""
    results: list[Any] = []

    def record(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql == chunk_vectors.MISSING_SQL:
            results.append(params)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(record):
        yield results


def test_filled_versions_are_not_searched_in_each_turn(collection: Collection, old: Any, new: Any, monkeypatch: Any):
    monkeypatch.setattr(reembedding, "VERSION_BATCH_SIZE", 1)
    monkeypatch.setattr(chunk_vectors, "CHUNK_BATCH_SIZE", 100)
    second = Version.objects.get(document__doc_id="doc-2")
    reembedding.start_reembedding(collection, new)
    work(collection, -1)
    work(collection, -1)
    with searches_for_missing_vectors() as statements:
        work(collection, -1)
    assert [versions for versions, *_ in statements] == [[second.pk]]
    work(collection)
    assert collection.space == new and has_exactly_its_vectors(collection, new)


def test_missing_vectors_are_searched_after_the_last_stored_one(
    collection: Collection, model: Model, new: Any, monkeypatch: Any
):
    monkeypatch.setattr(chunk_vectors, "CHUNK_BATCH_SIZE", 100)
    reembedding.start_reembedding(collection, new)
    with searches_for_missing_vectors() as statements:
        work(collection)
    assert [after for _, _, after, *_ in statements][:5] == [-1, 96, 196, 296, 299]


def test_interrupted_change_continues_where_it_stopped(collection: Collection, model: Model, new: Any):
    reembedding.start_reembedding(collection, new)

    def enough() -> None:
        if len(model.asked) > 256:
            raise KeyboardInterrupt

    model.then = enough
    with pytest.raises(KeyboardInterrupt):
        work(collection)
    assert len(rows.vectors_in(collection, new)) == 256
    model.then = lambda: None
    model.asked.clear()

    assert work(collection).space == new
    assert len([text for text in model.asked if text.startswith("Printers")]) == 303 - 256


def test_searches_see_the_old_vectors_until_the_new_are_complete(
    collection: Collection, model: Model, old: Any, new: Any
):
    seen_values: list[bool] = []

    def look() -> None:
        seen_values.append(Collection.objects.get().space == old and has_exactly_its_vectors(collection, old))

    model.then = look
    reembedding.start_reembedding(collection, new)
    work(collection)

    assert len(seen_values) >= 3 and all(seen_values)


class TestUnavailableProvider:
    @pytest.fixture
    def away(self, collection: Collection, model: Model, new: Any) -> Collection:
        def fail() -> None:
            raise EmbeddingUnavailable("The embedding provider is on holiday.", retry_after_s=99)

        model.then = fail
        reembedding.start_reembedding(collection, new)
        return work(collection)

    def test_error_is_stored_and_it_is_retried_later(self, away: Collection, old: Any, new: Any):
        assert (away.space, away.next_space) == (old, new)
        assert away.reembed_error == "The embedding provider is on holiday."
        assert away.reembed_at is not None and away.reembed_at > timezone.now() + timedelta(seconds=90)
        assert list(reembedding.due_collections()) == []

    def test_pauses_grow(self, away: Collection):
        for _ in range(8):
            work(away)

        assert away.reembed_attempt == 9
        assert away.reembed_at is not None and away.reembed_at > timezone.now() + timedelta(seconds=1000)

    def test_it_completes_when_the_provider_is_back(self, away: Collection, model: Model, new: Any):
        model.then = lambda: None
        embed.reset_providers()  # the pause of the provider is over
        Collection.objects.update(reembed_at=timezone.now())
        assert list(reembedding.due_collections()) == [away]

        assert work(away).space == new
        assert (away.reembed_error, away.reembed_attempt) == ("", 0)

    def test_space_without_a_configured_provider_waits_too(self, collection: Collection, old: Any):
        reembedding.start_reembedding(
            collection, EmbeddingSpace.objects.create(provider="openai", model="gone", dimensions=8)
        )

        assert work(collection).space == old
        assert "No provider is configured" in collection.reembed_error


class TestConcurrentChanges:
    """Changes during a request to the provider."""

    @pytest.fixture
    def meanwhile(self, collection: Collection, model: Model, new: Any) -> Callable[[Callable[[], Any]], None]:
        reembedding.start_reembedding(collection, new)

        def once(happens: Callable[[], Any]) -> None:
            def then() -> None:
                model.then = lambda: None
                happens()

            model.then = then

        return once

    def test_document_that_becomes_ready_is_not_left_behind(self, collection: Any, meanwhile: Any, old: Any, new: Any):
        meanwhile(lambda: rows.make_version(collection, "doc-3", 4, space=old))

        assert work(collection).space == new
        assert has_exactly_its_vectors(collection, new) and len(rows.vectors_in(collection, new)) == 307

    def test_document_ready_at_the_last_moment_delays_the_change(
        self, collection: Any, old: Any, new: Any, monkeypatch: Any
    ):
        reembedding.start_reembedding(collection, new)
        last_look = reembedding._is_index_ready

        def late(*args: Any) -> bool:
            monkeypatch.setattr(reembedding, "_is_index_ready", last_look)
            rows.make_version(collection, "doc-3", 4, space=old)
            return last_look(*args)

        monkeypatch.setattr(reembedding, "_is_index_ready", late)

        assert work(collection).space == old
        assert work(collection).space == new
        assert has_exactly_its_vectors(collection, new)

    def test_document_ready_with_new_vectors_does_not_delay_the_change(
        self, collection: Any, old: Any, new: Any, monkeypatch: Any
    ):
        reembedding.start_reembedding(collection, new)
        last_look = reembedding._is_index_ready

        def late(*args: Any) -> bool:
            rows.give_vectors(rows.make_version(collection, "doc-3", 4, space=old), new)
            return last_look(*args)

        monkeypatch.setattr(reembedding, "_is_index_ready", late)

        assert work(collection).space == new
        assert has_exactly_its_vectors(collection, new)

    def test_deleted_document_is_skipped(self, collection: Collection, meanwhile: Any, new: Any):
        meanwhile(lambda: Version.objects.filter(document__doc_id="doc-1").delete())

        assert work(collection).space == new
        assert has_exactly_its_vectors(collection, new) and len(rows.vectors_in(collection, new)) == 300

    def test_replaced_document_has_vectors_of_its_new_content(
        self, collection: Any, meanwhile: Any, old: Any, new: Any
    ):
        def replace() -> None:
            Version.objects.filter(document__doc_id="doc-2").delete()
            rows.make_version(collection, "doc-2", 5, space=old)

        meanwhile(replace)

        assert work(collection).space == new
        assert has_exactly_its_vectors(collection, new) and len(rows.vectors_in(collection, new)) == 8

    def test_document_being_embedded_gets_vectors_too(self, collection: Any, new: Any):
        pending = rows.make_version(collection, "doc-3", 4, searched=False)
        reembedding.start_reembedding(collection, new)

        assert work(collection).space == new
        assert not chunk_vectors.find_missing([pending.pk], new.pk, limit=1)

    def test_deleted_collection_is_left_alone(self, collection: Collection, meanwhile: Any, old: Any, model: Any):
        meanwhile(lambda: Collection.objects.update(deleted_at=timezone.now()))

        assert work(collection).space == old
        assert list(reembedding.due_collections()) == []
        with pytest.raises(NotFound):
            reembedding.start_reembedding(collection, old)

    def test_another_change_of_model_takes_effect_with_the_next_batch(
        self, collection: Collection, meanwhile: Any, old: Any, new: Any
    ):
        meanwhile(lambda: reembedding.start_reembedding(Collection.objects.get(), old))
        work(collection)
        assert (collection.space, collection.next_space) == (old, None)
        assert collection.has_old_vectors, "what was begun is to be taken away"

        expire_running_searches(collection)
        assert rows.vectors_in(collection, new) == {} and has_exactly_its_vectors(collection, old)
        assert list(reembedding.due_collections()) == []


def test_changing_back_reuses_vectors_that_are_not_deleted_yet(collection: Collection, old: Any, new: Any):
    reembedding.start_reembedding(collection, new)
    work(collection)
    reembedding.start_reembedding(collection, old)

    assert len(rows.vectors_in(collection, old)) == 303
    assert collection.has_old_vectors


class TestErrors:
    """Internal errors and database errors, not those of a provider."""

    @pytest.fixture
    def faulty(self, collection: Collection, model: Model, new: Any) -> Collection:
        def fail() -> None:
            raise MemoryError("-".join(["canary", "text"]))

        model.then = fail
        reembedding.start_reembedding(collection, new)
        return work(collection)

    def test_error_is_retried_later_and_its_text_is_not_shown(self, faulty: Collection, old: Any):
        with capture_logs() as logged:
            Collection.objects.update(reembed_attempt=0)
            work(faulty)

        assert (faulty.space, faulty.reembed_attempt) == (old, 1)
        assert faulty.reembed_error == "Internal error: MemoryError."
        assert logged[0]["event"] == "reembedding_failed" and "canary-text" not in str(logged)
        assert list(reembedding.due_collections()) == []

    def test_other_collections_get_their_turn(self, collection: Collection, model: Model, old: Any, new: Any):
        def fail_once() -> None:
            model.then = lambda: None
            raise MemoryError

        other = rows.make_collection(old, "other")
        rows.make_version(other, "doc-1", 5)
        for target in (collection, other):
            reembedding.start_reembedding(target, new)
        model.then = fail_once
        tasks.fill_new_spaces()

        other.refresh_from_db()
        assert other.space == new and has_exactly_its_vectors(other, new)

    def test_closed_database_connection_is_replaced(self, collection: Collection, model: Model, new: Any):
        def end_it() -> None:
            model.then = lambda: None
            rows.run("SELECT pg_terminate_backend(pg_backend_pid())")

        model.then = end_it
        reembedding.start_reembedding(collection, new)

        assert work(collection).reembed_error == "Internal error: OperationalError."
        Collection.objects.update(reembed_at=timezone.now())
        assert work(collection).space == new


def test_only_one_process_works_on_a_collection(collection: Collection, model: Model, new: Any):
    working, go, count = threading.Event(), threading.Event(), len(model.asked)

    def wait() -> None:
        working.set()
        go.wait(10)

    def first() -> None:
        reembedding.continue_reembedding(collection, time.monotonic() + 60)
        connection.close()

    model.then = wait
    reembedding.start_reembedding(collection, new)
    thread = threading.Thread(target=first)
    thread.start()
    assert working.wait(10)
    reembedding.continue_reembedding(collection, time.monotonic() + 60)
    assert len(model.asked) == count
    go.set()
    thread.join()
    collection.refresh_from_db()

    assert collection.space == new


@pytest.mark.usefixtures("vector_indexes_go")
def test_large_collection_waits_for_its_index(collection: Collection, old: Any, new: Any, monkeypatch: Any):
    monkeypatch.setattr(vector_indexes, "INDEX_THRESHOLD", 1000)
    reembedding.start_reembedding(collection, new)

    assert work(collection).space == old
    assert "index is being built" in collection.reembed_error and list(reembedding.due_collections()) == []
    assert vector_indexes.index_name(collection.pk, new.pk) in vector_indexes.maintain_indexes()
    assert work(collection).space == new
    assert vector_indexes.is_index_usable(collection.pk, new.pk)


def test_other_collections_keep_their_vectors(collection: Collection, old: Any, new: Any):
    other = rows.make_collection(old, "other")
    rows.make_version(other, "doc-1", 5)
    reembedding.start_reembedding(collection, new)
    work(collection)

    assert has_exactly_its_vectors(other, old) and len(rows.vectors_in(other, old)) == 5


def test_empty_collection_changes_immediately(old: Any, new: Any):
    empty = rows.make_collection(old)
    reembedding.start_reembedding(empty, new)

    assert work(empty).space == new


STEPS = some.lists(
    some.tuples(
        some.sampled_from(("load", "delete", "replace", "work", "short", "start", "stop")), some.integers(1, 3)
    ),
    max_size=8,
)


@pytest.mark.parametrize("examples", [8, pytest.param(150, marks=pytest.mark.nightly)])
def test_every_searched_chunk_always_has_its_vector(examples: int, model: Model, old: Any, new: Any):  # C54
    @settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
    )
    @given(STEPS)
    def law(steps: list[tuple[str, int]]) -> None:
        ChunkVector.objects.all().delete()
        collection = rows.make_collection(old, f"law-{Collection.objects.count()}")
        for step, number in steps:
            apply_step(collection, step, number, {"start": new, "stop": old})
            collection.refresh_from_db()
            assert has_exactly_its_vectors(collection, collection.space)
        reembedding.start_reembedding(collection, new)
        assert work(collection).space == new and has_exactly_its_vectors(collection, new)
        expire_running_searches(collection)
        assert rows.vectors_in(collection, old) == {}

    law()


def apply_step(collection: Collection, step: str, number: int, spaces: dict[str, EmbeddingSpace]) -> None:
    if step in ("load", "replace", "delete"):
        Version.objects.filter(collection=collection, document__doc_id=f"doc-{number}").delete()
    if step in ("load", "replace"):
        rows.make_version(collection, f"doc-{number}", number, space=Collection.objects.get(pk=collection.pk).space)
    if step in ("work", "short"):
        work(collection, 60 if step == "work" else -1)
    if step in spaces:
        reembedding.start_reembedding(collection, spaces[step])


def test_failed_version_does_not_delay_the_change(collection: Collection, new: Any):
    failed = rows.make_version(collection, "doc-3", 2, searched=False)
    Version.objects.filter(pk=failed.pk).update(state=VersionState.FAILED)
    reembedding.start_reembedding(collection, new)

    assert work(collection).space == new


def test_documents_waiting_for_the_old_provider_are_processed_immediately(
    collection: Collection, old: Any, new: Any, monkeypatch: pytest.MonkeyPatch
):
    version = rows.make_version(collection, "doc-3", 2)
    later = timezone.now() + timedelta(seconds=100)
    Version.objects.filter(pk=version.pk).update(state=VersionState.EMBEDDING, is_searched=False, next_at=later)
    woken: list[str] = []
    monkeypatch.setattr("collections_app.queue.worker_signals.wake_worker", woken.append)
    reembedding.start_reembedding(collection, new)
    work(collection)

    version.refresh_from_db()
    assert collection.space == new
    assert version.next_at <= timezone.now() and woken == ["collections_app.tasks.work"]

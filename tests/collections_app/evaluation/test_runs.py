"""Runs of the questions of a collection: their results, changes of settings, and interrupted workers."""

import time
from typing import Any

import pytest
from django.db import OperationalError
from django.db.models.functions import Now

from accounts.models import User
from collections_app import tasks
from collections_app.documents import deletion
from collections_app.evaluation import questions, runs
from collections_app.ingest import loading
from collections_app.metadata.filter import Filter
from collections_app.models import Collection, Document, EvaluationQuestion, EvaluationRun, Version
from collections_app.search import pipeline
from system.errors import Conflict, NotFound
from tests.collections_app.builders import DocumentLoader, make_collection
from tests.collections_app.ingest.world import process_queue

pytestmark = pytest.mark.django_db
TEXTS = {"paper": "The printer is out of paper.", "toner": "Replace the toner when the lamp is red."}


def keep(collection: Collection, *pairs: tuple[str, str]) -> None:
    entries = [{"query": query, "doc_ids": [doc_id]} for query, doc_id in pairs]
    questions.store_questions(collection, entries, user_id="")


def run_worker() -> None:
    """What the worker does with all running runs."""
    while runs.continue_oldest_run(time.monotonic() + 30):
        pass


def end_pauses() -> None:
    EvaluationRun.objects.update(lease_until=Now())


def last_run(collection: Collection) -> EvaluationRun:
    return collection.evaluation_runs.all()[0]


def results_by_query(collection: Collection) -> dict[str, Any]:
    return {result["query"]: result for result in last_run(collection).results}


@pytest.fixture
def library(collection: Collection, document_loader: DocumentLoader) -> Collection:
    for doc_id, text in TEXTS.items():
        document_loader(text, doc_id=doc_id)
    keep(collection, ("When do I replace the toner?", "toner"), ("no paper in the printer", "paper"))
    return collection


def break_search(monkeypatch: pytest.MonkeyPatch, error: Exception, after: int = 0) -> list[str]:
    """Lets searches fail after a number of calls; returns the queries."""
    search, queries = pipeline.search, []

    def search_or_fail(collections: Any, request: Any) -> Any:
        queries.append(request.query)
        if len(queries) > after:
            raise error
        return search(collections, request)

    monkeypatch.setattr(pipeline, "search", search_or_fail)
    return queries


def test_run_measures_every_question(library: Collection):
    keep(library, ("What does the red lamp mean?", "paper"), ("anything", "never loaded"))
    runs.start_run(library)
    run_worker()

    run, results = last_run(library), results_by_query(library)
    assert run.state == "done" and run.finished_at and run.lease_until is None
    assert {query: result["rank"] for query, result in results.items()} == {
        "When do I replace the toner?": 1,
        "no paper in the printer": 1,
        "What does the red lamp mean?": 2,
        "anything": None,
    }
    assert results["anything"]["missing_doc_ids"] == ["never loaded"]
    ndcg = round((1 + 1 + results["What does the red lamp mean?"]["ndcg"]) / 3, 4)
    assert run.measures == {
        "ndcg_at_10": ndcg, "hit_at_1": 0.6667, "hit_at_5": 1.0, "hit_at_10": 1.0, "questions": 3, "missing": 1
    }  # fmt: skip
    assert run.settings == {
        "embedding_model": str(library.space), "alpha": None, "synonyms": "", "load_settings": ["200/40 auto"]
    }  # fmt: skip


def test_run_ranks_documents_as_a_search_does(library: Collection):
    runs.start_run(library)
    run_worker()
    hits = pipeline.search(
        [library], pipeline.SearchRequest(query="no paper in the printer", k=5, filter=Filter())
    ).hits
    expected_rank = [hit.doc_id for hit in hits].index("paper") + 1
    assert results_by_query(library)["no paper in the printer"]["rank"] == expected_rank


def test_second_start_returns_the_running_run(library: Collection):
    first_run = runs.start_run(library)
    assert runs.start_run(library).pk == first_run.pk
    run_worker()
    assert runs.start_run(library).pk != first_run.pk


def test_collection_without_questions_is_not_run(collection: Collection):
    with pytest.raises(Conflict):
        runs.start_run(collection)


def test_deleted_collection_gets_no_questions_and_no_runs(library: Collection):
    runs.start_run(library)
    deletion.delete_collection(library)
    with pytest.raises(NotFound):
        runs.start_run(library)
    with pytest.raises(NotFound):
        keep(library, ("late", "paper"))
    assert not runs.continue_oldest_run(time.monotonic() + 30)
    while deletion.purge_deleted(time.monotonic() + 30):
        pass
    assert not Collection.objects.filter(pk=library.pk).exists()
    assert not EvaluationQuestion.objects.exists() and not EvaluationRun.objects.exists()


def test_slices_continue_with_the_next_question(library: Collection, monkeypatch: pytest.MonkeyPatch):
    queries = break_search(monkeypatch, OperationalError(), after=100)
    runs.start_run(library)
    assert runs.continue_oldest_run(deadline=0), "the run goes on at once"
    assert (last_run(library).state, last_run(library).results_count) == ("running", 1)
    run_worker()
    assert last_run(library).state == "done" and len(queries) == len(set(queries)) == 2


def test_only_one_process_runs_evaluations(library: Collection, document_loader: DocumentLoader):
    other = make_collection("others")
    keep(other, ("red lamp", "toner"))
    for target in (library, other):
        runs.start_run(target)
    EvaluationRun.objects.filter(collection=library).update(lease_until=Now() + runs.LEASE_DURATION / 2)
    assert not runs.continue_oldest_run(time.monotonic() + 30)
    assert not EvaluationRun.objects.filter(attempt__gt=0).exists()


def test_run_of_a_killed_worker_goes_on_after_its_lease(library: Collection):
    runs.start_run(library)
    runs.continue_oldest_run(deadline=0)
    EvaluationRun.objects.update(lease_until=Now() + runs.LEASE_DURATION / 2, attempt=1)
    run_worker()
    assert last_run(library).state == "running"
    end_pauses()
    run_worker()
    assert last_run(library).state == "done" and last_run(library).results_count == 2


def test_results_of_a_lost_lease_are_discarded(library: Collection, monkeypatch: pytest.MonkeyPatch):
    runs.start_run(library)

    def lose_lease(*_: Any) -> Any:
        EvaluationRun.objects.update(lease_token=None)
        return {"id": "1", "rank": None, "ndcg": None}

    monkeypatch.setattr(runs, "_evaluate_question", lose_lease)
    runs.continue_oldest_run(deadline=0)
    assert last_run(library).results == []


@pytest.mark.parametrize("error", [OperationalError(), pipeline.SemanticSearchUnavailable()], ids=["database", "model"])
def test_run_fails_after_several_attempts_without_progress(
    library: Collection, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    break_search(monkeypatch, error, after=1)
    runs.start_run(library)
    for _ in range(runs.MAX_ATTEMPTS):
        run_worker()
        assert last_run(library).state == "running" and last_run(library).error
        assert last_run(library).results_count == 1, "the first result is kept"
        end_pauses()
    run_worker()
    assert (last_run(library).state, last_run(library).measures) == ("failed", None)


def test_search_without_vectors_is_not_measured(library: Collection, monkeypatch: pytest.MonkeyPatch):
    result = pipeline.SearchResult(hits=[], is_without_vectors=True)
    monkeypatch.setattr(pipeline, "search", lambda *_: result)
    runs.start_run(library)
    run_worker()
    assert last_run(library).results == [] and "unavailable" in last_run(library).error


def test_old_runs_are_deleted(library: Collection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runs, "MAX_RUNS", 2)
    break_search(monkeypatch, OperationalError())  # runs that fail count too
    monkeypatch.setattr(runs, "MAX_ATTEMPTS", 0)
    ids = []
    for _ in range(3):
        ids.append(runs.start_run(library).pk)
        run_worker()
    assert [run.pk for run in library.evaluation_runs.all()] == ids[:0:-1]


class TestChangesOfSettings:
    @pytest.fixture(autouse=True)
    def first_run(self, library: Collection) -> None:
        runs.start_run(library)
        run_worker()

    def count_after_the_schedule(self, library: Collection) -> int:
        tasks.evaluate()
        run_worker()
        return library.evaluation_runs.count()

    def test_unchanged_settings_start_no_run(self, library: Collection, document_loader: DocumentLoader):
        document_loader("Another document.", doc_id="other")
        Collection.objects.update(name="renamed", reader_roles=["x"])
        assert self.count_after_the_schedule(library) == 1

    def test_keyword_weight(self, library: Collection):
        Collection.objects.update(alpha=0.2)
        assert self.count_after_the_schedule(library) == 2
        assert last_run(library).is_automatic and last_run(library).settings["alpha"] == 0.2
        assert self.count_after_the_schedule(library) == 2

    def test_synonyms(self, library: Collection):
        Collection.objects.update(synonyms="toner, ink")
        assert self.count_after_the_schedule(library) == 2
        assert self.count_after_the_schedule(library) == 2

    @pytest.mark.parametrize(
        "setting", [{"chunk_size": 150, "chunk_overlap": 20}, {"text_configuration": "english"}], ids=str
    )
    def test_chunks_and_language_count_once_the_documents_are_reloaded(
        self, library: Collection, setting: Any, carl: User
    ):
        Collection.objects.update(**setting)
        assert self.count_after_the_schedule(library) == 1, "searches find the same passages as before"
        for document in Document.objects.select_related("newest"):
            loading.reprocess(carl, document)
        process_queue(max_leases=1)
        assert self.count_after_the_schedule(library) == 1, "one document is not ready"
        process_queue()
        assert self.count_after_the_schedule(library) == 2
        assert last_run(library).settings["load_settings"] == [library.refreshed().load_settings]

    def test_other_model(self, library: Collection):
        from collections_app.models import EmbeddingSpace

        space = EmbeddingSpace.objects.create(provider="local", model="other", dimensions=8)
        Collection.objects.update(next_space=space)
        assert self.count_after_the_schedule(library) == 1
        Collection.objects.update(space=space, next_space=None)
        runs.start_due_runs()
        assert last_run(library).settings["embedding_model"] == "local/other (8)"

    def test_change_during_a_run_begins_it_again(self, library: Collection, monkeypatch: pytest.MonkeyPatch):
        queries = break_search(monkeypatch, OperationalError(), after=100)
        runs.start_run(library)
        runs.continue_oldest_run(deadline=0)
        Collection.objects.update(alpha=1.0)
        run_worker()
        assert last_run(library).settings["alpha"] == 1.0 and last_run(library).results_count == 2
        assert len(queries) == 3, "the first question is asked again"
        assert self.count_after_the_schedule(library) == 2

    def test_collection_without_questions_is_left_alone(self, library: Collection):
        library.evaluation_questions.all().delete()
        Collection.objects.update(alpha=0.2)
        assert self.count_after_the_schedule(library) == 1


def test_settings_of_a_document_are_those_of_its_load(collection: Collection, document_loader: DocumentLoader):
    version = document_loader()
    Collection.objects.update(chunk_size=500, text_configuration="german")
    assert Version.objects.get(pk=version.pk).load_settings == "200/40 auto"
    worker_version = document_loader("Andere Worte.", target=Collection.objects.select_related("space").get())
    assert Version.objects.get(pk=worker_version.pk).load_settings == "500/40 german"

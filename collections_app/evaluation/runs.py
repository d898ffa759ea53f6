"""Runs evaluations in the worker: one at a time, question by question, in slices that give other tasks a turn.

    start_run ──▶ running ── slice ──▶ … ── slice ──▶ done
                    │  ▲ after an error or the death of the worker: again when the lease expires
                    │  └ after a change of settings: again from the first question
                    └──▶ failed, after several attempts without progress

The row of a run is the queue, and only the holder of its lease may change it. The oldest run is always the next one.
"""

import time
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import uuid4

import structlog
from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from collections_app.documents import counts
from collections_app.metadata.filter import Filter
from collections_app.models import Collection, EvaluationQuestion, EvaluationRun
from collections_app.models.evaluation import RunState
from collections_app.queue import worker_signals
from collections_app.search import pipeline
from system.background import shutdown
from system.error_details import describe_safely
from system.errors import Conflict, NotFound, ServiceError

from . import measures
from .comparison import compare_results
from .questions import lock_questions, missing_documents
from .settings import ranking_settings

logger = structlog.get_logger(__name__)

MAX_RUNS = 20
# Enough for the ranks of ten documents with several passages each.
PASSAGES_PER_QUESTION = 50
MAX_ATTEMPTS = 5
# Longer than a slice; also the pause after an error.
LEASE_DURATION = timedelta(seconds=60)


def start_run(collection: Collection, *, user_id: str | None = None, is_automatic: bool = False) -> EvaluationRun:
    """Starts a run and wakes the worker; returns the running one if there is one already."""
    with lock_questions(collection):
        if running := collection.evaluation_runs.filter(state=RunState.RUNNING).first():
            return running
        if not collection.evaluation_questions.exists():
            raise Conflict("Add questions first.", code="no_questions")
        run = EvaluationRun(collection=collection, created_by=user_id, is_automatic=is_automatic)
        run.settings = ranking_settings(collection)
        run.save()
        kept_ids = list(collection.evaluation_runs.values_list("pk", flat=True)[:MAX_RUNS])
        collection.evaluation_runs.exclude(pk__in=kept_ids).delete()
        transaction.on_commit(worker_signals.request_evaluation, robust=True)
    return run


def start_due_runs() -> None:
    """Starts a run for each collection whose ranking settings differ from those of its last run.

    Waits while documents are being processed: they may be on their way to new settings.
    """
    collections = Collection.objects.filter(deleted_at=None, evaluation_runs__isnull=False).distinct()
    for collection in collections.select_related("space").exclude(evaluation_runs__state=RunState.RUNNING):
        last_run = collection.evaluation_runs.defer("results").first()
        if last_run is None or last_run.settings == ranking_settings(collection):
            continue
        is_loading = counts.count_by_collection([collection.pk])[collection.pk].unfinished_count
        if not is_loading:
            with suppress(Conflict, NotFound):  # it has no questions, or was deleted in the meantime
                start_run(collection, is_automatic=True)


def running_runs() -> Any:
    return EvaluationRun.objects.filter(state=RunState.RUNNING, collection__deleted_at=None).order_by("id")


def continue_oldest_run(deadline: float) -> bool:
    """Continues the oldest run until `time.monotonic()` is past `deadline`; returns whether work can go on at once."""
    token = uuid4()
    free = EvaluationRun.objects.exclude(lease_until__range=(Now(), Now() + LEASE_DURATION))
    lease = {"lease_token": token, "lease_until": Now() + LEASE_DURATION, "attempt": F("attempt") + 1}
    if not free.filter(pk=running_runs().values("pk")[:1]).order_by().update(**lease):
        return False
    run = EvaluationRun.objects.select_related("collection__space").get(lease_token=token)
    if run.attempt > MAX_ATTEMPTS:
        _store(run, state=RunState.FAILED, finished_at=Now(), error=run.error or "Every attempt was interrupted.")
    elif not _evaluate_questions(run, deadline):
        return False
    return bool(running_runs().exists())


def _evaluate_questions(run: EvaluationRun, deadline: float) -> bool:
    """Evaluates the remaining questions, and stores the results; returns False after an error."""
    results, settings = run.results, ranking_settings(run.collection)
    if settings != run.settings:
        results = []
    count_before = len(results)
    columns: dict[str, Any] = {"attempt": 0, "lease_until": None, "error": ""}
    try:
        last_id = results[-1]["id"] if results else ""
        for question in run.collection.evaluation_questions.filter(pk__gt=last_id):
            results.append(_evaluate_question(run.collection, question))
            if time.monotonic() > deadline or shutdown.has_begun():
                break
        else:
            columns |= {"state": RunState.DONE, "finished_at": Now(), "measures": measures.mean_measures(results)}
    except Exception as error:
        logger.warning("evaluation_postponed", run=run.pk, **describe_safely(error))
        if not connection.is_usable():
            connection.close()
        message = error.message if isinstance(error, ServiceError) else f"Internal error: {type(error).__name__}."
        # The lease stays, as a pause. Attempts count only without progress.
        columns = {"error": message[:300], "attempt": 1 if len(results) > count_before else run.attempt}
    _store(run, results=results, results_count=len(results), settings=settings, **columns)
    return "lease_until" in columns


def _evaluate_question(collection: Collection, question: EvaluationQuestion) -> dict[str, Any]:
    """Searches as a user with the default settings of the collection does."""
    missing = missing_documents(collection, [question])
    expected = set(question.doc_ids) - missing
    values: dict[str, Any] = {"rank": None, "ndcg": None}
    if expected:
        request = pipeline.SearchRequest(query=question.query, k=PASSAGES_PER_QUESTION, filter=Filter())
        result = pipeline.search([collection], request)
        if result.is_without_vectors:
            raise pipeline.SemanticSearchUnavailable("Semantic search is unavailable.")
        ranking = [hit.doc_id for hit in result.hits]
        values = {"rank": measures.first_rank(ranking, expected), "ndcg": round(measures.ndcg(ranking, expected), 4)}
    identity = {"id": question.pk, "query": question.query, "doc_ids": question.doc_ids}
    return {**identity, "missing_doc_ids": sorted(missing), **values}


def compared_results(run: EvaluationRun) -> list[dict[str, Any]]:
    """Returns the results, compared with those of the last complete run before this one."""
    runs = EvaluationRun.objects.filter(collection=run.collection_id, state=RunState.DONE, pk__lt=run.pk)
    previous_run = runs.first()
    return compare_results(run.results, previous_run.results if previous_run else [])


def _store(run: EvaluationRun, **columns: Any) -> None:
    """Does nothing if the lease has expired and another process has continued the run."""
    EvaluationRun.objects.filter(pk=run.pk, lease_token=run.lease_token).update(**columns)

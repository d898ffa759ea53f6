"""Background tasks of document collections. Messages only wake the worker; the work itself is in the database."""

import time

from celery import shared_task

from collections_app.documents import deletion
from collections_app.evaluation import runs
from collections_app.ingest import worker
from collections_app.queue import leases, worker_signals
from collections_app.sources import refresh
from collections_app.vectors import reembedding, vector_indexes
from system.background import shutdown

# A task ends after this time to give others a turn: the worker has two processes for all tasks.
TASK_BUDGET_S = 10.0
EVALUATION_BUDGET_S = 5.0
# Wake-ups per sweep: one for each worker process of a host.
WAKE_UPS_PER_SWEEP = 2
MAX_INDEX_BUILD_S = 3600
# The owner of the last document. The next task of this process continues with the next owner.
_last_owner = ""


@shared_task
def work() -> None:
    """Process the documents that are due, round-robin over their owners."""
    global _last_owner
    deadline = time.monotonic() + TASK_BUDGET_S
    while time.monotonic() < deadline and not shutdown.has_begun():
        lease = leases.take_next_lease(_last_owner)
        if lease is None:
            return
        _last_owner = lease.owner
        worker.process_version(lease.version_id, lease.token, deadline=deadline)
    worker_signals.request_processing()


@shared_task
def sweep() -> None:
    """Wake the worker for due documents whose message was lost, whose lease was released or whose pause is over."""
    for _ in leases.due_versions().values_list("pk")[:WAKE_UPS_PER_SWEEP]:
        worker_signals.request_processing()
    if deletion.is_purge_due():
        worker_signals.request_purge()


@shared_task
def purge() -> None:
    if deletion.purge_deleted(time.monotonic() + TASK_BUDGET_S) and not shutdown.has_begun():
        worker_signals.request_purge()


# Building a large index takes longer than other tasks may. A concurrent task finds the lock taken and ends.
@shared_task(time_limit=MAX_INDEX_BUILD_S, soft_time_limit=MAX_INDEX_BUILD_S - 60)
def tend_vector_indexes() -> None:
    """Build the vector indexes that large collections need, and drop unused ones."""
    vector_indexes.maintain_indexes()


@shared_task
def refresh_sources() -> None:
    """Load the web pages and watched folders that are due."""
    refresh.refresh_due_sources(time.monotonic() + TASK_BUDGET_S)


@shared_task
def fill_new_spaces() -> None:
    """Continue to re-embed the collections that are moving to another embedding model."""
    deadline = time.monotonic() + TASK_BUDGET_S
    for collection in reembedding.due_collections():
        if time.monotonic() > deadline or shutdown.has_begun():
            return
        reembedding.continue_reembedding(collection, deadline)


@shared_task
def evaluate() -> None:
    """Continue the oldest evaluation. If there is none, start those that are due after a change of settings."""
    if not runs.running_runs().exists():
        runs.start_due_runs()
    if runs.continue_oldest_run(time.monotonic() + EVALUATION_BUDGET_S) and not shutdown.has_begun():
        worker_signals.request_evaluation()

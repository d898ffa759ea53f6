"""Background work of document collections. Messages only wake: what is to be done is read from the database."""

import time

from celery import shared_task

from collections_app.documents import deletion
from collections_app.ingest import worker
from collections_app.queue import leases, shutdown, worker_signals
from collections_app.vectors import reembedding, vector_indexes

# Then other messages have their turn; the worker has two processes for everything.
AT_ONCE_S = 10.0
# Wake-ups of one sweep: as many as a host has worker processes.
WAKE_UPS = 2
LONGEST_BUILD_S = 3600


class Turn:
    """Whose document this process did last: the next is another's, also in the next message."""

    owner = ""


@shared_task
def work() -> None:
    """Work on the documents that are due, one owner's after the other's."""
    until = time.monotonic() + AT_ONCE_S
    while time.monotonic() < until and not shutdown.is_asked():
        lease = leases.take_next(Turn.owner)
        if lease is None:
            return
        Turn.owner = lease.owner
        worker.work_on(lease.version_id, lease.token, until=until)
    worker_signals.work()


@shared_task
def sweep() -> None:
    """Find what no message speaks of: lost with the broker or a process, handed back, or due only now."""
    for _ in leases.due().values_list("pk")[:WAKE_UPS]:
        worker_signals.work()
    if deletion.is_due():
        worker_signals.purge()


@shared_task
def purge() -> None:
    """Take away what was deleted or replaced."""
    if deletion.purge(time.monotonic() + AT_ONCE_S) and not shutdown.is_asked():
        worker_signals.purge()


# A big index takes longer than other work may; a second message meanwhile finds the lock held and ends.
@shared_task(time_limit=LONGEST_BUILD_S, soft_time_limit=LONGEST_BUILD_S - 60)
def tend_vector_indexes() -> None:
    """Build the vector indexes that collections have grown to need, drop those of the ones that are gone."""
    vector_indexes.maintain_indexes()


@shared_task
def fill_new_spaces() -> None:
    """Go on with the collections that change to another embedding model."""
    until = time.monotonic() + AT_ONCE_S
    for collection in reembedding.due():
        if time.monotonic() > until or shutdown.is_asked():
            return
        reembedding.work(collection, until)

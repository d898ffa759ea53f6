"""Background work of the Table API."""

from celery import shared_task

from tableapi.design import index_builder
from tableapi.http import idempotency
from tableapi.write import deferred_records

LONGEST_BUILD_S = 3600


# A big index takes longer than other work may; a second message meanwhile finds the lock held and ends.
@shared_task(time_limit=LONGEST_BUILD_S, soft_time_limit=LONGEST_BUILD_S - 60)
def build_indexes() -> None:
    """Build the indexes that the catalogue wants, drop those that it does not want any more."""
    index_builder.build()


@shared_task
def create_deferred() -> None:
    """Create the records that wait for it; sent with each of them, and by the schedule for what was missed."""
    deferred_records.create_due()


@shared_task
def forget_answers() -> None:
    """Delete the answers to requests with an `Idempotency-Key` that are too old to be given again."""
    idempotency.forget_old()

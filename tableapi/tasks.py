"""Background work of the Table API."""

from celery import shared_task

from tableapi.design import index_builder
from tableapi.http import idempotency
from tableapi.notifications import emails, found_changes
from tableapi.write import deferred_records

MAX_BUILD_S = 3600


# A large index takes longer than the usual limit. A second message finds the lock held and ends.
@shared_task(time_limit=MAX_BUILD_S, soft_time_limit=MAX_BUILD_S - 60)
def build_indexes() -> None:
    """Build the indexes that the catalogue requires and drop those that it no longer requires."""
    index_builder.build_indexes()


@shared_task
def create_deferred() -> None:
    """Create deferred records. Sent with each record, and by the schedule for missed ones."""
    deferred_records.create_due()


@shared_task
def notify_of_changes() -> None:
    """Find in the change log whom to notify."""
    found_changes.notify_of_changes()


@shared_task
def send_notification_emails() -> None:
    emails.send_due()


@shared_task
def forget_notifications() -> None:
    found_changes.delete_old()


@shared_task
def forget_answers() -> None:
    """Delete the stored answers to requests with an `Idempotency-Key` after their retention time."""
    idempotency.delete_expired()

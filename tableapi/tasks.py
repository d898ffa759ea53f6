"""Background tasks of the Table API."""

from celery import shared_task

from tableapi.design import index_builder
from tableapi.http import idempotency
from tableapi.notifications import change_scan, emails
from tableapi.write import deferred_records

MAX_BUILD_S = 3600


# Building a large index takes longer than the usual limit. A concurrent run finds the lock taken and exits.
@shared_task(time_limit=MAX_BUILD_S, soft_time_limit=MAX_BUILD_S - 60)
def build_indexes() -> None:
    """Build the indexes that the catalogue requires and drop those that it no longer requires."""
    index_builder.build_indexes()


@shared_task
def create_deferred() -> None:
    """Create deferred records. Queued for each record, and scheduled to catch missed ones."""
    deferred_records.create_due_records()


@shared_task
def notify_of_changes() -> None:
    """Create notifications from the change log."""
    change_scan.notify_of_changes()


@shared_task
def send_notification_emails() -> None:
    emails.send_due_emails()


@shared_task
def forget_notifications() -> None:
    change_scan.delete_old_notifications()


@shared_task
def forget_answers() -> None:
    """Delete stored responses to requests with an `Idempotency-Key` after the retention period."""
    idempotency.delete_expired()

"""Background tasks of the Table API."""

import time

from celery import shared_task

from system.background import shutdown
from system.background.task_dispatch import wake_worker
from tableapi.design import index_builder
from tableapi.http import idempotency
from tableapi.imports import jobs, steps
from tableapi.notifications import change_scan, emails
from tableapi.webhooks import change_scan as webhook_change_scan
from tableapi.webhooks import delivery
from tableapi.write import deferred_records

MAX_BUILD_S = 3600
MAX_IMPORT_S = 3600
# An import that is written in steps gives others a turn after this time.
IMPORT_BUDGET_S = 10.0
# The same for webhooks.
WEBHOOK_BUDGET_S = 10.0


# Building a large index takes longer than the usual limit. A concurrent run finds the lock taken and exits.
@shared_task(time_limit=MAX_BUILD_S, soft_time_limit=MAX_BUILD_S - 60)
def build_indexes() -> None:
    index_builder.build_indexes()


@shared_task
def create_deferred() -> None:
    """Create deferred records. Queued for each record, and scheduled to catch missed ones."""
    deferred_records.create_due_records()


@shared_task
def notify_of_changes() -> None:
    change_scan.notify_of_changes()


@shared_task
def send_notification_emails() -> None:
    emails.send_due_emails()


@shared_task
def forget_notifications() -> None:
    change_scan.delete_old_notifications()
    webhook_change_scan.delete_old_deliveries()


@shared_task
def deliver_webhooks() -> None:
    """Turn changes into deliveries, and send those that are due, in turns."""
    deadline = time.monotonic() + WEBHOOK_BUDGET_S
    webhook_change_scan.create_deliveries()
    if delivery.send_due(lambda: time.monotonic() > deadline or shutdown.has_begun()):
        wake_worker("tableapi.tasks.deliver_webhooks")


@shared_task
def forget_answers() -> None:
    """Delete stored responses to requests with an `Idempotency-Key` after the retention period."""
    idempotency.delete_expired()


# A step that writes everything or nothing takes longer than the usual limit.
@shared_task(time_limit=MAX_IMPORT_S, soft_time_limit=MAX_IMPORT_S - 60)
def run_imports() -> None:
    """Process the imports that are due, in turns. Sent for each import, and scheduled to catch missed ones."""
    deadline = time.monotonic() + IMPORT_BUDGET_S
    while steps.process_next(deadline, shutdown.has_begun):
        if time.monotonic() > deadline or shutdown.has_begun():
            return wake_worker(jobs.TASK)


@shared_task
def forget_imports() -> None:
    """Delete finished imports with their files after the time in which they can be undone."""
    jobs.delete_expired()

"""Background tasks of the system app."""

from celery import shared_task

from system import properties
from system.background import change_partitions, hourly_counts
from system.models import Heartbeat
from system.property_definitions import CHANGE_HISTORY_DAYS


@shared_task
def beat_of_worker() -> None:
    """Sent by beat and run by the worker, so it proves that the broker, beat and the worker all work."""
    Heartbeat.record("worker")


@shared_task
def store_hourly_counts() -> None:
    """Count changes and queued documents for the dashboard, and delete old counts."""
    hourly_counts.store_data_counts()


@shared_task
def update_change_partitions() -> None:
    """Create the partitions of the change log for the coming months, and drop those that have expired."""
    change_partitions.create_partitions()
    if days := properties.get(CHANGE_HISTORY_DAYS):
        change_partitions.delete_changes_older_than(days)

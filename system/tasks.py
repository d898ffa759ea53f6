"""Background tasks of the system app."""

from celery import shared_task

from system.models import Heartbeat


@shared_task
def beat_of_worker() -> None:
    """Sent by beat and run by the worker, so it shows that broker, beat and worker all work."""
    Heartbeat.record("worker")

"""Background work of the system area."""

from celery import shared_task

from system.monitoring import heartbeats


@shared_task
def beat_of_worker() -> None:
    """Beat sends it, the worker does it: its time shows that broker, beat and worker all move."""
    heartbeats.beat("worker")

"""Wakes the worker, and tells whether it is shutting down."""

from system.background import shutdown
from system.background.task_dispatch import wake_worker


def request_processing() -> None:
    """Wake the worker to process a document."""
    wake_worker("collections_app.tasks.work")


def request_purge() -> None:
    """Wake the worker to purge what was deleted or replaced."""
    wake_worker("collections_app.tasks.purge")


def is_shutting_down() -> bool:
    return shutdown.has_begun()

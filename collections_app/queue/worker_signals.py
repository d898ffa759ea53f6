"""Signals between the processes: wakes the worker, and tells its children that it is shutting down."""

import mmap
from typing import Any

from celery.signals import worker_shutting_down

from system.background.task_dispatch import wake_worker

# Shared with the worker's children, which are forked after this module was imported.
_shutdown_flag = mmap.mmap(-1, 1)


def request_processing() -> None:
    """A document waits to be processed."""
    wake_worker("collections_app.tasks.work")


def request_purge() -> None:
    """Something deleted or replaced waits to be purged."""
    wake_worker("collections_app.tasks.purge")


@worker_shutting_down.connect
def begin_shutdown(**_: Any) -> None:
    """The worker accepts no more messages and waits for its children, which return their leases."""
    _shutdown_flag[0] = 1


def is_shutting_down() -> bool:
    return bool(_shutdown_flag[0])

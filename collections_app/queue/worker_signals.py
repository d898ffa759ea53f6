"""Wakes the worker, and tells its child processes that it is shutting down."""

import mmap
from typing import Any

from celery.signals import worker_shutting_down

from system.background.task_dispatch import wake_worker

# Shared with the worker's children, which are forked after this module was imported.
_shutdown_flag = mmap.mmap(-1, 1)


def request_processing() -> None:
    """Wake the worker to process a document."""
    wake_worker("collections_app.tasks.work")


def request_purge() -> None:
    """Wake the worker to purge what was deleted or replaced."""
    wake_worker("collections_app.tasks.purge")


@worker_shutting_down.connect
def begin_shutdown(**_: Any) -> None:
    """Tell the children to release their leases. The worker accepts no more messages and waits for them."""
    _shutdown_flag[0] = 1


def is_shutting_down() -> bool:
    return bool(_shutdown_flag[0])

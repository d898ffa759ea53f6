"""Tells the child processes of the worker that it is shutting down."""

import mmap
from typing import Any

from celery.signals import worker_shutting_down

# Shared with the worker's children, which are forked after this module was imported.
_flag = mmap.mmap(-1, 1)


@worker_shutting_down.connect
def begin(**_: Any) -> None:
    """Tell the children to release their leases. The worker accepts no more messages and waits for them."""
    _flag[0] = 1


def has_begun() -> bool:
    return bool(_flag[0])

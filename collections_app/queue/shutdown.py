"""Tells the worker's children of its end, so that long work returns its lease."""

import mmap
from typing import Any

from celery.signals import worker_shutting_down

# Shared with the children, which are forked after this was imported.
_flag = mmap.mmap(-1, 1)


@worker_shutting_down.connect
def begin(**_: Any) -> None:
    """The worker takes no more messages, and waits for its children."""
    _flag[0] = 1


def is_asked() -> bool:
    return bool(_flag[0])

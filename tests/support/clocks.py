"""Clocks that are wrong: one host's, or the database's before it was set back."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from typing import Any
from unittest.mock import patch

from django.db.models import F
from django.utils import timezone


@contextmanager
def host_clock_off_by(hours: float) -> Iterator[None]:
    """The wall clock of this process is ahead, or behind; the database's is right, and `time.monotonic` goes on."""
    offset, original_time = timedelta(hours=hours), time.time

    class Datetime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + offset

    with (
        patch.object(timezone, "datetime", Datetime),
        patch.object(time, "time", lambda: original_time() + hours * 3600),
    ):
        yield


def database_clock_goes_back(rows: Any, *columns: str, hours: float = 1) -> None:
    """What these rows stored before then lies in the future."""
    rows.update(**{name: F(name) + timedelta(hours=hours) for name in columns})


def time_passes(rows: Any, *columns: str, seconds: float) -> None:
    rows.update(**{name: F(name) - timedelta(seconds=seconds) for name in columns})

"""Simulates a wrong clock of one host, and a database clock that was set back."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from typing import Any
from unittest.mock import patch

from django.db.models import F
from django.utils import timezone


@contextmanager
def shifted_host_clock(hours: float) -> Iterator[None]:
    """Shifts the wall clock of this process. The database clock and `time.monotonic` do not change."""
    offset, original_time = timedelta(hours=hours), time.time

    class ShiftedDatetime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + offset

    with (
        patch.object(timezone, "datetime", ShiftedDatetime),
        patch.object(time, "time", lambda: original_time() + hours * 3600),
    ):
        yield


def set_database_clock_back(rows: Any, *columns: str, hours: float = 1) -> None:
    """Moves the times in these rows into the future, as if the clock had been set back since they were stored."""
    rows.update(**{name: F(name) + timedelta(hours=hours) for name in columns})


def let_time_pass(rows: Any, *columns: str, seconds: float) -> None:
    rows.update(**{name: F(name) - timedelta(seconds=seconds) for name in columns})

"""Beat that works on one host only: the one that holds an advisory lock of the database.

Two hosts both ran beat and doubled its ticks; now the second one waits, and takes over when the first one's connection
ends, however it ended.
"""

import time
from typing import Any

import psycopg
import structlog
from django.db import connection
from django_celery_beat.schedulers import DatabaseScheduler

from system.monitoring.heartbeats import beat_is_alive

logger = structlog.get_logger(__name__)

LOCK = 7_301_001  # any number, the same on every host
ASK_AGAIN_AFTER_S = 2.0
BEAT_EVERY_S = 10.0


class Leadership:
    """The advisory lock, on a connection that does nothing else."""

    def __init__(self) -> None:
        self.link: psycopg.Connection[Any] | None = None
        self.holds = False

    def confirm(self) -> bool:
        """Whether this process leads just now; a lost connection has lost the lock too."""
        try:
            if self.link is None:
                parameters = connection.get_connection_params()
                parameters.pop("cursor_factory", None)
                parameters.pop("context", None)
                self.link = psycopg.connect(**parameters, autocommit=True)
            if self.holds:
                self.link.execute("SELECT 1")
            else:
                row = self.link.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone()
                self.holds = bool(row and row[0])
        except psycopg.Error as error:
            logger.warning("beat_cannot_lead", kind=type(error).__name__, sqlstate=error.sqlstate)
            self.resign()
        return self.holds

    def resign(self) -> None:
        if self.link is not None:
            self.link.close()
        self.link, self.holds = None, False


class LeaderScheduler(DatabaseScheduler):  # type: ignore[misc]  # the package has no types
    """django-celery-beat's scheduler, silent on every host but one."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        self.leadership = Leadership()
        self.was_leading: bool | None = None
        self.said_alive_at = 0.0
        super().__init__(*positional, **named)

    def tick(self, *positional: Any, **named: Any) -> float:
        """One round; the answer is how long to sleep."""
        if not self.leadership.confirm():
            if self.was_leading is not False:
                logger.info("beat_follows")  # another host leads, or the database is away
            self.was_leading = False
            return ASK_AGAIN_AFTER_S
        if not self.was_leading:
            logger.info("beat_leads")
            self.was_leading = True
            self._initial_read = True  # what the former leader did is in the database
            self._heap = None
        self._say_alive()
        try:
            return float(min(super().tick(*positional, **named), ASK_AGAIN_AFTER_S))
        except Exception as error:  # the broker or the database is away: try again, forever
            logger.warning("beat_waits", kind=type(error).__name__)
            return ASK_AGAIN_AFTER_S

    def _say_alive(self) -> None:
        if time.monotonic() - self.said_alive_at >= BEAT_EVERY_S and beat_is_alive():
            self.said_alive_at = time.monotonic()

    def close(self) -> None:
        super().close()
        self.leadership.resign()

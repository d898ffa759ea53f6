"""Runs beat on one host only: the one that holds an advisory lock of the database.

Otherwise two hosts would send every task twice. The second host waits, and takes over when the connection of the first
one ends.
"""

import time
from contextlib import suppress
from typing import Any

import psycopg
import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone
from django_celery_beat.schedulers import DatabaseScheduler

from config.database import connections
from system.models import Heartbeat

logger = structlog.get_logger(__name__)

LEADER_LOCK_ID = 7_301_001  # any number, the same on every host
RETRY_INTERVAL_S = 2.0
HEARTBEAT_INTERVAL_S = 10.0


class Leadership:
    """The advisory lock, on a dedicated connection."""

    def __init__(self) -> None:
        self.connection: psycopg.Connection[Any] | None = None
        self.is_leader = False

    def confirm(self) -> bool:
        """Take or keep the lock if possible. Returns whether this process is the leader."""
        try:
            if self.connection is None:
                parameters = connection.get_connection_params()
                parameters.pop("cursor_factory", None)
                parameters.pop("context", None)
                self.connection = psycopg.connect(**parameters, autocommit=True)
            if self.is_leader:
                self.connection.execute("SELECT 1")
            else:
                row = self.connection.execute("SELECT pg_try_advisory_lock(%s)", [LEADER_LOCK_ID]).fetchone()
                self.is_leader = bool(row and row[0])
        except psycopg.Error as error:
            logger.warning("beat_cannot_lead", kind=type(error).__name__, sqlstate=error.sqlstate)
            self.resign()
        return self.is_leader

    def resign(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection, self.is_leader = None, False


class LeaderScheduler(DatabaseScheduler):  # type: ignore[misc]  # the package has no types
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        connections.reconfigure("beat", settings.PROCESS_TYPE, connection.settings_dict)  # in a fork of the worker
        self.leadership = Leadership()
        self.was_leading: bool | None = None
        self.heartbeat_at = 0.0
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Run one round; returns the number of seconds to sleep."""
        if not self.leadership.confirm():
            if self.was_leading is not False:
                logger.info("beat_follows")  # another host leads, or the database is unavailable
            self.was_leading = False
            return RETRY_INTERVAL_S
        if not self.was_leading:
            logger.info("beat_leads")
            self.was_leading = True
            self._initial_read = True  # the former leader's changes are in the database
            self._heap = None
        self._write_heartbeat()
        self._correct_last_runs()
        try:
            return float(min(super().tick(*args, **kwargs), RETRY_INTERVAL_S))
        except Exception as error:  # the broker or the database is unavailable: retry forever
            logger.warning("beat_waits", kind=type(error).__name__)
            return RETRY_INTERVAL_S

    def _write_heartbeat(self) -> None:
        if time.monotonic() - self.heartbeat_at >= HEARTBEAT_INTERVAL_S:
            with suppress(DatabaseError, InterfaceError):
                Heartbeat.record("beat")
                self.heartbeat_at = time.monotonic()

    def _correct_last_runs(self) -> None:
        """Correct last runs in the future, which would pause their tasks until then. They come from a clock that was
        set back, or from a leader whose clock is ahead."""
        now = timezone.now()
        for entry in (self._schedule or {}).values():
            if entry.model.last_run_at > now:
                entry.last_run_at = entry.model.last_run_at = now
                self._heap = None

    def close(self) -> None:
        super().close()
        self.leadership.resign()

"""Counts by hour that the dashboard shows. Web processes add theirs once a minute, and a task adds those of the data.

No request waits for this: the responses are read from the metrics of the process, which counts them anyway. While the
database is unavailable, the counts stay in memory.
"""

import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog
from django.db import connection
from django.db.models import Count
from django.db.models.functions import Now, TruncHour

from system.models import Change, HourlyCount
from system.plain_sql import run_statement
from system.registry import Registry

logger = structlog.get_logger(__name__)

REQUESTS, REFUSALS, FAILURES = "requests", "refusals", "failures"
SIGN_INS, CHANGES, QUEUE = "sign_ins", "changes", "queue"
WRITE_INTERVAL_S = 60
KEPT_FOR = timedelta(days=30)
# Of this length, counts that could not be stored are dropped.
MAX_UNSTORED_HOURS = 48
# How the count of an hour changes: added to, replaced, or raised.
ADD = "stored.count + excluded.count"
REPLACE = "excluded.count"
RAISE = "greatest(stored.count, excluded.count)"
STATEMENT = """
    INSERT INTO system_hourly_count AS stored (hour, kind, count) VALUES (%s, %s, %s)
    ON CONFLICT (hour, kind) DO UPDATE SET count = {}
"""
# Functions that return counts since the process started, by kind, and the length of a queue.
TOTALS: Registry[Callable[[], Counter[str]]] = Registry()
QUEUE_LENGTHS: Registry[Callable[[], int]] = Registry()


def store(hour: datetime, kind: str, count: int, change: str) -> None:
    run_statement(STATEMENT.format(change), (hour, kind, count))


def current_hour() -> datetime:
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


def process_totals() -> Counter[str]:
    return sum((count() for count in TOTALS), Counter())


class ProcessCounts:
    """The counts of this process that are not stored yet."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.unstored: dict[tuple[datetime, str], int] = {}
        self.totals: Counter[str] = Counter()
        self.has_stopped = threading.Event()

    def add(self, kind: str, count: int = 1) -> None:
        with self.lock:
            key = current_hour(), kind
            self.unstored[key] = self.unstored.get(key, 0) + count
            oldest_hour = key[0] - timedelta(hours=MAX_UNSTORED_HOURS)
            for old_key in [old_key for old_key in self.unstored if old_key[0] < oldest_hour]:
                del self.unstored[old_key]

    def write(self) -> None:
        """Store the counts; those that cannot be stored now are stored later."""
        totals = process_totals()
        for kind, count in (totals - self.totals).items():
            self.add(kind, count)
        self.totals = totals
        with self.lock:
            taken = list(self.unstored.items())
        for key, count in taken:
            store(*key, count, ADD)
            with self.lock:
                self.unstored[key] -= count
                if not self.unstored[key]:
                    del self.unstored[key]

    def start(self) -> None:
        self.totals = process_totals()
        threading.Thread(target=self._run, name="hourly counts", daemon=True).start()

    def stop(self) -> None:
        self.has_stopped.set()
        self._try_to_write()

    def _run(self) -> None:
        while not self.has_stopped.wait(WRITE_INTERVAL_S):
            self._try_to_write()

    def _try_to_write(self) -> None:
        try:
            self.write()
        except Exception as error:
            logger.warning("hourly_counts_delayed", kind=type(error).__name__)
        finally:
            connection.close()  # one connection less for most of the time


process_counts = ProcessCounts()


def store_data_counts() -> None:
    """Store the changes of this and the last hour and the length of the queue, and delete old counts."""
    hour = current_hour()
    changes = Change.objects.filter(at__gte=hour - timedelta(hours=1)).values(hour=TruncHour("at", tzinfo=UTC))
    for row in changes.annotate(count=Count("id")):
        store(row["hour"], CHANGES, row["count"], REPLACE)
    store(hour, QUEUE, sum(length() for length in QUEUE_LENGTHS), RAISE)
    HourlyCount.objects.filter(hour__lt=Now() - KEPT_FOR).delete()

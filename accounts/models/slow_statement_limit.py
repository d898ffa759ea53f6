"""Limits users whose statements hit the time limit: for a minute, their requests run one at a time.

The two columns are read with the user during authentication, so every web process on every host knows the limit
without an additional query.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import timedelta

from django.core.exceptions import ObjectDoesNotExist
from django.db import Error, connection, models
from django.db.models import Case, F, Q, When
from django.db.models.functions import Least, Now
from django.utils import timezone

from system.errors import TooManyRequests
from system.plain_sql import fetch_rows

MAX_SLOW_STATEMENTS = 2
LIMIT_DURATION = timedelta(seconds=60)


class SlowStatementLimit(models.Model):
    # The number of recent, consecutive statements that hit the time limit, and the time of the last.
    slow_statements = models.PositiveSmallIntegerField(default=0, db_default=0, editable=False)
    slow_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        abstract = True

    @property
    def is_limited(self) -> bool:
        """A changed clock may end the limit early, but never extends it."""
        if self.slow_statements < MAX_SLOW_STATEMENTS or self.slow_at is None:
            return False
        return abs(timezone.now() - self.slow_at) < LIMIT_DURATION

    def count_slow_statement(self) -> None:
        rows = type(self)._base_manager.filter(pk=self.pk)
        is_consecutive = Q(slow_at__range=(Now() - LIMIT_DURATION, Now()))
        count = Case(When(is_consecutive, then=Least(F("slow_statements") + 1, MAX_SLOW_STATEMENTS)), default=1)
        # Errors are ignored: the disk may be full, or the user deleted.
        with suppress(Error, ObjectDoesNotExist):
            rows.update(slow_statements=count, slow_at=Now())
            # This object too, because the process caches it with the access key.
            self.slow_statements, self.slow_at = rows.values_list("slow_statements", "slow_at").get()

    def limit_requests(self) -> AbstractContextManager[None]:
        """Wraps a request of this user. Raises TooManyRequests if the user is limited and another request runs."""
        return self._lock_requests() if self.is_limited else nullcontext()

    @contextmanager
    def _lock_requests(self) -> Iterator[None]:
        # A session-level lock, because a request can have several transactions. A lost connection releases it.
        if not self._call_lock_function("pg_try_advisory_lock"):
            raise TooManyRequests(
                "Your recent queries exceeded the time limit. For a minute, only one of your requests can run at a "
                "time. Another request is still running. Try again when it has finished."
            )
        try:
            yield
        finally:
            try:
                self._call_lock_function("pg_advisory_unlock")
            except Error:
                connection.close()

    def _call_lock_function(self, function: str) -> bool:
        return bool(fetch_rows(f"SELECT {function}(hashtextextended(%s, 0))", [f"slow caller {self.pk}"])[0][0])

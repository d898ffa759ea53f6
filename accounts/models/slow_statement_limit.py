"""Users whose statements hit the time limit: for a minute, their requests run one at a time.

The two columns come with the user, who is read for the credentials anyway, so every web process of every host knows
who is limited, and nobody else pays for it.
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

MAX_SLOW_STATEMENTS = 2
LIMIT_DURATION = timedelta(seconds=60)


class SlowStatementLimit(models.Model):
    # Statements that hit the time limit, each soon after the one before, and the time of the last.
    slow_statements = models.PositiveSmallIntegerField(default=0, db_default=0, editable=False)
    slow_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        abstract = True

    @property
    def is_limited(self) -> bool:
        """A clock that jumps ends the limit, and never extends it."""
        if self.slow_statements < MAX_SLOW_STATEMENTS or self.slow_at is None:
            return False
        return abs(timezone.now() - self.slow_at) < LIMIT_DURATION

    def count_slow_statement(self) -> None:
        rows = type(self)._base_manager.filter(pk=self.pk)
        is_consecutive = Q(slow_at__range=(Now() - LIMIT_DURATION, Now()))
        count = Case(When(is_consecutive, then=Least(F("slow_statements") + 1, MAX_SLOW_STATEMENTS)), default=1)
        # The response does not depend on it: the disk may be full, or the user deleted.
        with suppress(Error, ObjectDoesNotExist):
            rows.update(slow_statements=count, slow_at=Now())
            # The process caches this object with the key.
            self.slow_statements, self.slow_at = rows.values_list("slow_statements", "slow_at").get()

    def one_at_a_time(self) -> AbstractContextManager[None]:
        """Around a request of this user; raises TooManyRequests if the user is limited and another one is running."""
        return self._lock_requests() if self.is_limited else nullcontext()

    @contextmanager
    def _lock_requests(self) -> Iterator[None]:
        # A lock of the session, because a request can have several transactions; it ends with a lost connection.
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
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {function}(hashtextextended(%s, 0))", [f"slow caller {self.pk}"])
            return bool(cursor.fetchone()[0])

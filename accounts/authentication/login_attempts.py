"""Counts failed sign-ins in PostgreSQL and locks out after 10 per login and address, or 100 per address, in 15 minutes.

An attempt is counted before the password is checked and removed on success, so that concurrent attempts cannot exceed
the limit. The account is never locked out from other addresses, so that nobody can lock out another user.

Actions that create a row without a password are counted per address in the same way.
"""

import hashlib
import ipaddress
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db import OperationalError, models, transaction
from django.db.models.functions import Now

from accounts.models.failed_attempts import FailedAttempts
from system.error_details import is_disk_full
from system.errors import TooManyRequests
from system.plain_sql import fetch_rows

FAILURE_WINDOW = timedelta(minutes=15)
MAX_FAILURES_PER_LOGIN_AND_ADDRESS = 10
MAX_FAILURES_PER_ADDRESS = 100
MAX_MEMORY_COUNTERS = 10_000
TOO_MANY_ATTEMPTS = "Too many failed attempts."

# Separates the counters of a login and an address from those of an address alone.
PAIR_PREFIX = "pair:"

COUNT_SQL = """
    INSERT INTO accounts_failed_attempts AS counter (key, started_at, count) VALUES (%(key)s, clock_timestamp(), 1)
    ON CONFLICT (key) DO UPDATE SET
        -- A start in the future dates from before the clock was set back.
        count = CASE WHEN counter.started_at BETWEEN clock_timestamp() - %(window)s::interval AND clock_timestamp()
                     THEN counter.count + 1 ELSE 1 END,
        started_at = CASE WHEN counter.started_at BETWEEN clock_timestamp() - %(window)s::interval AND clock_timestamp()
                          THEN counter.started_at ELSE clock_timestamp() END
    RETURNING count, ceil(extract(epoch FROM started_at + %(window)s::interval - clock_timestamp()))::int
"""


def client_network(address: str) -> str:
    """Returns the /64 of an IPv6 address, because an IPv6 client can use any address in it.

    >>> client_network("2001:db8::1:2"), client_network("192.0.2.7")
    ('2001:db8::/64', '192.0.2.7')

    A dual-stack server sees IPv4 clients as mapped addresses, which all share one /64.

    >>> client_network("::ffff:192.0.2.7")
    '192.0.2.7'
    """
    try:
        parsed_address = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed_address, ipaddress.IPv4Address):
        return str(parsed_address)
    return str(parsed_address.ipv4_mapped or ipaddress.IPv6Network((int(parsed_address), 64), strict=False))


def count_locked_logins() -> int:
    pairs = FailedAttempts.objects.filter(key__startswith=PAIR_PREFIX, count__gte=MAX_FAILURES_PER_LOGIN_AND_ADDRESS)
    return pairs.filter(started_at__gt=Now() - FAILURE_WINDOW).count()


def enforce_rate_limit(action: str, address: str, limit: int) -> None:
    """Counts an action that needs no account; raises TooManyRequests when one address exceeds the limit."""
    key = hashlib.sha256(f"\n{action}\n{client_network(address)}".encode()).hexdigest()
    with transaction.atomic():
        _count_attempt(key, limit, "Too many requests.")


def _count_attempt(key: str, limit: int, message: str) -> None:
    ((count, wait_s),) = fetch_rows(COUNT_SQL, {"key": key, "window": f"{FAILURE_WINDOW.total_seconds()} seconds"})
    if count > limit:
        raise TooManyRequests(f"{message} Try again in {format_minutes(wait_s)}.", retry_after_s=max(1, wait_s))


class MemoryCounters:
    """Counters of this process, used while the database's disk is full, because reads still work then."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.counters: dict[str, tuple[float, int]] = {}

    def count(self, limits: Mapping[str, int]) -> None:
        """Counts an attempt for all keys, or for none if one has reached its limit."""
        now, window_s = time.monotonic(), FAILURE_WINDOW.total_seconds()
        with self.lock:
            counters = {key: self.counters.get(key, (now, 0)) for key in limits}
            for key, (started_at, count) in counters.items():
                wait_s = math.ceil(started_at + window_s - now)
                if wait_s <= 0:
                    counters[key] = now, 0
                elif count >= limits[key]:
                    message = f"{TOO_MANY_ATTEMPTS} Try again in {format_minutes(wait_s)}."
                    raise TooManyRequests(message, retry_after_s=wait_s)
            if len(self.counters) >= MAX_MEMORY_COUNTERS:
                self.counters.clear()
            self.counters |= {key: (started_at, count + 1) for key, (started_at, count) in counters.items()}

    def record_success(self, attempt: "PasswordAttempt") -> None:
        with self.lock:
            self.counters.pop(attempt.pair_key, None)
            started_at, count = self.counters.get(attempt.address_key, (0.0, 0))
            if count:
                self.counters[attempt.address_key] = started_at, count - 1


MEMORY_COUNTERS = MemoryCounters()


def format_minutes(seconds: int) -> str:
    """A waiting time in words, rounded up.

    >>> format_minutes(61), format_minutes(60), format_minutes(0)
    ('2 minutes', '1 minute', '1 minute')
    """
    minutes = max(1, math.ceil(seconds / 60))
    return f"{minutes} minute{'' if minutes == 1 else 's'}"


@dataclass(frozen=True)
class PasswordAttempt:
    login: str
    address: str

    @property
    def pair_key(self) -> str:
        pair_hash = hashlib.sha256(f"{self.login}\n{client_network(self.address)}".encode()).hexdigest()
        return PAIR_PREFIX + pair_hash[len(PAIR_PREFIX) :]

    @property
    def address_key(self) -> str:
        return hashlib.sha256(client_network(self.address).encode()).hexdigest()

    def count_as_failed(self) -> None:
        """Counts this attempt as failed until it succeeds; raises TooManyRequests when a limit is reached.

        Refused attempts are not counted: a script that repeats an old password must not lock out its address.
        """
        limits = ((self.pair_key, MAX_FAILURES_PER_LOGIN_AND_ADDRESS), (self.address_key, MAX_FAILURES_PER_ADDRESS))
        try:
            with transaction.atomic():
                for key, limit in limits:
                    _count_attempt(key, limit, TOO_MANY_ATTEMPTS)
        except OperationalError as error:
            if not is_disk_full(error):
                raise
            MEMORY_COUNTERS.count(dict(limits))

    def record_success(self) -> None:
        """Clears the pair's failures, but only this attempt of the address, so that password spraying still counts."""
        MEMORY_COUNTERS.record_success(self)
        try:
            FailedAttempts.objects.filter(key=self.pair_key).delete()
            FailedAttempts.objects.filter(key=self.address_key, count__gt=0).update(count=models.F("count") - 1)
        except OperationalError as error:
            if not is_disk_full(error):
                raise

"""Keeps the months of `sys_change`: creates those to come, drops those that are too old.

Rows of a month without a partition go to `sys_change_other`, so that no write fails, and move when it has one.
"""

from datetime import UTC, date, datetime, timedelta

from django.db import transaction
from psycopg import sql

from system.plain_sql import fetch_rows, run_statement

LOCK_TIMEOUT_MS = 2_000
MONTHS_AHEAD = 2

MOVE_ROWS = """
    WITH moved AS (DELETE FROM public.sys_change_other WHERE at >= {first} AND at < {following} RETURNING *)
    INSERT INTO {partition} SELECT * FROM moved
"""
ATTACH = "ALTER TABLE public.sys_change ATTACH PARTITION {partition} FOR VALUES FROM ({first}) TO ({following})"
MONTHS = """
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'public.sys_change'::regclass AND c.relname ~ '^sys_change_[0-9]{4}_[0-9]{2}$'
"""


def create_months() -> None:
    months = {name for (name,) in fetch_rows(MONTHS)}
    first = datetime.now(UTC).date().replace(day=1)
    for _ in range(1 + MONTHS_AHEAD):
        following = (first + timedelta(days=31)).replace(day=1)
        if _partition_name(first) not in months:
            _create_partition(first, following)
        first = following


def _create_partition(first: date, following: date) -> None:
    names = {
        "partition": sql.Identifier("public", _partition_name(first)),
        "first": sql.Literal(f"{first} 00:00:00+00"),
        "following": sql.Literal(f"{following} 00:00:00+00"),
    }
    # Attached afterwards, because CREATE TABLE … PARTITION OF would wait for every running statement.
    create = "CREATE TABLE {partition} (LIKE public.sys_change INCLUDING DEFAULTS)"
    with transaction.atomic():
        _limit_lock_time()
        run_statement("LOCK TABLE public.sys_change_other IN ACCESS EXCLUSIVE MODE")
        for statement in (create, MOVE_ROWS, ATTACH):
            run_statement(sql.SQL(statement).format(**names))


def delete_older(days: int) -> None:
    """Whole months are dropped, the rest is deleted by rows."""
    expires_at = datetime.now(UTC) - timedelta(days=days)
    current_month = _partition_name(expires_at.date())
    for (name,) in fetch_rows(MONTHS):
        if name < current_month:
            with transaction.atomic():
                _limit_lock_time()
                run_statement(sql.SQL("DROP TABLE {}").format(sql.Identifier("public", name)))
    run_statement("DELETE FROM public.sys_change WHERE at < %s", [expires_at])


def _limit_lock_time() -> None:
    run_statement(sql.SQL("SET LOCAL lock_timeout = {}").format(LOCK_TIMEOUT_MS))


def _partition_name(day: date) -> str:
    """
    >>> _partition_name(date(2026, 3, 31))
    'sys_change_2026_03'
    """
    return f"sys_change_{day:%Y_%m}"

"""Manages the monthly partitions of `sys_change`: creates upcoming ones and drops expired ones.

Rows of a month without a partition are stored in `sys_change_other` and moved when the partition is created.
"""

from datetime import UTC, date, datetime, timedelta

from django.db import transaction
from psycopg import sql

from system.plain_sql import fetch_rows, run_statement

LOCK_TIMEOUT_MS = 2_000
MONTHS_AHEAD = 2

MOVE_ROWS = """
    WITH moved AS (DELETE FROM public.sys_change_other WHERE at >= {start} AND at < {end} RETURNING *)
    INSERT INTO {partition} SELECT * FROM moved
"""
ATTACH = "ALTER TABLE public.sys_change ATTACH PARTITION {partition} FOR VALUES FROM ({start}) TO ({end})"
MONTHLY_PARTITIONS = """
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'public.sys_change'::regclass AND c.relname ~ '^sys_change_[0-9]{4}_[0-9]{2}$'
"""


def create_partitions() -> None:
    existing_partitions = {name for (name,) in fetch_rows(MONTHLY_PARTITIONS)}
    start = datetime.now(UTC).date().replace(day=1)
    for _ in range(1 + MONTHS_AHEAD):
        end = (start + timedelta(days=31)).replace(day=1)
        if _partition_name(start) not in existing_partitions:
            _create_partition(start, end)
        start = end


def _create_partition(start: date, end: date) -> None:
    names = {
        "partition": sql.Identifier("public", _partition_name(start)),
        "start": sql.Literal(f"{start} 00:00:00+00"),
        "end": sql.Literal(f"{end} 00:00:00+00"),
    }
    # Attached afterwards, because CREATE TABLE … PARTITION OF would wait for every running statement.
    create = "CREATE TABLE {partition} (LIKE public.sys_change INCLUDING DEFAULTS)"
    with transaction.atomic():
        _set_lock_timeout()
        run_statement("LOCK TABLE public.sys_change_other IN ACCESS EXCLUSIVE MODE")
        for statement in (create, MOVE_ROWS, ATTACH):
            run_statement(sql.SQL(statement).format(**names))


def delete_changes_older_than(days: int) -> None:
    """Delete changes that are older than this many days: whole partitions first, then single rows."""
    cutoff = datetime.now(UTC) - timedelta(days=days)
    oldest_partition = _partition_name(cutoff.date())
    for (name,) in fetch_rows(MONTHLY_PARTITIONS):
        if name < oldest_partition:
            with transaction.atomic():
                _set_lock_timeout()
                run_statement(sql.SQL("DROP TABLE {}").format(sql.Identifier("public", name)))
    run_statement("DELETE FROM public.sys_change WHERE at < %s", [cutoff])


def _set_lock_timeout() -> None:
    run_statement(sql.SQL("SET LOCAL lock_timeout = {}").format(LOCK_TIMEOUT_MS))


def _partition_name(day: date) -> str:
    """
    >>> _partition_name(date(2026, 3, 31))
    'sys_change_2026_03'
    """
    return f"sys_change_{day:%Y_%m}"

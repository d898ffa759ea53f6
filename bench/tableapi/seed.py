"""Creates the measured records by SQL alone, so that every version has the same.

Each value is computed from the number of its row, so two databases that are filled apart hold equal records.
"""

import time
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql

USERS, GROUPS, SERVICES, COMPANIES, TEXTS = 20_000, 200, 50, 100, 5_000
SAMPLE = 1_000
CALLER = "demo.agent"
# Nine of ten tasks are active; the caller sees these and their own.
READABLE = "active=true^ORcallerDYNAMICme"
MADE_AT = "timestamptz '2026-01-01 00:00+00'"
# Numbers of the product itself count up from 1, and must not meet these.
FIRST_NUMBER = 10_000_000


def sys_id(kind: int, number: str) -> str:
    return f"'160000000{kind}' || lpad(({number})::bigint::text, 8, '0')"


def spread(seed: int, number: str = "n") -> str:
    """SQL of a value from 0 to 1 that looks random and is the same in every database."""
    return f"((hashint8extended(({number})::bigint, {seed}) & 1048575) / 1048576.0)"


def person(seed: int) -> str:
    """Few people have many tasks."""
    return sys_id(0, f"1 + floor(power({spread(seed)}, 2) * {USERS})")


AUDIT = {"sys_created_at": MADE_AT, "sys_updated_at": MADE_AT, "sys_version": "0"}
COMPANY = {**AUDIT, "sys_id": sys_id(3, "n"), "name": "'Company ' || n", "active": "true"}
GROUP = {**AUDIT, "sys_id": sys_id(1, "n"), "name": "'Group ' || n", "active": "true"}
SERVICE = {"sys_id": sys_id(2, "n"), "name": "'Service ' || n"}
USER = {
    **AUDIT,
    "sys_id": sys_id(0, "n"),
    "login": "'person' || n",
    "password": "'!'",
    "email": "'person' || n || '@example.com'",
    "first_name": "'First' || n % 500",
    "last_name": "'Last' || n % 4000",
    "phone": "''",
    "company_id": sys_id(3, f"1 + n % {COMPANIES}"),
    "active": "true",
}
NUMBER = f"'TSK' || ({FIRST_NUMBER} + n)"
TASK = {
    "sys_id": "own_id",
    "sys_created_at": "at",
    "sys_updated_at": "at + interval '1 day'",
    "sys_created_by": "person",
    "sys_updated_by": "person",
    "sys_version": "n % 7",
    "number": NUMBER,
    "display_name": NUMBER,
    "state": "CASE WHEN active THEN (ARRAY['1', '2', '2', '3'])[1 + n % 4] ELSE (ARRAY['4', '5'])[1 + n % 2] END",
    "priority": "CASE WHEN b < 0.02 THEN '1' WHEN b < 0.1 THEN '2' WHEN b < 0.5 THEN '3' ELSE '4' END",
    "urgency": "(1 + n % 3)::text",
    "impact": "(1 + n % 3)::text",
    "active": "active",
    "assigned_user": f"CASE WHEN b < 0.8 THEN {person(3)} END",
    "assignment_group": sys_id(1, f"1 + n % {GROUPS}"),
    "closed_by": f"CASE WHEN NOT active THEN {person(3)} END",
    "followers_list": f"CASE WHEN n % 10 = 0 THEN ARRAY[person, {person(2)}] END",
    "parent_id": "CASE WHEN n % 20 = 0 THEN lag(own_id, 3) OVER (ORDER BY n) END",
    "opened_by": "person",
    "caller": "person",
    "contact": "CASE WHEN n % 3 = 0 THEN person END",
    "service": sys_id(2, f"1 + n % {SERVICES}"),
    "company": sys_id(3, f"1 + n % {COMPANIES}"),
    "short_description": "left(long, 60)",
    "subject": "left(long, 50) || ' ' || n",
    "description": "long || ' ' || n",
    "work_notes": "CASE WHEN n % 2 = 0 THEN long END",
    "comments": "CASE WHEN n % 2 = 1 THEN long END",
    "additional_comments": "CASE WHEN n % 5 = 0 THEN long END",
    "opened_at": "at",
    "due_date": "at + interval '5 days'",
    "sla_due": "at + interval '2 days'",
    "closed_at": "CASE WHEN NOT active THEN at + interval '4 days' END",
    "state_changed_at": "at",
    "attention_required": "n % 50 = 0",
    "approval_state": "'not_requested'",
}
# Words occur as often as words do: few of them often.
MAKE_TEXTS = f"""
    CREATE TEMPORARY TABLE texts ON COMMIT DROP AS
    SELECT n AS place, string_agg('word' || floor(power({spread(1, "n * 100 + m")}, 3) * 20000)::int, ' ' ORDER BY m)
        AS long
    FROM generate_series(0, {TEXTS} - 1) n, generate_series(1, 21) m GROUP BY n
"""
TASK_ROWS = f"""
    (SELECT n, {spread(1)} < 0.9 AS active, {spread(2)} AS b, at, {person(4)} AS person,
        lpad(extract(epoch FROM at)::bigint::text, 10, '0') || lpad(n::text, 8, '0') AS own_id
    FROM (SELECT n, {MADE_AT} - interval '1000 days' * (1 - n::float / {{count}}) AS at
        FROM generate_series(1, {{count}}) n) numbers) drawn
    JOIN texts ON texts.place = (n::bigint * 7919) % {TEXTS}
"""
SECONDARY_INDEXES = """
    SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid), indisvalid FROM pg_index
    WHERE indrelid = 'records.task'::regclass AND NOT indisprimary ORDER BY 1
"""
SAMPLED = f"""
    SELECT sys_id FROM records.task WHERE active
    ORDER BY hashtextextended(sys_id, 0) LIMIT {SAMPLE}
"""
# Background work of PostgreSQL would fall into some slices and not into others.
QUIET = ("autovacuum = off", "checkpoint_timeout = '1h'", "max_wal_size = '16GB'")
# The demo rule lets the caller read every task; a rule with a condition is what most callers meet.
RESTRICT = """
    UPDATE sys_acl SET condition = %s WHERE operation = 'read' AND condition = '' AND cardinality(roles) > 0
        AND table_id = (SELECT sys_id FROM sys_db_table WHERE name = 'task') AND column_name = ''
"""


Connection = psycopg.Connection[Any]


def records(connection: Connection, tasks: int) -> None:
    """Fill an empty database, whose user must be a superuser."""
    with connection.transaction(), connection.cursor() as cursor:
        # The records are right by the way they are made; checking a million of them takes minutes.
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("SET LOCAL maintenance_work_mem = '1GB'")
        numbers = "generate_series(1, {}) n"
        insert(cursor, "public", "company", COMPANY, numbers.format(COMPANIES))
        insert(cursor, "public", "sys_group", GROUP, numbers.format(GROUPS))
        insert(cursor, "public", "user", USER, numbers.format(USERS))
        insert(cursor, "records", "service", SERVICE, numbers.format(SERVICES))
        cursor.execute(MAKE_TEXTS.encode())
        # In the same transaction, so that the worker never misses one and begins to build it.
        indexes = cursor.execute(SECONDARY_INDEXES.encode()).fetchall()
        for name, _, _ in indexes:
            cursor.execute(f"DROP INDEX {name}".encode())
        # Those of the demo have times and ids of their own in each database.
        cursor.execute("DELETE FROM records.task")
        insert(cursor, "records", "task", TASK, TASK_ROWS.format(count=tasks))
        for _, definition, _ in indexes:
            cursor.execute(definition.encode())
        if cursor.execute(RESTRICT.encode(), [READABLE]).rowcount != 1:
            raise SystemExit("the demo rule that is to have a condition was not found")
    for setting in QUIET:
        connection.execute(f"ALTER SYSTEM SET {setting}".encode())
    connection.execute("SELECT pg_reload_conf()")
    vacuum(connection)
    connection.execute("CHECKPOINT")


def vacuum(connection: "psycopg.Connection[Any]") -> None:
    """Again after a deadlock with the worker, which may build an index of another table at the same time."""
    for _ in range(3):
        try:
            connection.execute("VACUUM (ANALYZE)")
            return
        except psycopg.errors.DeadlockDetected:
            continue
    raise SystemExit("VACUUM met a deadlock three times.")


def insert(cursor: "psycopg.Cursor[Any]", schema: str, table: str, values: Mapping[str, str], source: str) -> None:
    """The columns that this version of the table has."""
    cursor.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s",
        [schema, table],
    )
    present = {name for (name,) in cursor.fetchall()}
    columns = {name: value for name, value in values.items() if name in present}
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    select = f" SELECT {', '.join(columns.values())} FROM {source}"
    cursor.execute(sql.SQL("INSERT INTO {} ({})").format(sql.Identifier(schema, table), names) + sql.SQL(select))


def wait_for_indexes(connection: Connection, within_s: float = 180, quiet_s: float = 10) -> int:
    """The worker builds them after the first start; returns how many there are when nothing has changed for a time."""
    results: list[Any] = []
    until, since = time.monotonic() + within_s, time.monotonic()
    while time.monotonic() < until:
        result = connection.execute(SECONDARY_INDEXES.encode()).fetchall()
        if result != results or not result or not all(is_valid for _, _, is_valid in result):
            results, since = result, time.monotonic()
        elif time.monotonic() - since > quiet_s:
            return len(result)
        time.sleep(0.5)
    raise SystemExit("the indexes of the tasks were not built in time")


def sample(connection: Connection) -> list[str]:
    """Ids of tasks that the caller may read and change, from everywhere in the table."""
    return [sys_id for (sys_id,) in connection.execute(SAMPLED.encode())]

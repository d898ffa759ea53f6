"""Creates the measured records with SQL only, so that every version has the same records.

Each value is computed from its row number, so two separately filled databases have equal records.
"""

import time
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql

USER_COUNT, GROUP_COUNT, SERVICE_COUNT, COMPANY_COUNT, TEXT_COUNT = 20_000, 200, 50, 100, 5_000
SAMPLE_SIZE = 1_000
CALLER_LOGIN = "demo.agent"
# Nine of ten tasks are active. The caller can read these, and tasks with themselves as the caller.
READ_CONDITION = "active=true^ORcallerDYNAMICme"
CREATED_AT = "timestamptz '2026-01-01 00:00+00'"
# The product numbers its own tasks from 1; the numbers must not overlap.
FIRST_NUMBER = 10_000_000


def sys_id(table_number: int, number: str) -> str:
    return f"'160000000{table_number}' || lpad(({number})::bigint::text, 8, '0')"


def pseudo_random(seed: int, number: str = "n") -> str:
    """SQL of a value from 0 to 1 that looks random and is the same in every database."""
    return f"((hashint8extended(({number})::bigint, {seed}) & 1048575) / 1048576.0)"


def random_user(seed: int) -> str:
    """SQL of the id of a user. A few users have many tasks."""
    return sys_id(0, f"1 + floor(power({pseudo_random(seed)}, 2) * {USER_COUNT})")


AUDIT_VALUES = {"sys_created_at": CREATED_AT, "sys_updated_at": CREATED_AT, "sys_version": "0"}
COMPANY_VALUES = {**AUDIT_VALUES, "sys_id": sys_id(3, "n"), "name": "'Company ' || n", "active": "true"}
GROUP_VALUES = {**AUDIT_VALUES, "sys_id": sys_id(1, "n"), "name": "'Group ' || n", "active": "true"}
SERVICE_VALUES = {"sys_id": sys_id(2, "n"), "name": "'Service ' || n"}
USER_VALUES = {
    **AUDIT_VALUES,
    "sys_id": sys_id(0, "n"),
    "login": "'person' || n",
    "password": "'!'",
    "email": "'person' || n || '@example.com'",
    "first_name": "'First' || n % 500",
    "last_name": "'Last' || n % 4000",
    "phone": "''",
    "company_id": sys_id(3, f"1 + n % {COMPANY_COUNT}"),
    "active": "true",
}
TASK_NUMBER = f"'TSK' || ({FIRST_NUMBER} + n)"
TASK_VALUES = {
    "sys_id": "own_id",
    "sys_created_at": "at",
    "sys_updated_at": "at + interval '1 day'",
    "sys_created_by": "person",
    "sys_updated_by": "person",
    "sys_version": "n % 7",
    "number": TASK_NUMBER,
    "display_name": TASK_NUMBER,
    "state": "CASE WHEN active THEN (ARRAY['1', '2', '2', '3'])[1 + n % 4] ELSE (ARRAY['4', '5'])[1 + n % 2] END",
    "priority": "CASE WHEN b < 0.02 THEN '1' WHEN b < 0.1 THEN '2' WHEN b < 0.5 THEN '3' ELSE '4' END",
    "urgency": "(1 + n % 3)::text",
    "impact": "(1 + n % 3)::text",
    "active": "active",
    "assigned_user": f"CASE WHEN b < 0.8 THEN {random_user(3)} END",
    "assignment_group": sys_id(1, f"1 + n % {GROUP_COUNT}"),
    "closed_by": f"CASE WHEN NOT active THEN {random_user(3)} END",
    "followers_list": f"CASE WHEN n % 10 = 0 THEN ARRAY[person, {random_user(2)}] END",
    "parent_id": "CASE WHEN n % 20 = 0 THEN lag(own_id, 3) OVER (ORDER BY n) END",
    "opened_by": "person",
    "caller": "person",
    "contact": "CASE WHEN n % 3 = 0 THEN person END",
    "service": sys_id(2, f"1 + n % {SERVICE_COUNT}"),
    "company": sys_id(3, f"1 + n % {COMPANY_COUNT}"),
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
# As in real texts, a few words are frequent.
CREATE_TEXTS = f"""
    CREATE TEMPORARY TABLE texts ON COMMIT DROP AS
    SELECT n AS place,
        string_agg('word' || floor(power({pseudo_random(1, "n * 100 + m")}, 3) * 20000)::int, ' ' ORDER BY m) AS long
    FROM generate_series(0, {TEXT_COUNT} - 1) n, generate_series(1, 21) m GROUP BY n
"""
TASK_ROWS = f"""
    (SELECT n, {pseudo_random(1)} < 0.9 AS active, {pseudo_random(2)} AS b, at, {random_user(4)} AS person,
        lpad(extract(epoch FROM at)::bigint::text, 10, '0') || lpad(n::text, 8, '0') AS own_id
    FROM (SELECT n, {CREATED_AT} - interval '1000 days' * (1 - n::float / {{count}}) AS at
        FROM generate_series(1, {{count}}) n) numbers) drawn
    JOIN texts ON texts.place = (n::bigint * 7919) % {TEXT_COUNT}
"""
SECONDARY_INDEXES = """
    SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid), indisvalid FROM pg_index
    WHERE indrelid = 'records.task'::regclass AND NOT indisprimary ORDER BY 1
"""
SAMPLE_QUERY = f"""
    SELECT sys_id FROM records.task WHERE active
    ORDER BY hashtextextended(sys_id, 0) LIMIT {SAMPLE_SIZE}
"""
# Background work of PostgreSQL would affect some slices and not others.
QUIET_SETTINGS = ("autovacuum = off", "checkpoint_timeout = '1h'", "max_wal_size = '16GB'")
# The demo rule lets the caller read every task, but most callers have rules with a condition.
RESTRICT_RULE = """
    UPDATE sys_acl SET condition = %s WHERE operation = 'read' AND condition = '' AND cardinality(roles) > 0
        AND table_id = (SELECT sys_id FROM sys_db_table WHERE name = 'task') AND column_name = ''
"""
Connection = psycopg.Connection[Any]


def create_records(connection: Connection, task_count: int) -> None:
    """Fills an empty database, whose user must be a superuser."""
    with connection.transaction(), connection.cursor() as cursor:
        # Skips constraint checks, which take minutes for a million records that are valid by construction.
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("SET LOCAL maintenance_work_mem = '1GB'")
        series = "generate_series(1, {}) n"
        insert_rows(cursor, "public", "company", COMPANY_VALUES, series.format(COMPANY_COUNT))
        insert_rows(cursor, "public", "sys_group", GROUP_VALUES, series.format(GROUP_COUNT))
        insert_rows(cursor, "public", "user", USER_VALUES, series.format(USER_COUNT))
        insert_rows(cursor, "records", "service", SERVICE_VALUES, series.format(SERVICE_COUNT))
        cursor.execute(CREATE_TEXTS.encode())
        # In the same transaction, so that the worker never finds an index missing and starts to build it.
        indexes = cursor.execute(SECONDARY_INDEXES.encode()).fetchall()
        for name, _, _ in indexes:
            cursor.execute(f"DROP INDEX {name}".encode())
        # The demo records have different times and ids in each database.
        cursor.execute("DELETE FROM records.task")
        insert_rows(cursor, "records", "task", TASK_VALUES, TASK_ROWS.format(count=task_count))
        for _, definition, _ in indexes:
            cursor.execute(definition.encode())
        if cursor.execute(RESTRICT_RULE.encode(), [READ_CONDITION]).rowcount != 1:
            raise SystemExit("the demo rule to restrict was not found")
    for setting in QUIET_SETTINGS:
        connection.execute(f"ALTER SYSTEM SET {setting}".encode())
    connection.execute("SELECT pg_reload_conf()")
    vacuum(connection)
    connection.execute("CHECKPOINT")


def vacuum(connection: "psycopg.Connection[Any]") -> None:
    """Retries after a deadlock with the worker, which may build an index of another table at the same time."""
    for _ in range(3):
        try:
            connection.execute("VACUUM (ANALYZE)")
            return
        except psycopg.errors.DeadlockDetected:
            continue
    raise SystemExit("VACUUM failed with three deadlocks.")


def insert_rows(cursor: "psycopg.Cursor[Any]", schema: str, table: str, values: Mapping[str, str], source: str) -> None:
    """Inserts rows; values for columns that this version of the table does not have are left out."""
    cursor.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s",
        [schema, table],
    )
    existing_columns = {name for (name,) in cursor.fetchall()}
    columns = {name: value for name, value in values.items() if name in existing_columns}
    column_names = sql.SQL(", ").join(map(sql.Identifier, columns))
    select = f" SELECT {', '.join(columns.values())} FROM {source}"
    cursor.execute(sql.SQL("INSERT INTO {} ({})").format(sql.Identifier(schema, table), column_names) + sql.SQL(select))


def wait_for_indexes(connection: Connection, timeout_s: float = 180, quiet_s: float = 10) -> int:
    """Waits until the worker has built the indexes; returns their number when it has not changed for a while."""
    indexes: list[Any] = []
    deadline, unchanged_since = time.monotonic() + timeout_s, time.monotonic()
    while time.monotonic() < deadline:
        current_indexes = connection.execute(SECONDARY_INDEXES.encode()).fetchall()
        if current_indexes != indexes or not current_indexes or not all(is_valid for _, _, is_valid in current_indexes):
            indexes, unchanged_since = current_indexes, time.monotonic()
        elif time.monotonic() - unchanged_since > quiet_s:
            return len(current_indexes)
        time.sleep(0.5)
    raise SystemExit("the indexes of the tasks were not built in time")


def sample_task_ids(connection: Connection) -> list[str]:
    """Ids of tasks from all parts of the table that the caller may read and change."""
    return [sys_id for (sys_id,) in connection.execute(SAMPLE_QUERY.encode())]

"""In charge of the records that are measured: tasks, people, groups, and a caller whose rule keeps most of them."""

from dataclasses import dataclass
from typing import Any

from django.db import connection

from accounts import roles
from accounts.authentication import access_keys
from accounts.models import Role, User, UserRole
from tableapi.design import index_builder
from tableapi.models import Rule, Table

USERS, GROUPS, SERVICES, COMPANIES = 20_000, 200, 50, 100
TEXTS = 5_000
SAMPLE = 1_000
# Nine of ten tasks are active; a caller sees these and own ones.
READABLE = "active=true^ORcallerDYNAMICme"

# Ids are made of a number, so that a reference costs no look-up while a million records are made.
PEOPLE = """
    INSERT INTO company (sys_id, sys_created_at, sys_updated_at, sys_version, name, active)
    SELECT '1600000003' || lpad(n::text, 8, '0'), now(), now(), 0, 'Company ' || n, true
    FROM generate_series(1, %(companies)s) n;
    INSERT INTO sys_group (sys_id, sys_created_at, sys_updated_at, sys_version, name, active)
    SELECT '1600000001' || lpad(n::text, 8, '0'), now(), now(), 0, 'Group ' || n, true
    FROM generate_series(1, %(groups)s) n;
    INSERT INTO records.service (sys_id, name)
    SELECT '1600000002' || lpad(n::text, 8, '0'), 'Service ' || n FROM generate_series(1, %(services)s) n;
    INSERT INTO "user" (sys_id, sys_created_at, sys_updated_at, sys_version, login, password, email, first_name,
        last_name, phone, company_id, active)
    SELECT '1600000000' || lpad(n::text, 8, '0'), now(), now(), 0, 'person' || n, '!', 'person' || n || '@example.com',
        'First' || n %% 500, 'Last' || n %% 4000, '', '1600000003' || lpad((1 + n %% %(companies)s)::text, 8, '0'), true
    FROM generate_series(1, %(users)s) n
"""

# Of words that are as often used as words are: few of them often.
TEXTS_OF_WORDS = """
    CREATE TEMPORARY TABLE texts AS
    SELECT n AS place, string_agg('word' || floor(power(random(), 3) * 20000)::int, ' ') AS long
    FROM generate_series(0, %(texts)s - 1) n, generate_series(1, 21) GROUP BY n
"""

USER = "'1600000000' || lpad((1 + floor(power({random}, 2) * %(users)s))::bigint::text, 8, '0')"
TASKS = f"""
    INSERT INTO records.task (sys_id, sys_created_at, sys_updated_at, sys_created_by, sys_updated_by, sys_version,
        number, display_name, state, priority, urgency, impact, active, assigned_user, assignment_group, closed_by,
        followers_list, parent_id, opened_by, caller, contact, service, company, short_description, subject,
        description, work_notes, comments, additional_comments, opened_at, due_date, sla_due, closed_at,
        state_changed_at, attention_required, approval_state)
    SELECT own_id, at, at + interval '1 day', person, person, n %% 7,
        'TSK' || lpad(n::text, 7, '0'), 'TSK' || lpad(n::text, 7, '0'),
        CASE WHEN active THEN (ARRAY['1', '2', '2', '3'])[1 + n %% 4] ELSE (ARRAY['4', '5'])[1 + n %% 2] END,
        CASE WHEN b < 0.02 THEN '1' WHEN b < 0.1 THEN '2' WHEN b < 0.5 THEN '3' ELSE '4' END,
        (1 + n %% 3)::text, (1 + n %% 3)::text, active,
        CASE WHEN b < 0.8 THEN {USER.format(random="c")} END, '1600000001' || lpad((1 + n %% %(groups)s)::text, 8, '0'),
        CASE WHEN NOT active THEN {USER.format(random="c")} END,
        CASE WHEN n %% 10 = 0 THEN ARRAY[person, {USER.format(random="b")}] END,
        CASE WHEN n %% 20 = 0 THEN lag(own_id, 3) OVER (ORDER BY n) END,
        person, person, CASE WHEN n %% 3 = 0 THEN person END,
        '1600000002' || lpad((1 + n %% %(services)s)::text, 8, '0'),
        '1600000003' || lpad((1 + n %% %(companies)s)::text, 8, '0'),
        left(long, 60), left(long, 50) || ' ' || n, long || ' ' || n, CASE WHEN n %% 2 = 0 THEN long END,
        CASE WHEN n %% 2 = 1 THEN long END, CASE WHEN n %% 5 = 0 THEN long END,
        at, at + interval '5 days', at + interval '2 days', CASE WHEN NOT active THEN at + interval '4 days' END,
        at, n %% 50 = 0, 'not_requested'
    FROM (SELECT n, a < 0.9 AS active, b, c, at, {USER.format(random="d")} AS person,
            lpad(extract(epoch FROM at)::bigint::text, 10, '0') || lpad(n::text, 8, '0') AS own_id
        FROM (SELECT n, random() AS a, random() AS b, random() AS c, random() AS d,
            now() - interval '1 hour' - interval '1000 days' * (1 - n::float / %(tasks)s) AS at
            FROM generate_series(1, %(tasks)s) n) numbers) drawn
    JOIN texts ON texts.place = (drawn.n::bigint * 7919) %% %(texts)s
"""
OTHER_INDEXES = """
    SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
    WHERE indrelid = 'records.task'::regclass AND NOT indisprimary
"""
SAMPLED = """
    SELECT sys_id FROM records.task WHERE active = %s AND number = ANY (%s) ORDER BY random() LIMIT %s
"""


@dataclass(frozen=True)
class Made:
    """What the requests need to know of the records."""

    key: str
    tasks: list[str]
    hidden: list[str]


def make(tasks: int) -> Made:
    """Make everything in an empty database."""
    numbers = {"users": USERS, "groups": GROUPS, "services": SERVICES, "companies": COMPANIES, "texts": TEXTS}
    with connection.cursor() as cursor:
        # The records are right by the way they are made; asking so for a million of them takes minutes.
        cursor.execute("SET session_replication_role = replica; SELECT setseed(0.5)")
        cursor.execute("SET maintenance_work_mem = '1GB'")
        cursor.execute(PEOPLE, numbers)
        cursor.execute(TEXTS_OF_WORDS, numbers)
        left_for_later = _drop_indexes(cursor)
        cursor.execute(TASKS, {**numbers, "tasks": tasks})
        cursor.execute("SELECT setval('records.\"N' || %s || '\"', %s)", [Table.objects.get(name="task").pk, tasks])
        for statement in left_for_later:
            cursor.execute(statement)
        cursor.execute("SET session_replication_role = DEFAULT")
    _build_indexes()
    key = _caller()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")
        cursor.execute("CHECKPOINT")
        return Made(key, _sample(cursor, tasks, active=True), _sample(cursor, tasks, active=False))


def _drop_indexes(cursor: Any) -> list[str]:
    """Filling them record by record takes minutes; returns how those are made that `indexes` does not build."""
    cursor.execute(OTHER_INDEXES)
    found = cursor.fetchall()
    for name, _ in found:
        cursor.execute(f"DROP INDEX {name}")
    return [made for name, made in found if not index_builder.OURS.fullmatch(name.rpartition(".")[2].strip('"'))]


def _build_indexes() -> None:
    """What the worker builds; while nobody writes it takes half as long, then the worker's way finds nothing to do."""
    with connection.cursor() as cursor:
        for index in index_builder.missing():
            cursor.execute(index.create())
    index_builder.build()
    if missing := index_builder.missing():
        raise SystemExit(f"these indexes were not built: {missing}")


def _caller() -> str:
    """Somebody with the role that the rules ask for; returns an access key."""
    role = Role.objects.get(name=roles.ITIL)
    table = Table.objects.get(name="task")
    for operation, condition in (("read", READABLE), ("create", ""), ("write", "")):
        Rule(operation=operation, table=table, roles=[role.pk], condition=condition, description=operation).save()
    user = User.objects.create_user("caller")
    UserRole(user=user, role=role).save()
    return access_keys.create(user, "bench", expires_at=None)


def _sample(cursor: Any, tasks: int, *, active: bool) -> list[str]:
    """Ids of active tasks, or of others, from everywhere in the table."""
    step = max(1, tasks // (2 * SAMPLE))
    cursor.execute(SAMPLED, [active, [f"TSK{number:07}" for number in range(1, tasks, step)], SAMPLE])
    return [sys_id for (sys_id,) in cursor.fetchall()]

"""Scans the change log for changes that users are notified of, and creates rows of `sys_notification`.

A change notifies a user at most once, for the first reason that applies, and never the user who made it.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from system import properties
from system.database_statements import run_named_sql
from system.property_definitions import ASSIGNMENT_COLUMNS
from tableapi.attached.records import root_key
from tableapi.catalogue.definitions import USER_TABLE, Catalogue
from tableapi.changes.feed_statement import DATABASE, IS_SETTLED, reset_position_sql
from tableapi.changes.logged_values import table_key, value_key
from tableapi.database import catalogue_loader
from tableapi.models import Notification

BATCH_SIZE = 1_000
MAX_BATCHES = 20
# Changes of transactions that run for longer than this create no notifications.
MAX_TRANSACTION_AGE = timedelta(days=1)
RETENTION_PERIOD = timedelta(days=90)

# The first run starts at the current end of the log.
INSERT_POSITION = f"""
    INSERT INTO public.sys_notification_position (id, database, transaction, change_id, at)
    VALUES (1, {DATABASE}, pg_snapshot_xmin(pg_current_snapshot())::text, 0, now()) ON CONFLICT (id) DO NOTHING
"""
RESET_POSITION = reset_position_sql("sys_notification_position")
POSITION = "SELECT transaction, change_id, at FROM public.sys_notification_position"
MOVE_POSITION = """
    UPDATE public.sys_notification_position SET transaction = %(transaction)s, change_id = %(change)s,
        at = CASE WHEN %(is_full)s THEN at ELSE now() END
"""
CREATE_NOTIFICATIONS = f"""
    WITH change AS MATERIALIZED (
        SELECT c.*, t.root FROM unnest(%(keys)s::varchar[], %(roots)s::varchar[]) t(key, root) CROSS JOIN LATERAL (
            SELECT transaction, id, at, table_key, record_id, operation, changed_by, old_values, new_values
            FROM public.sys_change
            WHERE table_key = t.key AND {IS_SETTLED} AND at > %(at)s::timestamptz - %(max_age)s::interval
              AND (transaction, id) > (%(transaction)s::text::xid8, %(change)s::bigint)
            ORDER BY transaction, id LIMIT {BATCH_SIZE}
        ) c ORDER BY c.transaction, c.id LIMIT {BATCH_SIZE}
    ), candidate (user_id, priority, reason, change_id, table_key, record_id, comment_id) AS (
        SELECT c.new_values ->> a.key, 1, 'assigned', c.id, c.root, c.record_id, NULL
        FROM change c JOIN unnest(%(assigned_tables)s::varchar[], %(assigned_keys)s::varchar[]) a(table_key, key)
          ON a.table_key = c.table_key AND c.new_values ->> a.key IS DISTINCT FROM c.old_values ->> a.key
        UNION ALL
        SELECT mention, 2, 'mentioned', c.id, m.table_key, m.record_id, m.sys_id
        FROM change c JOIN public.sys_comment m ON m.sys_id = c.record_id AND c.table_key = 'sys_comment'
          CROSS JOIN LATERAL jsonb_array_elements_text(
            coalesce(c.new_values -> 'mentions', CASE c.operation WHEN 'create' THEN to_jsonb(m.mentions) END)
          ) mention
        WHERE m.deletion_id IS NULL AND mention = ANY (m.mentions)
          AND (c.old_values -> 'mentions' ? mention) IS NOT TRUE
        UNION ALL
        SELECT f.user_id, 3, 'commented', c.id, m.table_key, m.record_id, m.sys_id
        FROM change c JOIN public.sys_comment m ON m.sys_id = c.record_id AND c.table_key = 'sys_comment'
          JOIN public.sys_follower f ON f.record_id = m.record_id AND f.table_key = m.table_key
        WHERE c.operation = 'create' AND m.deletion_id IS NULL
        UNION ALL
        SELECT f.user_id, 4, 'changed', c.id, c.root, c.record_id, NULL
        FROM change c JOIN public.sys_follower f ON f.record_id = c.record_id AND f.table_key = c.root
        WHERE c.operation IN ('update', 'clear') AND c.new_values <> c.old_values
    ), inserted AS (
        INSERT INTO public.sys_notification
            (user_id, change_id, reason, table_key, record_id, comment_id, created_at, email_at, email_attempts)
        SELECT DISTINCT ON (u.sys_id, d.change_id) u.sys_id, d.change_id, d.reason, d.table_key, d.record_id,
            d.comment_id, c.at, CASE WHEN %(has_email)s AND u.email <> ''
                AND (n.email_reasons IS NULL OR d.reason = ANY (n.email_reasons)) THEN now() END, 0
        FROM candidate d JOIN change c ON c.id = d.change_id JOIN public."user" u ON u.sys_id = d.user_id AND u.active
          LEFT JOIN public.accounts_notification_choice n ON n.user_id = u.sys_id
        WHERE u.sys_id IS DISTINCT FROM c.changed_by AND (n.reasons IS NULL OR d.reason = ANY (n.reasons))
        ORDER BY u.sys_id, d.change_id, d.priority, d.comment_id
        ON CONFLICT (user_id, change_id) DO NOTHING
    )
    SELECT transaction::text, id, count(*) OVER () FROM change ORDER BY change.transaction DESC, id DESC LIMIT 1
"""


def notify_of_changes() -> None:
    """Process new changes in batches, each in one transaction with the position, so that none is lost or repeated."""
    catalogue = catalogue_loader.reload_if_changed()
    for _ in range(MAX_BATCHES):
        if not _process_batch(catalogue):
            return


def delete_old_notifications() -> None:
    rows = Notification.objects.filter(created_at__lt=Now() - RETENTION_PERIOD)
    rows._raw_delete(rows.db)  # nothing refers to them


def _process_batch(catalogue: Catalogue) -> bool:
    """Process one batch and return whether there may be more."""
    with transaction.atomic():
        if not run_named_sql(f"{POSITION} FOR UPDATE SKIP LOCKED", {}).rows():  # first run, or locked by another worker
            run_named_sql(INSERT_POSITION, {})
            return False
        run_named_sql(RESET_POSITION, {})
        ((start_transaction, start_change, at),) = run_named_sql(POSITION, {}).rows()
        start = {"transaction": start_transaction, "change": start_change, "at": at, "max_age": MAX_TRANSACTION_AGE}
        tables, assignment_columns = list(catalogue.tables.values()), list(_assignment_columns(catalogue))
        parameters: dict[str, Any] = start | {
            "keys": [table_key(table) for table in tables],
            "roots": [root_key(catalogue, table) for table in tables],
            "assigned_tables": [table for table, _ in assignment_columns],
            "assigned_keys": [key for _, key in assignment_columns],
            "has_email": bool(settings.EMAIL_HOST),
        }
        rows = run_named_sql(CREATE_NOTIFICATIONS, parameters).rows()
        last_transaction, last_change, count = next(iter(rows), (start_transaction, start_change, 0))
        is_full = count == BATCH_SIZE
        run_named_sql(MOVE_POSITION, {"transaction": last_transaction, "change": last_change, "is_full": is_full})
    return bool(is_full)


def _assignment_columns(catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    """Yield the table and column keys, as in the log, of columns that assign a record to a user."""
    names = properties.get(ASSIGNMENT_COLUMNS)
    for table in catalogue.tables.values():
        for column in (table.columns[name] for name in names if name in table.columns):
            if column.column_type.is_reference and column.reference == USER_TABLE:
                yield table_key(table), value_key(table, column)

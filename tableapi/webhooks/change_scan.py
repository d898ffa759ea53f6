"""Scans the change log for changes to watched tables, and creates rows of `sys_webhook_delivery`."""

from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now

from system.database_statements import run_named_sql
from tableapi.changes.feed_statement import IS_SETTLED, reset_position_sql
from tableapi.models import Webhook, WebhookDelivery

from . import delivery
from .metrics import UNFINISHED_STATES

BATCH_SIZE = 1_000
MAX_BATCHES = 20
# Changes of transactions that run for longer than this are not sent. It keeps a scan from reading the whole log.
MAX_TRANSACTION_AGE = timedelta(days=1)
RETENTION_PERIOD = timedelta(days=30)

LOCKED_POSITION = "SELECT FROM public.sys_webhook_position FOR UPDATE SKIP LOCKED"
RESET_POSITION = reset_position_sql("sys_webhook_position")
# One statement, so that webhooks, tables, changes and the new position are of the same moment.
CREATE_DELIVERIES = f"""
    WITH RECURSIVE member (webhook_id, operations, table_id) AS (
        SELECT sys_id, operations, table_id FROM public.sys_webhook WHERE active
        UNION ALL
        SELECT m.webhook_id, m.operations, t.sys_id FROM member m JOIN public.sys_db_table t ON t.parent_id = m.table_id
    ), watch AS (
        SELECT m.webhook_id, m.operations, CASE WHEN t.is_system THEN t.name ELSE t.sys_id END AS table_key
        FROM member m JOIN public.sys_db_table t ON t.sys_id = m.table_id
    ), change AS MATERIALIZED (
        SELECT c.* FROM public.sys_webhook_position p CROSS JOIN (SELECT DISTINCT table_key FROM watch) w
        CROSS JOIN LATERAL (
            SELECT transaction, id, table_key, record_id, operation
            FROM public.sys_change
            WHERE table_key = w.table_key AND {IS_SETTLED} AND at > p.at - %(max_age)s::interval
              AND (transaction, id) > (p.transaction::text::xid8, p.change_id)
            ORDER BY transaction, id LIMIT {BATCH_SIZE}
        ) c ORDER BY c.transaction, c.id LIMIT {BATCH_SIZE}
    ), inserted AS (
        INSERT INTO public.sys_webhook_delivery
            (webhook_id, table_key, record_id, change_id, operation, state, due_at, attempts, answer, reason)
        SELECT w.webhook_id, c.table_key, c.record_id, c.id, c.operation, 'waiting', now(), 0, '', ''
        FROM change c JOIN watch w ON w.table_key = c.table_key
          AND CASE c.operation WHEN 'clear' THEN 'update' ELSE c.operation END = ANY (w.operations)
        ORDER BY c.transaction, c.id
    ), last AS (SELECT transaction::text, id FROM change ORDER BY change.transaction DESC, id DESC LIMIT 1)
    UPDATE public.sys_webhook_position SET
        transaction = coalesce((SELECT transaction FROM last), pg_snapshot_xmin(pg_current_snapshot())::text),
        change_id = coalesce((SELECT id FROM last), 0),
        at = CASE WHEN EXISTS (SELECT FROM last) THEN at ELSE now() END
    RETURNING EXISTS (SELECT FROM last)
"""


def create_deliveries() -> None:
    """Examine new changes in batches, each in one transaction with the position, so that none is lost or repeated."""
    for _ in range(MAX_BATCHES):
        with transaction.atomic():
            if not run_named_sql(LOCKED_POSITION, {}).rows():  # another worker is scanning
                return
            run_named_sql(RESET_POSITION, {})
            ((has_changes,),) = run_named_sql(CREATE_DELIVERIES, {"max_age": MAX_TRANSACTION_AGE}).rows()
            delivery.park_followers()
        if not has_changes:
            return


def delete_old_deliveries() -> None:
    """Delete finished deliveries, and old secrets that no longer sign."""
    old = WebhookDelivery.objects.filter(created_at__lt=Now() - RETENTION_PERIOD)
    rows = old.exclude(state__in=UNFINISHED_STATES)
    rows._raw_delete(rows.db)  # nothing refers to them
    Webhook.objects.filter(old_secret_until__lt=Now()).update(old_secret="", old_secret_until=None)

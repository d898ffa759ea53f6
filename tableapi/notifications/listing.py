"""Lists the caller's notifications, newest first, with what the caller can read now, and marks them as read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from accounts.models.notification_choices import NotificationChoice, Reason
from system import properties
from system.database_statements import run_named_sql
from system.encoded_query import QueryError
from system.errors import BadRequest, NotFound
from system.property_definitions import ASSIGNMENT_COLUMNS
from system.strict_json import InvalidJson
from tableapi.access.caller_view import record_not_found
from tableapi.attached.comments import comment_entry
from tableapi.catalogue.definitions import Catalogue, Table
from tableapi.changes import logged_values
from tableapi.models import Comment, Follower, Notification
from tableapi.query.parameters import MAX_RECORDS, ListRequest, OutputOptions, RawParameters, parse_switch
from tableapi.query.parsed_query import parse_query_text
from tableapi.read import pipeline
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext
from tableapi.read.entry_pages import Entry, EntryPage, format_time, page_of

BATCH_SIZE = 200
LOGGED_CHANGES = """
    SELECT id, table_key, changed_by, ARRAY(
        SELECT DISTINCT split_part(key, '#', 1) FROM jsonb_object_keys(old_values || new_values) key
        WHERE old_values -> key IS DISTINCT FROM new_values -> key
    ), ARRAY(
        SELECT key FROM jsonb_each_text(new_values)
        WHERE value = %(user)s AND old_values ->> key IS DISTINCT FROM value
    )
    FROM public.sys_change WHERE record_id = ANY (%(records)s::varchar[]) AND id = ANY (%(ids)s::bigint[])
"""


# The table key, user id and column keys of a logged change, and the keys of the columns set to the recipient's id.
LoggedChange = tuple[str, str | None, list[str], list[str]]


def entries_of(context: ReadContext, notifications: Sequence[Notification]) -> dict[str, dict[str, Any]]:
    """Return entries by notification id, without those about data that the caller cannot read."""
    if not notifications:
        return {}
    catalogue = context.view.catalogue
    values = {
        "records": [row.comment_id or row.record_id for row in notifications],
        "ids": [row.change_id for row in notifications],
        "user": context.caller.user_id,
    }
    changes: dict[int, LoggedChange] = {row[0]: row[1:] for row in run_named_sql(LOGGED_CHANGES, values).rows()}
    comments = Comment.objects.filter(deletion_id=None).in_bulk(
        [row.comment_id for row in notifications if row.comment_id]
    )
    entries: dict[str, dict[str, Any]] = {}
    for key in {row.table_key for row in notifications}:
        table = logged_values.table_of(catalogue, key)
        if table is None:
            continue
        table_rows = [row for row in notifications if row.table_key == key]
        display_values = _readable_records(context, table, {row.record_id for row in table_rows})
        for row in table_rows:
            detail = _detail(context, row, changes.get(row.change_id), comments)
            if row.record_id in display_values and detail is not None:
                entries[row.pk] = {
                    "sys_id": row.pk,
                    "reason": row.reason,
                    "table": table.name,
                    "record": row.record_id,
                    "display_value": display_values[row.record_id],
                    "sys_created_at": format_time(row.created_at),
                    "read": row.read_at is not None,
                    **detail,
                }
    return entries


def _readable_records(context: ReadContext, table: Table, ids: Iterable[str]) -> dict[str, Any]:
    """Return the display value of each of these records that the caller can read."""
    display = table.display_column
    fields = ("sys_id", display.name) if display and context.view.column(table, display.name) else ("sys_id",)
    query = parse_query_text(f"sys_idIN{','.join(sorted(ids))}")
    request = ListRequest(OutputOptions(fields, with_links=False), query, limit=MAX_RECORDS)
    try:
        records = pipeline.fetch_list(context, table.name, request).records()
    except (BadRequest, NotFound, QueryError):
        return {}  # the caller cannot see the table or its ids
    return {record["sys_id"]: record.get(fields[-1]) for record in records}


def _detail(
    context: ReadContext, row: Notification, change: LoggedChange | None, comments: Mapping[str, Comment]
) -> dict[str, Any] | None:
    """Return the comment or the changed columns, as far as the caller can read them in every record."""
    if row.reason in (Reason.MENTIONED, Reason.COMMENTED):
        comment = comments.get(row.comment_id or "")
        return None if comment is None else {"comment": comment_entry(comment)}
    table_key, user_id, keys, assigned_keys = change or ("", None, [], [])
    table = logged_values.table_of(context.view.catalogue, table_key)
    if table is None:
        return None
    columns = logged_values.readable_columns(context.view, table)
    names = sorted(columns[key].name for key in keys if key in columns)
    extra = {"sys_updated_by": user_id} if any(column.name == "sys_updated_by" for column in columns.values()) else {}
    assigned_names = {columns[key].name for key in assigned_keys if key in columns}
    if row.reason == Reason.ASSIGNED and assigned_names.isdisjoint(properties.get(ASSIGNMENT_COLUMNS)):
        # The caller cannot read the column of the assignment. For a follower, this is a change like any other.
        followers = Follower.objects.filter(user=row.user_id, table_key=row.table_key, record_id=row.record_id)
        was_following = followers.filter(created_at__lte=row.created_at).exists()
        extra["reason"] = Reason.CHANGED
        names = names if was_following and Reason.CHANGED in NotificationChoice.of(row.user).reasons else []
    return {"columns": names, **extra} if names else None


@on_current_catalogue
def read_notifications(catalogue: Catalogue, caller: Caller, raw: RawParameters) -> EntryPage:
    only_unread = parse_switch(raw, "unread")
    context = caller.context(catalogue)

    def read_entries(before: str | None, _: int) -> Iterator[tuple[str, Entry]]:
        """Yield entries until the page is full; a short page would reveal the number of unreadable ones."""
        rows = _notifications_of(caller, {"read_at": None} if only_unread else {})
        while True:
            batch = list((rows.filter(pk__lt=before) if before else rows)[:BATCH_SIZE])
            entries = entries_of(context, batch)
            yield from ((row.pk, entries[row.pk]) for row in batch if row.pk in entries)
            if len(batch) < BATCH_SIZE:
                return
            before = batch[-1].pk

    return page_of(raw, ["notifications", caller.user_id, str(only_unread)], read_entries)


@on_current_catalogue
def mark(catalogue: Catalogue, caller: Caller, notification_id: str, body: Any) -> dict[str, Any]:
    read_at = _parse_read_at(body)
    rows = _notifications_of(caller, {"pk": notification_id})
    entry = entries_of(caller.context(catalogue), list(rows)).get(notification_id)
    if entry is None:
        raise record_not_found()
    rows.update(read_at=read_at)
    return {**entry, "read": read_at is not None}


def mark_all(caller: Caller, body: Any) -> dict[str, Any]:
    read_at = _parse_read_at(body)
    _notifications_of(caller, {}).update(read_at=read_at)
    return {"read": read_at is not None}


def _notifications_of(caller: Caller, conditions: dict[str, Any]) -> Any:
    return Notification.objects.filter(user_id=caller.user_id, **conditions).order_by("-pk")


def _parse_read_at(body: Any) -> datetime | None:
    if not isinstance(body, dict) or body.keys() != {"read"} or not isinstance(body["read"], bool):
        raise InvalidJson('The body must be a JSON object with only "read", which must be true or false.')
    return timezone.now() if body["read"] else None

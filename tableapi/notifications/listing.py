"""Lists the caller's notifications, newest first, and marks them as read."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.utils import timezone

from system.strict_json import InvalidJson
from tableapi.access.caller_view import record_not_found
from tableapi.catalogue.definitions import Catalogue
from tableapi.models import Notification
from tableapi.query.parameters import RawParameters, parse_switch
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller
from tableapi.read.entry_pages import Entry, EntryPage, page_of

from .entries import entries_of

BATCH_SIZE = 200


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

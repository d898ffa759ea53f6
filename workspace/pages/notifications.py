"""The caller's notifications: what happened to which record, and whether it was read."""

from collections.abc import Iterable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from tableapi.catalogue.definitions import USER_TABLE, Catalogue, Table
from tableapi.notifications import listing
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller
from workspace.forms.parameters import parameters
from workspace.pages.activity import find_names
from workspace.pages.activity_display import comment_parts, time_context
from workspace.pages.base import WorkspacePage

NOTIFICATIONS_PER_PAGE = 20
MAX_UNREAD_COUNT = 99


def unread_count(caller: Caller) -> int:
    """The number of unread notifications that the caller can read, up to MAX_UNREAD_COUNT.

    One statement if there are none. Otherwise it reads them: a count of the rows would include those about records that
    the caller cannot read any more.
    """
    return len(listing.read_notifications(caller, parameters(unread=1, sysparm_limit=MAX_UNREAD_COUNT)).entries)


class NotificationsPage(WorkspacePage):
    """`/notifications/`. A POST marks all notifications as read."""

    def get(self, request: HttpRequest) -> HttpResponse:
        only_unread = request.GET.get("show") == "unread"
        raw = parameters(
            sysparm_limit=NOTIFICATIONS_PER_PAGE,
            sysparm_cursor=request.GET.get("after", ""),
            unread="1" if only_unread else "",
        )
        page = listing.read_notifications(self.caller, raw)
        context = {
            "notifications": describe(self.caller, page.entries),
            "older": page.cursor,
            "only_unread": only_unread,
            "has_unread": any(not entry["read"] for entry in page.entries),
        }
        return render(request, "workspace/notifications.html", context)

    def post(self, request: HttpRequest) -> HttpResponse:
        listing.mark_all(self.caller, {"read": True})
        return redirect("notifications")


class NotificationAction(WorkspacePage):
    """Marks one notification as read or unread."""

    http_method_names = ["post", "options"]

    def post(self, request: HttpRequest, entry: str) -> HttpResponse:
        is_read = request.POST.get("notification-read", "1") == "1"
        listing.mark(self.caller, entry, {"read": is_read})
        return redirect("notifications")


@on_current_catalogue
def describe(catalogue: Catalogue, caller: Caller, entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the template shows: labels instead of column names, and the names of the users that the caller can read."""
    context = caller.context(catalogue)
    authors = {
        entry["sys_id"]: entry["comment"]["sys_created_by"] if "comment" in entry else entry.get("sys_updated_by")
        for entry in entries
    }
    names = find_names(context, ((USER_TABLE, user_id or "") for user_id in authors.values()))
    shown = []
    for entry in entries:
        table = context.view.open_table(entry["table"])
        shown.append(
            entry
            | {
                "table_label": table.label,
                "name": entry["display_value"] or entry["record"],
                "author": names.get((USER_TABLE, authors[entry["sys_id"]] or "")),
                "time": time_context(entry["sys_created_at"], caller),
                "labels": [label_of(catalogue, table, name) for name in entry.get("columns", ())],
                "parts": comment_parts(entry["comment"]["text"]) if "comment" in entry else [],
                "path": f"/tables/{entry['table']}/{entry['record']}/",
            }
        )
    return shown


def label_of(catalogue: Catalogue, table: Table, name: str) -> str:
    """The label of a column, which may belong to a table that extends this one."""
    columns = (catalogue.tables[member].columns.get(name) for member in table.family)
    return next((column.label or name for column in columns if column is not None), name)

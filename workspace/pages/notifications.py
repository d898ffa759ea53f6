"""The caller's notifications: what happened to which record, and whether it was read."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from tableapi.catalogue.definitions import Catalogue, Table
from tableapi.notifications import listing
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller
from tableapi.read.entry_pages import Entry
from workspace.forms.display import column_label
from workspace.forms.parameters import parameters
from workspace.pages.activity_stream import author_of, comment_parts, find_names, with_author
from workspace.pages.base import WorkspacePage

NOTIFICATIONS_PER_PAGE = 20


class NotificationsPage(WorkspacePage):
    """`/notifications/`. A POST marks all notifications as read, or one of them as read or unread."""

    def get(self, request: HttpRequest) -> HttpResponse:
        only_unread = request.GET.get("show") == "unread"
        after, unread = request.GET.get("after", ""), "1" if only_unread else ""
        raw = parameters(sysparm_limit=NOTIFICATIONS_PER_PAGE, sysparm_cursor=after, unread=unread)
        page = listing.read_notifications(self.caller, raw)
        values = {
            "notifications": describe(self.caller, page.entries),
            "older": page.cursor,
            "only_unread": only_unread,
            "has_unread": any(not entry["read"] for entry in page.entries),
        }
        return self.render("notifications", values)

    def post(self, request: HttpRequest, entry: str = "") -> HttpResponse:
        body = {"read": request.POST.get("notification-read", "1") == "1"}
        if entry:
            listing.mark(self.caller, entry, body)
        else:
            listing.mark_all(self.caller, body)
        return redirect("notifications")


@on_current_catalogue
def describe(catalogue: Catalogue, caller: Caller, entries: list[Entry]) -> list[Entry]:
    """What the template shows: labels instead of column names, and the names of the users that the caller can read."""
    context = caller.context(catalogue)
    names, shown = find_names(context, map(author_of, entries)), []
    for entry in entries:
        table = context.view.open_table(entry["table"])
        values = {
            "table_label": table.label,
            "labels": [_label_of(catalogue, table, name) for name in entry.get("columns", ())],
            "parts": comment_parts(entry["comment"]["text"]) if "comment" in entry else [],
        }
        shown.append(with_author(entry, names, caller) | values)
    return shown


def _label_of(catalogue: Catalogue, table: Table, name: str) -> str:
    """The label of a column, which may belong to a table that extends this one."""
    columns = (catalogue.tables[member].columns.get(name) for member in table.family)
    return next((column_label(column) for column in columns if column is not None), name)

"""The activity of a record: comments and history in one stream, attachments, and whether the caller follows it."""

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from system.errors import ServiceError
from tableapi.attached import comments, followers
from tableapi.attached.attachments import read_attachments
from tableapi.attached.media_types import IMAGE_TYPES
from tableapi.attached.preview import has_preview
from tableapi.catalogue.definitions import USER_TABLE, WRITE, Catalogue
from tableapi.query.expressions import NEVER
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext
from tableapi.read.entry_pages import Entry
from workspace.forms.options import labels_of
from workspace.forms.parameters import parameters
from workspace.pages.activity_display import Names, time_context
from workspace.pages.activity_stream import FILTERS, SOURCES, entry_context, mentioned_ids, read_stream
from workspace.pages.base import WorkspacePage

ATTACHMENTS_PER_PAGE = 20
# A larger image is only a link: the browser would load all of it for a small picture.
MAX_THUMBNAIL_BYTES = 10 * 1024 * 1024
# The template for the element that a request of htmx replaces, and what it shows. Other requests get the page.
PAGE: tuple[str, tuple[str, ...]] = ("activity", ("stream", "files", "following"))
FRAGMENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "activity": ("activity_panel", PAGE[1]),
    "activity-stream": ("activity_stream", ("stream",)),
    "activity-older": ("activity_entries", ("stream",)),
    "activity-files": ("activity_files", ("files",)),
    "activity-following": ("activity_following", ("following",)),
}


class ActivityPage(WorkspacePage):
    """`/tables/{table}/{sys_id}/activity/`."""

    def get(self, request: HttpRequest, table: str, sys_id: str) -> HttpResponse:
        return self.show(table, sys_id, request.GET)

    def show(
        self, table: str, sys_id: str, query: Any, error: ServiceError | None = None, **extra: Any
    ) -> HttpResponse:
        """Show the page or the requested part of it; after a failed action all of it, with the error."""
        template, parts = PAGE
        if "HX-Request" in self.request.headers:
            target = self.request.headers.get("HX-Target", "") if error is None else ""
            template, parts = FRAGMENTS.get(target, FRAGMENTS["activity"])
        show = query["show"] if query.get("show") in FILTERS else "all"
        context = {"show": show, "filters": FILTERS, "error": error, "file_limit": settings.ATTACHMENT_LIMIT, **extra}
        entries: list[Entry] = []
        files: list[Entry] = []
        if "stream" in parts:
            positions = {name: query.get(name, "") for name in SOURCES}
            entries, next_page = read_stream(self.caller, table, sys_id, show, positions)
            context["next_page"] = urlencode(next_page)
        if "files" in parts:
            raw = parameters(sysparm_limit=ATTACHMENTS_PER_PAGE, sysparm_cursor=query.get("files", ""))
            page = read_attachments(self.caller, table, sys_id, raw)
            files, context["older_files"] = page.entries, page.cursor
        if "following" in parts:
            context |= followers.read_following(self.caller, table, sys_id)
        context |= describe(self.caller, table, sys_id, entries, files, has_title=template == "activity")
        response = render(self.request, f"workspace/{template}.html", context, status=error.status if error else 200)
        if error:
            response["HX-Retarget"] = "#activity"
        return response


class ActivityAction(ActivityPage):
    """A change by a function of the API, after which the activity is shown. `takes_text`: it takes the text of a
    comment, in the form of a body."""

    http_method_names = ["post", "options"]
    action: Callable[..., object] = staticmethod(comments.create_comment)
    takes_text = False

    def post(self, request: HttpRequest, **path: str) -> HttpResponse:
        # Browsers send line ends as CR LF.
        text = request.POST.get("comment-text", "").replace("\r\n", "\n")
        try:
            self.action(self.caller, *path.values(), *([{"text": text}] if self.takes_text else []))
        except ServiceError as error:
            draft = {"draft": text, "draft_of": path.get("entry")} if self.takes_text else {}
            return self.show(path["table"], path["sys_id"], {}, error, **draft)
        if "HX-Request" in request.headers:
            return self.show(path["table"], path["sys_id"], {})
        return redirect(f"{reverse('record-activity', args=[path['table'], path['sys_id']])}#activity")


@on_current_catalogue
def describe(
    catalogue: Catalogue, caller: Caller, table: str, sys_id: str, entries: list[Entry], files: list[Entry], *,
    has_title: bool,
) -> dict[str, Any]:  # fmt: skip
    """What the templates show. Reads the names of the mentioned users and records, with one statement per table."""
    context = caller.context(catalogue)
    opened_table = context.view.open_table(table)
    columns = opened_table.columns
    ids = [*mentioned_ids(columns, entries), *((USER_TABLE, file["sys_created_by"]) for file in files)]
    names = find_names(context, [*ids, (table, sys_id)] if has_title else ids)
    return {
        "table": opened_table,
        "sys_id": sys_id,
        "record_name": names.get((table, sys_id), sys_id),
        "entries": [entry_context(context, columns, entry, names) for entry in entries],
        "may_comment": comments.may_comment(context.view),
        "may_attach": context.view.permissions.record_decision(WRITE, opened_table) != NEVER,
        "files": [_file_context(caller, file, names) for file in files],
    }


def find_names(context: ReadContext, ids: Iterable[tuple[str, str | None]]) -> Names:
    """The display values of records, by table and id, without those that the caller cannot read."""
    by_table: dict[str, list[str]] = {}
    for table_name, sys_id in ids:
        if sys_id:
            by_table.setdefault(table_name, []).append(sys_id)
    return {
        (table.name, sys_id): label
        for table in map(context.view.table, by_table)
        if table is not None
        for sys_id, label in labels_of(context, table, by_table[table.name]).items()
    }


def _file_context(caller: Caller, file: Entry, names: Names) -> Entry:
    return file | {
        "author": names.get((USER_TABLE, file["sys_created_by"])),
        "time": time_context(file["sys_created_at"], caller),
        "is_image": file["content_type"] in IMAGE_TYPES and file["size"] <= MAX_THUMBNAIL_BYTES,
        "has_preview": has_preview(file["content_type"], file["size"]),
    }

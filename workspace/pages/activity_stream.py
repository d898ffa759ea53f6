"""Reads the activity of a record: comments and history in one stream, newest first, attachments, and following."""

from collections.abc import Callable, Collection, Iterator, Mapping
from heapq import merge
from typing import Any
from urllib.parse import urlencode

from django.utils.datastructures import MultiValueDict

from tableapi.attached import attachments, comments, followers, preview
from tableapi.attached.media_types import IMAGE_TYPES
from tableapi.attached.records import OpenRecord, open_record
from tableapi.catalogue.definitions import USER_TABLE, WRITE, Catalogue
from tableapi.changes.history import history_page
from tableapi.query.expressions import NEVER
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller
from tableapi.read.entry_pages import Entry, EntryPage
from workspace.forms.display import column_label
from workspace.forms.parameters import parameters
from workspace.pages.activity_display import (
    Names,
    comment_parts,
    field_text,
    find_names,
    references_in,
    time_context,
)

SOURCES: Mapping[str, Callable[[OpenRecord, MultiValueDict[str, str]], EntryPage]] = {
    "comments": comments.comment_page,
    "history": lambda record, raw: history_page(record.context, record.table, record.sys_id, raw),
}
# The name in the URL, the label and the sources of each filter.
FILTERS = {
    "all": ("All", ("comments", "history")),
    "comments": ("Comments", ("comments",)),
    "changes": ("Changes", ("history",)),
}
STREAM_PAGE_SIZE = 20
ATTACHMENTS_PER_PAGE = 20
# A larger image is only a link: the browser would load all of it for a small picture.
MAX_THUMBNAIL_BYTES = 10 * 1024 * 1024
# In the place of a cursor: everything was shown.
END = "end"
# Sorts after all times, because "~" follows the digits. Only entries with a readable time can be sorted by it.
NO_TIME = "~"


@on_current_catalogue
def read_activity(
    catalogue: Catalogue, caller: Caller, table: str, sys_id: str, parts: Collection[str], query: Mapping[str, str]
) -> dict[str, Any]:
    """What the templates show of these parts. `query` has the filter, and where the pages start."""
    record = open_record(catalogue, caller, table, sys_id)
    view = record.context.view
    show = query["show"] if query.get("show") in FILTERS else "all"
    entries, next_page = _read_stream(record, show, query) if "stream" in parts else ([], {})
    raw = parameters(sysparm_limit=ATTACHMENTS_PER_PAGE, sysparm_cursor=query.get("files", ""))
    files = attachments.attachment_page(record, raw) if "files" in parts else EntryPage([])
    ids = [*_mentioned_ids(record, entries), *((USER_TABLE, file["sys_created_by"]) for file in files.entries)]
    names = find_names(record.context, [*ids, (table, sys_id)] if "title" in parts else ids)
    return {
        "table": record.table,
        "sys_id": sys_id,
        "record_name": names.get((table, sys_id), sys_id),
        "show": show,
        "filters": FILTERS,
        "entries": [_entry_context(record, entry, names) for entry in entries],
        "next_page": urlencode(next_page),
        "files": [_file_context(caller, file, names) for file in files.entries],
        "older_files": files.cursor,
        "following": "following" in parts and followers.is_following(record),
        "may_comment": comments.may_comment(view),
        "may_attach": view.permissions.record_decision(WRITE, record.table) != NEVER,
        "user_id": caller.user_id,
        "is_admin": view.permissions.is_admin,
    }


def _read_stream(record: OpenRecord, show: str, positions: Mapping[str, str]) -> tuple[list[Entry], dict[str, str]]:
    """A page of entries, and the parameters of the next page, which are empty on the last page."""
    pages = {}
    for name in FILTERS[show][1]:
        position = positions.get(name, "")
        raw = parameters(sysparm_limit=STREAM_PAGE_SIZE, sysparm_cursor=position)
        pages[name] = EntryPage([]) if position == END else SOURCES[name](record, raw)
    sources = ([_with_source(name, entry) for entry in page.entries] for name, page in pages.items())
    entries = list(merge(*sources, key=lambda entry: entry["at"] or NO_TIME, reverse=True))[:STREAM_PAGE_SIZE]
    next_page = {"show": show}
    for name, page in pages.items():
        count = sum(entry["source"] == name for entry in entries)
        if count == len(page.entries):
            next_page[name] = page.cursor or END
        else:
            next_page[name] = page.cursor_after(count) if count else positions.get(name, "")
    return entries, next_page if any(next_page[name] != END for name in pages) else {}


def _with_source(name: str, entry: Entry) -> Entry:
    """The entry with the same keys for time and author, whether it is a comment or a change."""
    at = entry.get("sys_created_at") or entry.get("sys_updated_at")
    return {**entry, "source": name, "at": at, "by": entry.get("sys_created_by") or entry.get("sys_updated_by")}


def _mentioned_ids(record: OpenRecord, entries: list[Entry]) -> Iterator[tuple[str, str | None]]:
    """The table and the id of each record whose name the entries show."""
    for entry in entries:
        yield USER_TABLE, entry["by"]
        for name, field in entry.get("fields", {}).items():
            for value in (field["old"], field["new"]):
                yield from references_in(record.table.columns[name], value)


def _entry_context(record: OpenRecord, entry: Entry, names: Names) -> Entry:
    caller = record.context.caller
    shown = {**entry, "author": names.get((USER_TABLE, entry["by"])), "time": time_context(entry["at"], caller)}
    if entry["source"] == "comments":
        return shown | {"parts": comment_parts(entry["text"])}
    fields = []
    for name, field in entry["fields"].items():
        column = record.table.columns[name]
        old, new = (field_text(column, field[side], names, caller.time_zone) for side in ("old", "new"))
        if new or entry["operation"] != "create":
            fields.append({"label": column_label(column), "old": old, "new": new})
    return shown | {"is_creation": entry["operation"] == "create", "fields": fields}


def _file_context(caller: Caller, file: Entry, names: Names) -> Entry:
    return file | {
        "author": names.get((USER_TABLE, file["sys_created_by"])),
        "time": time_context(file["sys_created_at"], caller),
        "is_image": file["content_type"] in IMAGE_TYPES and file["size"] <= MAX_THUMBNAIL_BYTES,
        "has_preview": preview.has_preview(file["content_type"], file["size"]),
    }

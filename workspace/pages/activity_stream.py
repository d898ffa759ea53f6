"""Reads the activity of a record: comments and history in one stream, newest first, attachments, and following."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date, tzinfo
from heapq import merge
from typing import Any
from urllib.parse import urlencode

from django.utils.text import Truncator

from system.templatetags.moments import moment_context
from tableapi.attached import attachments, comments, followers, preview
from tableapi.attached.media_types import IMAGE_TYPES
from tableapi.attached.records import OpenRecord, open_record
from tableapi.catalogue.definitions import USER_TABLE, WRITE, Catalogue, Column
from tableapi.catalogue.display_formats import NO_LABEL, YES_LABEL, duration_text
from tableapi.catalogue.html import extract_plain_text
from tableapi.changes.history import history_page
from tableapi.query.expressions import NEVER
from tableapi.query.parameters import RawParameters
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext
from tableapi.read.entry_pages import Entry, EntryPage
from tableapi.read.pipeline import RECORD_ID
from workspace.forms.display import column_label, display_text, local_time
from workspace.forms.options import labels_of
from workspace.forms.parameters import parameters

SOURCES: Mapping[str, Callable[[OpenRecord, RawParameters], EntryPage]] = {
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
# The display values of records, by table and id; without those that the caller cannot read.
Names = Mapping[tuple[str, str | None], str]

MAX_SHOWN_CHARACTERS = 200
MAX_SHOWN_REFERENCES = 10
UNNAMED = "(not available)"
LINK_OR_MENTION = re.compile(
    rf"(?P<link>https?://[^\s<>\"]+[^\s<>\".,;:!?)\]}}'])|(?P<mention>{comments.MENTION.pattern})"
)
# The display value of a value in the history, which contains stored values only.
DISPLAY_VALUES: Mapping[str, Callable[[Any], str]] = {
    "boolean": lambda value: YES_LABEL if value else NO_LABEL,
    "date": lambda value: "{0.day} {0:%b %Y}".format(date.fromisoformat(value)),
    "duration": lambda value: duration_text(int(value)),
    "percent": lambda value: f"{value}%",
}


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
    title_ids = [(table, sys_id)] if "title" in parts else []
    names = find_names(record.context, [*_mentioned_ids(record, [*entries, *files.entries]), *title_ids])
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
        raw = parameters(sysparm_limit=STREAM_PAGE_SIZE, sysparm_cursor=positions.get(name, ""))
        pages[name] = EntryPage([]) if positions.get(name) == END else SOURCES[name](record, raw)
    sources = ([entry | {"source": name} for entry in page.entries] for name, page in pages.items())
    entries = list(merge(*sources, key=lambda entry: time_of(entry) or NO_TIME, reverse=True))[:STREAM_PAGE_SIZE]
    next_page = {"show": show}
    for name, page in pages.items():
        count = sum(entry["source"] == name for entry in entries)
        if count == len(page.entries):
            next_page[name] = page.cursor or END
        else:
            next_page[name] = page.cursor_after(count) if count else positions.get(name, "")
    return entries, next_page if any(next_page[name] != END for name in pages) else {}


def _mentioned_ids(record: OpenRecord, entries: list[Entry]) -> Iterator[tuple[str, str | None]]:
    """The table and the id of each record whose name the entries show."""
    for entry in entries:
        yield author_of(entry)
        for name, field in entry.get("fields", {}).items():
            for value in (field["old"], field["new"]):
                yield from references_in(record.table.columns[name], value)


def _entry_context(record: OpenRecord, entry: Entry, names: Names) -> Entry:
    caller = record.context.caller
    shown = with_author(entry, names, caller)
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
    return with_author(file, names, caller) | {
        "is_image": file["content_type"] in IMAGE_TYPES and file["size"] <= MAX_THUMBNAIL_BYTES,
        "has_preview": preview.has_preview(file["content_type"], file["size"]),
    }


def time_of(entry: Entry) -> str | None:
    """When a comment, file or notification was created, or a change was made; None if the caller cannot read it."""
    return entry.get("sys_created_at") or entry.get("sys_updated_at")


def author_of(entry: Entry) -> tuple[str, str | None]:
    """The table and id of the user who did this, for a notification who caused it; None if unreadable."""
    cause = entry.get("comment", entry)
    return USER_TABLE, cause.get("sys_created_by") or cause.get("sys_updated_by")


def with_author(entry: Entry, names: Names, caller: Caller) -> Entry:
    return entry | {"author": names.get(author_of(entry)), "time": time_context(time_of(entry), caller)}


def find_names(context: ReadContext, ids: Iterable[tuple[str, str | None]]) -> Names:
    """The display values of records, by table and id. Reads them with one statement per table."""
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


def references_in(column: Column, value: Any) -> Iterator[tuple[str, str]]:
    """The table and id of each record that a value refers to, as far as it is shown."""
    if column.reference and value:
        ids = value if isinstance(value, list) else [value]
        yield from ((column.reference, id_) for id_ in ids[:MAX_SHOWN_REFERENCES] if RECORD_ID.fullmatch(str(id_)))


def field_text(column: Column, value: Any, names: Names, zone: tzinfo) -> str:
    """The text of a value in the history.

    >>> from datetime import UTC
    >>> field_text(Column("state", "choice", "task", "state", choices=(("1", "New"),)), "1", {}, UTC)
    'New'
    >>> field_text(Column("caller", "reference", "task", "caller", reference="user"), "7", {("user", "7"): "anna"}, UTC)
    'anna'
    """
    if value is None:
        return ""
    if column.reference:
        shown = [names.get(key, UNNAMED) for key in references_in(column, value)]
        more = len(value) - MAX_SHOWN_REFERENCES if isinstance(value, list) else 0
        return ", ".join([*shown, f"{more} more"] if more > 0 else shown)
    if column.column_type.is_html and not column.converted_from_text:
        return Truncator(extract_plain_text(value)).chars(MAX_SHOWN_CHARACTERS)
    to_display = DISPLAY_VALUES.get(column.type)
    display = dict(column.choices).get(value) if column.choices else to_display(value) if to_display else None
    field = {"value": value, "display_value": display}
    return Truncator(display_text(column, field, zone)).chars(MAX_SHOWN_CHARACTERS)


def time_context(value: str | None, caller: Caller) -> dict[str, str]:
    """A time as the Table API returns it: for machines, on the caller's clock, and relative to now. Empty if hidden."""
    if value is None:
        return {}
    return moment_context(local_time(value, caller.time_zone), caller.now)


def comment_parts(text: str) -> list[dict[str, str | None]]:
    """Splits a comment where links and mentions begin and end.

    >>> [(part["kind"], part["text"]) for part in comment_parts("See https://a.b/c?d=1. @anna")]
    [('text', 'See '), ('link', 'https://a.b/c?d=1'), ('text', '. '), ('mention', '@anna')]
    """
    parts: list[dict[str, str | None]] = []
    position = 0
    for match in LINK_OR_MENTION.finditer(text):
        parts.append({"kind": "text", "text": text[position : match.start()]})
        parts.append({"kind": match.lastgroup, "text": match[0]})
        position = match.end()
    parts.append({"kind": "text", "text": text[position:]})
    return [part for part in parts if part["text"]]

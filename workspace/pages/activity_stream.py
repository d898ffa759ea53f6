"""Merges the comments and the history of a record into one stream, newest first."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from typing import Any

from django.utils.datastructures import MultiValueDict

from tableapi.attached.comments import read_comments
from tableapi.catalogue.definitions import USER_TABLE, Column
from tableapi.changes.history import read_history
from tableapi.read.context import Caller, ReadContext
from tableapi.read.entry_pages import Entry, EntryPage
from workspace.forms.parameters import parameters
from workspace.pages.activity_display import Names, comment_parts, field_text, references_in, time_context

SOURCES: Mapping[str, Callable[[Caller, str, str, MultiValueDict[str, str]], EntryPage]] = {
    "comments": read_comments,
    "history": read_history,
}
# The name in the URL, the label and the sources of each filter.
FILTERS = {
    "all": ("All", ("comments", "history")),
    "comments": ("Comments", ("comments",)),
    "changes": ("Changes", ("history",)),
}
STREAM_PAGE_SIZE = 20
# In the place of a cursor: everything was shown.
END = "end"
# Sorts before all times. Only entries with a readable time can be sorted by it.
NO_TIME = "~"


def read_stream(
    caller: Caller, table: str, sys_id: str, show: str, positions: Mapping[str, str]
) -> tuple[list[Entry], dict[str, str]]:
    """A page of entries, and the parameters of the next page, which are empty on the last page."""
    pages = {}
    for name in FILTERS[show][1]:
        raw = parameters(sysparm_limit=STREAM_PAGE_SIZE, sysparm_cursor=positions[name])
        pages[name] = EntryPage([]) if positions[name] == END else SOURCES[name](caller, table, sys_id, raw)
    sources = ([_with_source(name, entry) for entry in page.entries] for name, page in pages.items())
    entries = list(merge(*sources, key=lambda entry: entry["at"] or NO_TIME, reverse=True))[:STREAM_PAGE_SIZE]
    next_page = {"show": show}
    for name, page in pages.items():
        count = sum(entry["source"] == name for entry in entries)
        if count == len(page.entries):
            next_page[name] = page.cursor or END
        else:
            next_page[name] = page.cursor_after(count) if count else positions[name]
    return entries, next_page if any(next_page[name] != END for name in pages) else {}


def _with_source(name: str, entry: Entry) -> Entry:
    """The entry with the same keys for time and author, whether it is a comment or a change."""
    at = entry.get("sys_created_at") or entry.get("sys_updated_at")
    return {**entry, "source": name, "at": at, "by": entry.get("sys_created_by") or entry.get("sys_updated_by")}


def mentioned_ids(columns: Mapping[str, Column], entries: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    """The table and the id of each record whose name the entries show."""
    for entry in entries:
        yield USER_TABLE, entry["by"]
        for column, field in _changed_fields(columns, entry):
            for value in (field["old"], field["new"]):
                yield from references_in(column, value)


def _changed_fields(columns: Mapping[str, Column], entry: Entry) -> Iterator[tuple[Column, Any]]:
    """Without columns that were deleted since the history was read."""
    return ((columns[name], field) for name, field in entry.get("fields", {}).items() if name in columns)


def entry_context(context: ReadContext, columns: Mapping[str, Column], entry: Entry, names: Names) -> dict[str, Any]:
    """What the template shows of an entry."""
    caller, is_own = context.caller, entry["by"] == context.caller.user_id
    shown = {**entry, "author": names.get((USER_TABLE, entry["by"])), "time": time_context(entry["at"], caller)}
    if entry["source"] == "comments":
        return shown | {
            "parts": comment_parts(entry["text"]),
            "is_edited": entry["sys_updated_at"] != entry["sys_created_at"],
            "is_own": is_own,
            "may_delete": is_own or context.view.permissions.is_admin,
        }
    fields = [
        {"label": column.label or column.name}
        | {side: field_text(column, field[side], names, caller.time_zone) for side in ("old", "new")}
        for column, field in _changed_fields(columns, entry)
    ]
    is_creation = entry["operation"] == "create"
    return shown | {
        "is_creation": is_creation,
        "fields": [field for field in fields if field["new"] or not is_creation],
    }

"""Pages of history, comments, attachments and notifications, newest first."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from tableapi.query.parameters import RawParameters, parse_page

from . import cursors
from .cursors import CursorPosition

CURSOR_PARAMETER = "sysparm_cursor"

Entry = dict[str, Any]
# Takes the key after which a page starts and the number of entries; returns entries with their keys.
ReadEntries = Callable[[str | None, int], Iterable[tuple[str, Entry]]]


@dataclass(frozen=True)
class EntryPage:
    entries: list[Entry]
    # The cursor of the next page; empty on the last page.
    cursor: str = ""


def page_of(raw: RawParameters, identity: list[str], read_entries: ReadEntries) -> EntryPage:
    page = parse_page(raw, CURSOR_PARAMETER)
    key = cursors.decode(page.cursor, identity).keys[0] if page.cursor else None
    entries = list(islice(read_entries(key, page.limit + 1), page.limit + 1))
    page_entries = entries[: page.limit]
    cursor = cursors.encode(CursorPosition((page_entries[-1][0],)), identity) if len(entries) > page.limit else ""
    return EntryPage([entry for _, entry in page_entries], cursor)


def format_time(time: datetime) -> str:
    """Format a time as lists do, in UTC."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"

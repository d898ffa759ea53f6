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
    has_more: bool = False
    keys: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()

    @property
    def cursor(self) -> str:
        """The cursor of the next page; empty on the last page."""
        return self.cursor_after(len(self.entries)) if self.has_more else ""

    def cursor_after(self, count: int) -> str:
        """The cursor of what follows the first `count` entries, for a page that shows only these."""
        return cursors.encode(CursorPosition((self.keys[count - 1],)), list(self.identity))


def page_of(raw: RawParameters, identity: list[str], read_entries: ReadEntries) -> EntryPage:
    limit, cursor = parse_page(raw, CURSOR_PARAMETER)
    key = cursors.decode(cursor, identity).keys[0] if cursor else None
    rows = list(islice(read_entries(key, limit + 1), limit + 1))
    keys, entries = [key for key, _ in rows[:limit]], [entry for _, entry in rows[:limit]]
    return EntryPage(entries, len(rows) > limit, tuple(keys), tuple(identity))


def format_time(time: datetime) -> str:
    """Format a time as lists do, in UTC."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"

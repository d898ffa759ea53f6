"""Pages of what is not a record of a table: history, comments, attachments, notifications. Newest first."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from tableapi.query.parameters import RawParameters, parse_part

from . import cursors
from .cursors import CursorPosition

CURSOR_PARAMETER = "sysparm_cursor"

Entry = dict[str, Any]
# Gets the key behind which a page begins, and how many entries are needed; returns entries with their keys.
ReadEntries = Callable[[str | None, int], Iterable[tuple[str, Entry]]]


@dataclass(frozen=True)
class EntryPage:
    entries: list[Entry]
    # Of the next page; empty at the end.
    cursor: str = ""


def page_of(raw: RawParameters, identity: list[str], read_entries: ReadEntries) -> EntryPage:
    part = parse_part(raw, CURSOR_PARAMETER)
    key = cursors.decode(part.cursor, identity).keys[0] if part.cursor else None
    found = list(islice(read_entries(key, part.limit + 1), part.limit + 1))
    shown = found[: part.limit]
    cursor = cursors.encode(CursorPosition((shown[-1][0],)), identity) if len(found) > part.limit else ""
    return EntryPage([entry for _, entry in shown], cursor)


def time_text(time: datetime) -> str:
    """As a list shows it."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"

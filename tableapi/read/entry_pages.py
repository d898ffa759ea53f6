"""Pages of what is not a record of a table: history, comments, attachments, notifications. Newest first."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tableapi.query.parameters import RawParameters, parse_part

from . import cursors
from .cursors import CursorPosition

CURSOR_PARAMETER = "sysparm_cursor"


@dataclass(frozen=True)
class EntryPage:
    entries: list[dict[str, Any]]
    # Of the next page; empty at the end.
    cursor: str = ""


def page_of(rows: Any, raw: RawParameters, identity: list[str], entry_of: Callable[[Any], dict[str, Any]]) -> EntryPage:
    """Of the rows of a query set, in the order of their ids."""
    part = parse_part(raw, CURSOR_PARAMETER)
    if part.cursor:
        rows = rows.filter(pk__lt=cursors.decode(part.cursor, identity).keys[0])
    found = list(rows.order_by("-pk")[: part.limit + 1])
    shown = found[: part.limit]
    cursor = cursors.encode(CursorPosition((shown[-1].pk,)), identity) if len(found) > part.limit else ""
    return EntryPage([entry_of(row) for row in shown], cursor)


def time_text(time: datetime) -> str:
    """As a list shows it."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"

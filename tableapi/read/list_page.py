"""Pages of a list: where a page starts, and the parameters of the next one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from tableapi.catalogue.definitions import Table
from tableapi.database.statement_runner import ByteRow
from tableapi.query.parameters import MAX_PAGED_RECORDS, ListRequest
from tableapi.query.read_plan import ReadPlan
from tableapi.sql.select import Page

from . import cursors
from .cursors import CursorPosition

# The database joins the JSON of this many records into one value. One value per record would cost CPU time to fetch;
# one value per page would be copied repeatedly while it grows to megabytes.
BLOCK_SIZE = 50


@dataclass(frozen=True)
class ListResult:
    # The JSON of the records, in blocks of one or more.
    blocks: list[bytes]
    # The parameters of the next page; empty at the end of the list.
    next_page: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    total: int | None = None

    def records(self) -> list[dict[str, Any]]:
        """The records as parsed JSON, with exact decimals."""
        parsed: list[dict[str, Any]] = json.loads(b"[" + b",".join(self.blocks) + b"]", parse_float=Decimal)
        return parsed


@dataclass(frozen=True, slots=True)
class PageStart:
    """Where a page starts: after the record of the cursor, if there is one, and after `skip` more records."""

    position: CursorPosition | None
    skip: int
    # The list that its cursors are valid for.
    list_identity: list[str]

    def page(self, limit: int) -> Page:
        position = tuple(key is not None for key in self.position.keys) if self.position else None
        return Page(limit, min(limit, BLOCK_SIZE), self.skip > 0, position)

    def values(self) -> dict[str, object]:
        """Return the values that the statement of the page binds."""
        keys = self.position.keys if self.position else ()
        return {"offset": self.skip} | {f"after{index}": key for index, key in enumerate(keys) if key is not None}


def page_start(request: ListRequest, table: Table, user_id: str) -> PageStart:
    output = request.output
    list_identity = [table.name, request.query.text, ",".join(output.fields), output.view, user_id]
    if not request.cursor:
        skip = (request.page - 1) * request.limit if request.offset is None else request.offset
        return PageStart(None, skip, list_identity)
    position = cursors.decode(request.cursor, list_identity)
    return PageStart(position, position.skip, list_identity)


def list_result(
    request: ListRequest, start: PageStart, plan: ReadPlan, rows: Sequence[ByteRow], total: int | None
) -> ListResult:
    """Build the result from the rows of `select.page_statement`."""
    blocks = [row[0] for row in rows if row[0] is not None]
    *keys, has_more = rows[-1][1:]
    if has_more != b"t":
        return ListResult(blocks, {}, plan.ignored, total)
    last = CursorPosition(tuple([key.decode() if key is not None else None for key in keys]))
    return ListResult(blocks, _next_page(request, start, last), plan.ignored, total)


def _next_page(request: ListRequest, start: PageStart, last: CursorPosition) -> dict[str, str]:
    """Return a cursor after the last record. If it would be too long for a URL, return the current cursor with more
    records to skip, or the next page number."""
    if cursor := cursors.encode(last, start.list_identity):
        return {"sysparm_cursor": cursor}
    skip = start.skip + request.limit
    if skip + request.limit > MAX_PAGED_RECORDS:
        return {}
    if start.position is None:
        return {"sysparm_page": str(request.page + 1)}
    return {"sysparm_cursor": cursors.encode(replace(start.position, skip=skip), start.list_identity)}

"""The change feed of a table: the records that changed since a cursor, as they are now."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from system import properties
from system.errors import CursorExpired
from system.property_definitions import CHANGE_FEED_DAYS, CHANGE_HISTORY_DAYS
from tableapi.catalogue.definitions import Catalogue, Table
from tableapi.database import statement_runner
from tableapi.query import read_plan
from tableapi.query.parameters import OutputOptions, RawParameters, parse_output, parse_page
from tableapi.query.read_plan import ReadPlan
from tableapi.read import cursors, pipeline
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext
from tableapi.read.cursors import CursorPosition
from tableapi.sql.select import Statement

from .feed_statement import REMOVED_END, feed_statement

CURSOR_PARAMETER = "since"


@dataclass(frozen=True)
class FeedPosition:
    """The last change returned, and the database it is in."""

    transaction: str = "0"
    id: int = 0
    database: int | None = None


@dataclass(frozen=True)
class FeedPage:
    blocks: list[bytes]
    cursor: str
    has_more: bool = False
    ignored: tuple[str, ...] = ()


@on_current_catalogue
def read_feed(catalogue: Catalogue, caller: Caller, table_name: str, raw: RawParameters) -> FeedPage:
    (limit, sent_cursor), output = parse_page(raw, CURSOR_PARAMETER), parse_output(raw)
    context = caller.context(catalogue)
    table = context.view.open_table(table_name)
    identity = ["changes", table.id, caller.user_id]
    start = _decode_cursor(sent_cursor, identity, context) if sent_cursor else FeedPosition()
    if not context.view.can_read(table):
        statement_runner.check_version(context.inputs())  # no statement will compare the version
        return FeedPage([], sent_cursor)
    plan, statement = _compile(context, table, output, limit)
    rows: list[Any] = context.fetch_bytes(statement, transaction=start.transaction, id=start.id)
    database = int(rows[0][0])
    if start.database not in (None, database):
        raise CursorExpired
    changes = [(transaction, id_, body) for _, transaction, id_, body in rows if body is not None]
    changes.sort(key=lambda change: (int(change[0]), int(change[1])))
    page_changes, has_more = changes[:limit], len(changes) > limit
    if not page_changes and sent_cursor:
        # "An empty page returns the cursor that was sent": a new one would reveal changes that the caller cannot see.
        return FeedPage([], sent_cursor, ignored=plan.ignored)
    last = (page_changes[-1][0].decode(), int(page_changes[-1][1])) if page_changes else (start.transaction, start.id)
    keys = (last[0], str(last[1]), str(int(caller.now.timestamp())), str(database))
    cursor = cursors.encode(CursorPosition(keys), identity)
    # A record that was hidden several times is removed once per page, at its last place.
    bodies = {body if body.endswith(REMOVED_END) else id_: body for _, id_, body in reversed(page_changes)}
    return FeedPage([*reversed(bodies.values())], cursor, has_more, plan.ignored)


def _decode_cursor(cursor: str, identity: list[str], context: ReadContext) -> FeedPosition:
    transaction, change_id, issued_at, database = cursors.decode(cursor, identity, CURSOR_PARAMETER).keys
    limits = [days for days in map(properties.get, (CHANGE_FEED_DAYS, CHANGE_HISTORY_DAYS)) if days]
    age = timedelta(seconds=context.caller.now.timestamp() - int(issued_at or 0))
    if limits and age > timedelta(days=min(limits)):
        raise CursorExpired
    return FeedPosition(str(transaction), int(change_id or 0), int(database or 0))


def _compile(context: ReadContext, table: Table, output: OutputOptions, limit: int) -> tuple[ReadPlan, Statement]:
    style = pipeline.style_of(output)

    def compile_() -> tuple[ReadPlan, Statement]:
        plan = read_plan.plan_read(context.view, table, fields=output.fields, view=output.view)
        return plan, feed_statement(context.view, plan, style, limit)

    return context.view.cached(("feed", table.name, output, style, limit), compile_)

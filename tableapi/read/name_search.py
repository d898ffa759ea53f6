"""Finds records of all tables by the beginning of their number or display value, with one statement."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import NUMBER_COLUMN, Catalogue, Column, Table
from tableapi.query.expressions import ALWAYS, Decision
from tableapi.sql import name_search
from tableapi.sql.select import Statement

from .catalogue_retry import on_current_catalogue
from .context import Caller

MAX_RECORDS_PER_TABLE = 5


@dataclass(frozen=True)
class NamedRecord:
    table: Table
    sys_id: str
    text: str


@on_current_catalogue
def find_records(catalogue: Catalogue, caller: Caller, text: str) -> list[NamedRecord]:
    """Up to five records of each table whose number or display value starts with the text, ignoring case."""
    context = caller.context(catalogue)
    statement = context.view.cached("names", lambda: _compile(context.view))
    if not text or statement is None:
        return []
    texts_by_table: dict[str, dict[str, str]] = {}
    for table_name, sys_id, value in context.fetch(statement, start=text):
        if table_name is not None:
            texts_by_table.setdefault(table_name, {}).setdefault(sys_id, value)
    return [
        NamedRecord(catalogue.tables[name], sys_id, value)
        for name, texts in texts_by_table.items()
        for sys_id, value in islice(texts.items(), MAX_RECORDS_PER_TABLE)
    ]


def _compile(view: CallerView) -> Statement | None:
    targets = list(_targets(view))
    return name_search.search_statement(targets, MAX_RECORDS_PER_TABLE) if targets else None


def _targets(view: CallerView) -> Iterator[tuple[Table, Column, Decision]]:
    """The readable tables that extend no other readable one, each with its number and display column. Columns that
    the caller can read in some records only cannot be searched with an index."""
    for table in view.catalogue.tables.values():
        is_top = not any(view.can_read(view.catalogue.tables[name]) for name in table.lineage[1:])
        if not is_top or not view.can_read(table):
            continue
        for column in dict.fromkeys((table.columns.get(NUMBER_COLUMN), table.display_column)):
            if column is not None and _is_searchable(view, table, column):
                yield table, column, view.record_decision(table)


def _is_searchable(view: CallerView, table: Table, column: Column) -> bool:
    is_indexed = column.is_indexed or column.is_display or column.is_unique
    visible = [view.column(table, name) for name in ("sys_id", column.name)]
    is_always_visible = all(found is not None and found[1] == ALWAYS for found in visible)
    return is_always_visible and is_indexed and column.column_type.is_text and column.column_type.has_main_index

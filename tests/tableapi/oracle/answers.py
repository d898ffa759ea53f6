"""The records and fields that a caller can read in a world, their order, and the permissions."""

from __future__ import annotations

from typing import Any

from system.encoded_query import Moment, OrderBy, Path, Query, QueryError, parse
from tableapi.catalogue.definitions import READ

from . import access
from .access import ReadableValues
from .column_types import TYPE_ROWS
from .conditions import query_predicate
from .literals import exact_value, family_of
from .world import Caller, EvaluationContext, QueryRefused, Row, World


def is_permitted(
    world: World, caller: Caller, operation: str, table: str, row: Row, moment: Moment, column: str | None = None
) -> bool:
    """Whether the rules allow the operation on this row; with `column`, by the column rules alone."""
    return access.can_access(
        EvaluationContext(world, caller, moment), operation, world.catalogue.tables[table], row, column
    )


def visible_rows(world: World, caller: Caller, table: str, moment: Moment) -> list[Row]:
    """The records of a table and its child tables that the caller may read, in no particular order."""
    requested_table = world.catalogue.tables[table]
    return [row for row in world.records(requested_table) if is_permitted(world, caller, READ, table, row, moment)]


def field_value(world: World, caller: Caller, table: str, row: Row, path: Path, moment: Moment) -> Any:
    """The stored value at this path, as the caller sees it; raises `QueryRefused` if responses omit the path."""
    reader = ReadableValues(EvaluationContext(world, caller, moment))
    requested_table = world.catalogue.tables[table]
    reader.column(requested_table, path)
    return reader.value(requested_table, row, path)


def row_matches(world: World, caller: Caller, query: Query, table: str, row: Row, moment: Moment) -> bool:
    """Whether a visible record matches the query."""
    reader = ReadableValues(EvaluationContext(world, caller, moment))
    try:
        return query_predicate(reader, world.catalogue.tables[table], query)(row)
    except QueryError:
        raise QueryRefused from None


def select_ids(world: World, caller: Caller, table: str, query_text: str, moment: Moment) -> list[str]:
    """The ids of the matching records in order; raises `QueryRefused` if the response is a 400."""
    reader = ReadableValues(EvaluationContext(world, caller, moment))
    requested_table = world.catalogue.tables[table]
    try:
        query = parse(query_text)
        predicate = query_predicate(reader, requested_table, query)
    except QueryError:
        raise QueryRefused from None
    for key in query.order:
        if not TYPE_ROWS[reader.column(requested_table, key.path).type].is_sortable:
            raise QueryRefused
    matching_rows = [row for row in visible_rows(world, caller, table, moment) if predicate(row)]
    # "sys_id is always the last key", in the direction of the one before it.
    matching_rows.sort(key=lambda row: row["sys_id"], reverse=bool(query.order and query.order[-1].is_descending))
    # Sorting is stable, also in reverse, so the first key is applied last.
    for key in reversed(query.order):
        matching_rows.sort(key=lambda row, key=key: sort_key(reader, table, row, key), reverse=key.is_descending)  # type: ignore[misc]
    return [row["sys_id"] for row in matching_rows]


def sort_key(reader: ReadableValues, table: str, row: Row, key: OrderBy) -> tuple[Any, ...]:
    """Empty values are greater than all others: "empty last ascending and first descending"."""
    requested_table = reader.context.world.catalogue.tables[table]
    column = reader.column(requested_table, key.path)
    value = exact_value(reader.value(requested_table, row, key.path), column)
    if value is None:
        return (1,)
    return (0, value.lower() if family_of(column) == "text" else value)

"""Questions to a world: which records, which fields, in which order, and who may write what."""

from __future__ import annotations

from typing import Any

from system.encoded_query import Moment, OrderBy, Path, Query, QueryError, parse
from tableapi.catalogue.definitions import READ

from . import access
from .access import ReadableValues
from .column_types import TYPE_ROWS
from .conditions import query_test
from .literals import exact_value, family_of
from .world import Caller, QueryRefused, Question, Row, World


def can(
    world: World, caller: Caller, operation: str, table: str, row: Row, moment: Moment, column: str | None = None
) -> bool:
    """Whether the rules allow it on this record as it is given; with `column`, what the column's rules alone say."""
    return access.can_access(Question(world, caller, moment), operation, world.catalogue.tables[table], row, column)


def visible(world: World, caller: Caller, table: str, moment: Moment) -> list[Row]:
    """The records of a table, its children's included, that the caller may read; in no order."""
    request = world.catalogue.tables[table]
    return [row for row in world.records(request) if can(world, caller, READ, table, row, moment)]


def field_value(world: World, caller: Caller, table: str, row: Row, path: Path, moment: Moment) -> Any:
    """What the caller sees at this path of a visible record, as stored; Refused where the name is left out."""
    values = ReadableValues(Question(world, caller, moment))
    request = world.catalogue.tables[table]
    values.column(request, path)
    return values.value(request, row, path)


def row_matches(world: World, caller: Caller, query: Query, table: str, row: Row, moment: Moment) -> bool:
    """Whether a visible record answers to the query."""
    values = ReadableValues(Question(world, caller, moment))
    try:
        return query_test(values, world.catalogue.tables[table], query)(row)
    except QueryError:
        raise QueryRefused from None


def select_ids(world: World, caller: Caller, table: str, text: str, moment: Moment) -> list[str]:
    """The sys_ids that answer to the query, in its order; Refused where the answer is a 400."""
    values = ReadableValues(Question(world, caller, moment))
    request = world.catalogue.tables[table]
    try:
        query = parse(text)
        test = query_test(values, request, query)
    except QueryError:
        raise QueryRefused from None
    for key in query.order:
        if not TYPE_ROWS[values.column(request, key.path).type].is_sortable:
            raise QueryRefused
    result = [row for row in visible(world, caller, table, moment) if test(row)]
    # "sys_id is always the last key", in the direction of the one before it.
    result.sort(key=lambda row: row["sys_id"], reverse=bool(query.order and query.order[-1].is_descending))
    # Sorting keeps the order of equals, also when reversed, so the first key goes last.
    for key in reversed(query.order):
        result.sort(key=lambda row, key=key: sort_key(values, table, row, key), reverse=key.is_descending)  # type: ignore[misc]
    return [row["sys_id"] for row in result]


def sort_key(values: ReadableValues, table: str, row: Row, key: OrderBy) -> tuple[Any, ...]:
    """Empty is greater than everything: "empty last ascending and first descending"."""
    request = values.question.world.catalogue.tables[table]
    column = values.column(request, key.path)
    value = exact_value(values.value(request, row, key.path), column)
    if value is None:
        return (1,)
    return (0, value.lower() if family_of(column) == "text" else value)

"""References to a deleted record: mandatory columns prevent the deletion, others lose the id."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import psycopg

from system.encoded_query import QueryError
from system.errors import MOST_TOLD, BadRequest, Conflict
from tableapi.catalogue.definitions import Catalogue, Column, Table
from tableapi.database import statement_runner
from tableapi.database.statement_runner import cursor
from tableapi.query import read_plan
from tableapi.query.parsed_query import parse_query_text
from tableapi.read.context import ReadContext
from tableapi.sql import select
from tableapi.sql.statement_builder import physical, quoted

# Table and column.
Place = tuple[str, str]


class StillReferenced(Conflict):
    """Records need the one that is to be deleted; `places` is where, whoever asks."""

    code = "referenced"
    message = "Other records need this one."

    def __init__(self, places: Iterable[Place] = ()) -> None:
        super().__init__()
        self.places = tuple(dict.fromkeys(places))


def release(catalogue: Catalogue, table: Table, sys_id: str) -> None:
    """Before the record goes."""
    # Those of the product's own have their models' own rules.
    columns = [each for each in catalogue.referring_to(table) if not catalogue.tables[each.owner].is_system]
    with cursor() as run:
        needing = [each for each in columns if each.mandatory and _is_needed(run, catalogue, table, each, sys_id)]
        if needing:
            raise StillReferenced((each.owner, each.name) for each in needing)
        emptied = [each for each in columns if _empty(run, catalogue.tables[each.owner], each, sys_id)]
        if emptied:  # by somebody who took the other ones out of a list just now
            raise StillReferenced((each.owner, each.name) for each in emptied)


def _is_needed(run: psycopg.Cursor[Any], catalogue: Catalogue, table: Table, column: Column, sys_id: str) -> bool:
    name = quoted(column.physical)
    # A record that needs only itself can go.
    others = "sys_id <> %(id)s AND " if column.owner in table.lineage else ""
    needed = f"{name} = ARRAY[%(id)s]::varchar[]" if column.column_type.is_list else f"{name} = %(id)s"
    owner = physical(catalogue.tables[column.owner])
    run.execute(f"SELECT EXISTS (SELECT FROM {owner} WHERE {others}{needed})", {"id": sys_id})
    row = run.fetchone()
    return row is not None and bool(row[0])


def _empty(run: psycopg.Cursor[Any], owner: Table, column: Column, sys_id: str) -> bool:
    """Whether that left nothing in a list where something must be.

    Plain references become NULL by their foreign keys. Chosen: a record that loses one keeps its version. To count
    would tell those who read the record, but not this column, that it referred to the one that is gone."""
    if not column.column_type.is_list:
        return False
    name = quoted(column.physical)
    run.execute(
        f"UPDATE {physical(owner)} SET {name} = array_remove({name}, %(id)s::varchar) "
        f"WHERE {name} && ARRAY[%(id)s]::varchar[] RETURNING sys_id <> %(id)s AND cardinality({name}) = 0",
        {"id": sys_id},
    )
    return column.mandatory and any(is_empty for (is_empty,) in run.fetchall())


def told(request: ReadContext, refused: StillReferenced, sys_id: str) -> StillReferenced:
    """The refusal as this caller reads it: with the places where they find a record that needs this one. A place alone
    would tell of records that they cannot read."""
    places = (f"{table}.{column}" for table, column in refused.places if _is_seen(request, table, column, sys_id))
    found = StillReferenced()
    if seen := list(islice(places, MOST_TOLD)):
        found.message = f"Other records need this one: {', '.join(seen)}."
    return found


def _is_seen(request: ReadContext, table_name: str, column: str, sys_id: str) -> bool:
    """Asked as the caller would ask a list: through the one door."""
    view = request.view
    table = view.table(table_name)
    if table is None or not view.can_read(table):
        return False
    asked = parse_query_text(f"{column}={sys_id}^sys_id!={sys_id}")
    try:
        read = read_plan.plan_read(view, table, query=asked.shape.query, fields=(column,))
    except (BadRequest, QueryError):
        return False  # the column is not there for them
    ((count,),) = statement_runner.fetch(select.counted(read, 1), request.inputs(asked.conditions))
    return bool(count)

"""In charge of what refers to a record that is deleted: mandatory columns forbid it, the others lose the id."""

from __future__ import annotations

from typing import Any

import psycopg

from system.errors import Conflict

from .catalogue import Catalogue, Column, Table
from .sql import physical, quoted
from .store import cursor


def release(catalogue: Catalogue, table: Table, sys_id: str) -> None:
    """Before the record goes."""
    with cursor() as run:
        for column in catalogue.referring_to(table):
            owner = catalogue.tables[column.owner]
            if not owner.is_system:  # those have their models' own rules
                _refuse_where_needed(run, table, owner, column, sys_id)
                _empty(run, owner, column, sys_id)


def _refuse_where_needed(run: psycopg.Cursor[Any], table: Table, owner: Table, column: Column, sys_id: str) -> None:
    if not column.mandatory:
        return
    name = quoted(column.physical)
    # A record that needs only itself can go.
    others = "sys_id <> %(id)s AND " if column.owner in table.lineage else ""
    needed = f"{name} = ARRAY[%(id)s]::varchar[]" if column.type == "list" else f"{name} = %(id)s"
    run.execute(f"SELECT EXISTS (SELECT FROM {physical(owner)} WHERE {others}{needed})", {"id": sys_id})
    row = run.fetchone()
    if row is not None and row[0]:
        raise Conflict("Other records need this one.", code="referenced")


def _empty(run: psycopg.Cursor[Any], owner: Table, column: Column, sys_id: str) -> None:
    """Plain references become NULL by their foreign keys. Chosen: a record that loses one keeps its version. To count
    would tell those who read the record, but not this column, that it referred to the one that is gone."""
    if column.type == "list":
        name = quoted(column.physical)
        run.execute(
            f"UPDATE {physical(owner)} SET {name} = array_remove({name}, %(id)s::varchar) "
            f"WHERE {name} && ARRAY[%(id)s]::varchar[]",
            {"id": sys_id},
        )

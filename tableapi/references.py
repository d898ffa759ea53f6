"""In charge of what refers to a record that is deleted: mandatory columns forbid it, lists lose the id."""

from __future__ import annotations

from system.errors import Conflict

from .catalogue import Catalogue, Table
from .sql import physical, quoted
from .store import cursor


def release(catalogue: Catalogue, table: Table, sys_id: str) -> None:
    """Before the record goes. Plain references become NULL by their foreign keys."""
    with cursor() as run:
        for column in catalogue.referring_to(table):
            owner = catalogue.tables[column.owner]
            if owner.is_system:
                continue  # the models' own rules
            name, place = quoted(column.physical), physical(owner)
            # A record that needs only itself can go.
            others = "sys_id <> %(id)s AND " if column.owner in table.lineage else ""
            if column.type == "list":
                if column.mandatory:
                    run.execute(
                        f"SELECT EXISTS (SELECT FROM {place} WHERE {others}{name} = ARRAY[%(id)s]::varchar[])",
                        {"id": sys_id},
                    )
                    _refuse_if(run.fetchone())
                run.execute(
                    f"UPDATE {place} SET {name} = array_remove({name}, %(id)s::varchar) "
                    f"WHERE {name} && ARRAY[%(id)s]::varchar[]",
                    {"id": sys_id},
                )
            elif column.mandatory:
                run.execute(f"SELECT EXISTS (SELECT FROM {place} WHERE {others}{name} = %(id)s)", {"id": sys_id})
                _refuse_if(run.fetchone())


def _refuse_if(row: tuple[bool, ...] | None) -> None:
    if row is not None and row[0]:
        raise Conflict("Other records need this one.", code="referenced")

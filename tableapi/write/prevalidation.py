"""Slow checks of a change, before it takes a lock that others wait for."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from system.errors import BadRequest, Invalid
from system.records import savers
from tableapi.catalogue.definitions import WRITE, Column
from tableapi.query.expressions import NEVER
from tableapi.read.pipeline import RECORD_ID

from . import payload, system_records
from .change_request import WriteRequest


def prevalidate(change: WriteRequest, sys_id: str, named: Mapping[Column, Any]) -> Any:
    """For `system_records.update`. It refuses nothing: what is wrong is told with everything else, in its turn."""
    table, permissions = change.table, change.request.view.permissions
    if not table.is_system or not RECORD_ID.fullmatch(sys_id):
        return None
    saver = savers.saver_of(system_records.model_of(table.name))
    # Work of the server is only for those who may change something.
    if not saver.prepared_columns or permissions.records(WRITE, table) == NEVER:
        return None
    wanted = {}
    for column, value in named.items():
        if column.physical in saver.prepared_columns and permissions.column(WRITE, table, column) != NEVER:
            with suppress(Invalid, BadRequest):
                wanted[column.physical] = payload.value(change, column, value)
    return saver.prepare(sys_id, wanted)

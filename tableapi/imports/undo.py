"""Undoes what a piece of an import wrote, with the caller's rights, and leaves records that have changed since."""

import operator
from dataclasses import replace
from functools import partial
from typing import Any

from django.db import transaction

from system.errors import PreconditionFailed, ServiceError
from tableapi.models.imports import Import
from tableapi.query.parameters import OutputOptions
from tableapi.read.context import Caller
from tableapi.write import delete, update
from tableapi.write.table_write import write
from tableapi.write.write_request import WriteInput, WriteRequest

from . import storage
from .storage import Kind
from .writing import CREATED

CHANGED = "The record has changed since the import."


def undo_entries(caller: Caller, job: Import, number: int) -> list[tuple[str, list[dict[str, Any]]]]:
    """Undo a piece from its end. Returns the records that stay as they are, with the reasons."""
    left: list[tuple[str, list[dict[str, Any]]]] = []
    for operation, sys_id, version, values in reversed(storage.read_entries(job, Kind.UNDO, number)):
        undo = delete.delete if operation == CREATED else _restore
        change = WriteInput(values, OutputOptions(), is_current=partial(operator.eq, version))
        try:
            write(caller, job.table, change, partial(undo, sys_id=sys_id))
        except PreconditionFailed:
            left.append((sys_id, [{"message": CHANGED, "code": "stale"}]))
        except ServiceError as error:
            if error.status >= 500:
                raise
            left.append((sys_id, error.as_items()))
    return left


def _restore(change: WriteRequest, sys_id: str) -> None:
    """Set the old values. An update merges an object with the stored one, so that is removed first."""
    columns, body = change.table.columns, change.body
    objects = [name for name in body if isinstance(body[name], dict) and columns[name].column_type.is_json]
    with transaction.atomic():
        if objects:
            update.update(replace(change, body=dict.fromkeys(objects)), sys_id, replaces=False)
            change = replace(change, is_current=None)
        update.update(change, sys_id, replaces=False)

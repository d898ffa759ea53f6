"""Undoes what a piece of an import wrote, with the caller's rights, and leaves records that have changed since."""

import operator
from functools import partial
from typing import Any

from system.errors import PreconditionFailed, ServiceError
from tableapi.query.parameters import OutputOptions
from tableapi.read.context import Caller
from tableapi.write import delete, update
from tableapi.write.table_write import write
from tableapi.write.write_request import WriteInput

from .writing import CREATED

CHANGED = "The record has changed since the import."


def undo_entries(caller: Caller, table: str, entries: list[Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Undo the entries of a piece from its end. Returns the records that stay as they are, with the reasons."""
    left: list[tuple[str, list[dict[str, Any]]]] = []
    for operation, sys_id, version, values in reversed(entries):
        undo = delete.delete if operation == CREATED else partial(update.update, replaces=False)
        change = WriteInput(values, OutputOptions(), is_current=partial(operator.eq, version), replaces_json=True)
        try:
            write(caller, table, change, partial(undo, sys_id=sys_id))
        except PreconditionFailed:
            left.append((sys_id, [{"message": CHANGED, "code": "stale"}]))
        except ServiceError as error:
            if error.status >= 500:
                raise
            left.append((sys_id, error.as_items()))
    return left

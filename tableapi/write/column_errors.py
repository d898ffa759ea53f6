"""Reports everything that is wrong with a write at once, and names only columns that the caller may know of."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from system.errors import Conflict, InvalidInput
from tableapi.catalogue.definitions import Column
from tableapi.values import defaults

from . import designed_records
from .write_request import WriteRequest


@contextmanager
def collecting_errors(errors: list[InvalidInput]) -> Iterator[None]:
    """Adds the error of one column to the list instead of raising it."""
    try:
        yield
    except InvalidInput as error:
        if error.as_items() not in [other.as_items() for other in errors]:
            errors.append(error)


def check_mandatory(change: WriteRequest, column: Column, value: Any) -> None:
    """A missing value is always reported; its column only to a caller who may know of it."""
    if defaults.lacks_mandatory_value(column, value):
        is_known = change.context.view.permissions.is_known(change.table, column)
        raise InvalidInput("A value is required.", code="mandatory", field=column.name if is_known else None)


@contextmanager
def hiding_unknown_columns(change: WriteRequest) -> Iterator[None]:
    """An error names its column only if the caller sent it or may know of it. A duplicate reveals other records, so its
    column must have been sent."""
    permissions, columns = change.context.view.permissions, change.table.columns
    try:
        yield
    except (Conflict, InvalidInput) as error:
        for item in (error, *error.other_errors):
            if isinstance(item, designed_records.Duplicate):
                # Of several columns that are unique together, the last: its value is looked up within the others.
                item.field = next((name for name in reversed(item.columns) if name in change.body), None)
            elif item.field is not None and item.field not in change.body:
                column = columns.get(item.field)
                if column is None or not permissions.is_known(change.table, column):
                    item.field = None
        raise

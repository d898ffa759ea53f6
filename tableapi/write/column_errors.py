"""Collects all errors of a write, and hides the names of columns that the caller may not know."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from system.errors import Conflict, InvalidInput
from tableapi.catalogue.definitions import Column
from tableapi.values import defaults

from . import designed_records
from .write_request import WriteRequest

VALUE_REQUIRED = "A value is required."


@contextmanager
def collecting_errors(errors: list[InvalidInput]) -> Iterator[None]:
    """Adds the error of one column to the list instead of raising it."""
    try:
        yield
    except InvalidInput as error:
        add_once(errors, error)


def add_once(errors: list[InvalidInput], error: InvalidInput) -> None:
    if error.as_items() not in [other.as_items() for other in errors]:
        errors.append(error)


def check_mandatory(change: WriteRequest, column: Column, value: Any) -> None:
    """Raise an error if a mandatory value is missing. It names the column only if the caller may know it."""
    if defaults.lacks_mandatory_value(column, value):
        is_known = change.context.view.permissions.can_see_column(change.table, column)
        raise InvalidInput(VALUE_REQUIRED, code="mandatory", field=column.name if is_known else None)


@contextmanager
def hiding_unknown_columns(change: WriteRequest) -> Iterator[None]:
    """Removes column names from errors unless the caller sent the column or may know it. Duplicates reveal other
    records, so they name only columns that were sent."""
    permissions = change.context.view.permissions
    try:
        yield
    except (Conflict, InvalidInput) as error:
        for item in (error, *error.other_errors):
            if isinstance(item, designed_records.Duplicate):
                # If several columns are unique together, name the last one that was sent.
                item.field = next((name for name in reversed(item.columns) if name in change.body), None)
            elif item.field not in change.body and permissions.visible_column(change.table, item.field or "") is None:
                item.field = None
        raise

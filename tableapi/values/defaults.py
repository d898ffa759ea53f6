"""Defaults of columns, which are read like values that a caller sends, and the test for missing mandatory values."""

from typing import Any

from system.errors import InvalidInput
from system.http.request_body import InvalidJson, parse_json
from tableapi.catalogue.definitions import Column

from . import column_values


def default_value(column: Column) -> Any:
    """The value of a column that a new record does not name."""
    if not column.default or column.column_type.is_write_only:
        return None
    try:
        return _read_default(column)
    except (InvalidInput, InvalidJson):
        # It was valid when it was saved; that a later change made it invalid is not this caller's mistake.
        return None


def find_problem(column: Column) -> str:
    """What is wrong with a default, or an empty text.

    >>> [find_problem(Column("it", "integer", "", "it", default=text)) for text in ("12", "1_000")]
    ['', 'Expected a whole number.']
    """
    if not column.column_type.has_default:
        return "A column of this type cannot have a default value."
    try:
        _read_default(column)
    except (InvalidInput, InvalidJson) as error:
        return error.message
    return ""


def _read_default(column: Column) -> Any:
    is_json = column.column_type.is_json
    return column_values.parse(column, parse_json(column.default.encode()) if is_json else column.default)


def lacks_mandatory_value(column: Column, value: Any) -> bool:
    """Whether the column is mandatory and the value that will be stored is empty."""
    return column.mandatory and (value is None or (isinstance(value, str | list) and not value))

"""Defaults of columns, which are read like values that a caller sends, and the test for missing mandatory values."""

from typing import Any

from system.encoded_query import SAMPLE_MOMENT, ComparisonKind, Moment, QueryError, ValueFunction, read_operand, resolve
from system.errors import InvalidInput
from system.http.request_body import InvalidJson, parse_json
from tableapi.catalogue.definitions import USER_TABLE, Column

from . import column_values

# The default of a text column that has the number of its record, as clients of this family write it.
NEXT_NUMBER = "javascript:getNextObjNumberPadded()"
# Columns whose default can be a function of encoded queries, and how a caller sends its result.
TIME_FORMATS = {ComparisonKind.DATE: "%Y-%m-%d", ComparisonKind.DATETIME: "%Y-%m-%d %H:%M:%S"}


def default_value(column: Column, moment: Moment) -> Any:
    """The value of a column that a new record does not name."""
    if not column.default or column.column_type.is_write_only or is_next_number(column):
        return None
    try:
        return _read_default(column, moment)
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
        _read_default(column, SAMPLE_MOMENT)
    except (InvalidInput, InvalidJson) as error:
        return error.message
    return ""


def is_next_number(column: Column) -> bool:
    """The database sets it, with the number."""
    return column.default == NEXT_NUMBER and column.type == "string"


def _read_default(column: Column, moment: Moment) -> Any:
    if column.column_type.is_json:
        return column_values.parse(column, parse_json(column.default.encode()))
    has_function = column.column_type.is_reference or column.compare_as in TIME_FORMATS
    return column_values.parse(column, _function_result(column, moment) if has_function else column.default)


def _function_result(column: Column, moment: Moment) -> str:
    """The default, or what its function returns at this moment."""
    try:
        operand = read_operand(column.default)
    except QueryError as error:
        raise InvalidInput(f"The function is invalid: {error}.") from None
    value = resolve(operand, moment)
    is_user = isinstance(operand, ValueFunction) and isinstance(value, str)
    if column.column_type.is_reference and not (is_user and column.reference == USER_TABLE):
        raise InvalidInput("A reference to a user can have the default javascript:gs.getUserID(), others have none.")
    return value if isinstance(value, str) else value.strftime(TIME_FORMATS[column.compare_as])


def lacks_mandatory_value(column: Column, value: Any) -> bool:
    """Whether the column is mandatory and the value that will be stored is empty."""
    return column.mandatory and (value is None or (isinstance(value, str | list) and not value))

"""Parses the defaults of columns like values that a caller sends, and checks for missing mandatory values."""

from typing import Any

from system.encoded_query import SAMPLE_MOMENT, ComparisonKind, Moment, QueryError, ValueFunction, read_operand, resolve
from system.errors import InvalidInput
from system.strict_json import InvalidJson, parse_json
from tableapi.catalogue.definitions import USER_TABLE, Column

from . import column_values

# The default, in ServiceNow syntax, of a text column that contains the number of its record.
NEXT_NUMBER = "javascript:getNextObjNumberPadded()"
# Columns whose default can be a function of encoded queries, with the format of its result.
TIME_FORMATS = {ComparisonKind.DATE: "%Y-%m-%d", ComparisonKind.DATETIME: "%Y-%m-%d %H:%M:%S"}


def default_value(column: Column, moment: Moment) -> Any:
    """Return the value of a column that was not sent for a new record."""
    if not column.default or column.column_type.is_write_only or is_number_default(column):
        return None
    try:
        return _read_default(column, moment)
    except (InvalidInput, InvalidJson):
        # It was valid when it was saved. The caller is not to blame if it has become invalid since.
        return None


def find_problem(column: Column) -> str:
    """Return what is wrong with the default of a column, or an empty string.

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


def is_number_default(column: Column) -> bool:
    """Whether the database sets the column to the number of the record."""
    return column.default == NEXT_NUMBER and column.type == "string"


def depends_on_moment(column: Column) -> bool:
    """Whether the default is a function of encoded queries."""
    return bool(column.default) and (column.column_type.is_reference or column.compare_as in TIME_FORMATS)


def _read_default(column: Column, moment: Moment) -> Any:
    if column.column_type.is_json:
        return column_values.parse(column, parse_json(column.default.encode()))
    default = _function_result(column, moment) if depends_on_moment(column) else column.default
    return column_values.parse(column, default)


def _function_result(column: Column, moment: Moment) -> str:
    """Return the default, or the result of its function at this moment."""
    try:
        operand = read_operand(column.default)
    except QueryError as error:
        raise InvalidInput(f"The function is invalid: {error}.") from None
    value = resolve(operand, moment)
    is_user = isinstance(operand, ValueFunction) and isinstance(value, str)
    if column.column_type.is_reference and not (is_user and column.reference == USER_TABLE):
        raise InvalidInput(
            "A reference can only have the default value javascript:gs.getUserID(), and must refer to users."
        )
    return value if isinstance(value, str) else value.strftime(TIME_FORMATS[column.compare_as])


def lacks_mandatory_value(column: Column, value: Any) -> bool:
    """Whether the column is mandatory and the value that will be stored is empty."""
    return column.mandatory and (value is None or (isinstance(value, str | list) and not value))

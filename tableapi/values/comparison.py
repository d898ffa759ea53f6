"""Converts the values of conditions to values that columns are compared with. Pure."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from system.encoded_query import (
    ComparisonKind,
    Condition,
    Moment,
    Operand,
    QueryError,
    read_boolean,
    read_instant,
    resolve,
)
from tableapi.catalogue.definitions import Column

INTEGER_BOUND = 2**63
MAX_NUMBER_LENGTH = 400

# The SQL type of the values that a column of each kind is compared with.
SQL_TYPES: Mapping[ComparisonKind, str] = {
    ComparisonKind.TEXT: "text",
    ComparisonKind.ID: "varchar",
    ComparisonKind.CHOICE: "text",
    ComparisonKind.REFERENCE: "varchar",
    ComparisonKind.INTEGER: "bigint",
    ComparisonKind.DECIMAL: "numeric",
    ComparisonKind.BOOLEAN: "boolean",
    ComparisonKind.DATETIME: "timestamptz",
    ComparisonKind.DATE: "date",
    ComparisonKind.LIST: "varchar",
}


def comparable_value(column: Column, operand: Operand, moment: Moment, condition: Condition) -> Any:
    """Convert an operand of a condition to the value that the column is compared with."""
    value = resolve(operand, moment)
    position = condition.value_position
    if column.compare_as in (ComparisonKind.DATETIME, ComparisonKind.DATE):
        instant = read_instant(value, position).replace(microsecond=0)
        return instant.date() if column.compare_as is ComparisonKind.DATE else instant
    if isinstance(value, datetime):
        raise QueryError("a time cannot be compared with this column", position, condition.value)
    reader = _READERS.get(column.compare_as)
    return reader(value, position) if reader else value


def _as_integer(value: str, position: int) -> int:
    try:
        if len(value) > MAX_NUMBER_LENGTH or not value.isascii() or "_" in value or value != value.strip():
            raise ValueError
        number = int(value)
    except ValueError:
        raise QueryError("a whole number is expected", position, value) from None
    if not -INTEGER_BOUND <= number < INTEGER_BOUND:
        raise QueryError(f"a whole number from {-INTEGER_BOUND} to {INTEGER_BOUND - 1} is expected", position, value)
    return number


def _as_decimal(value: str, position: int) -> Decimal:
    try:
        if len(value) > MAX_NUMBER_LENGTH or not value.isascii() or "_" in value or value != value.strip():
            raise ValueError
        number = Decimal(value)
        if not number.is_finite() or abs(number.adjusted()) > MAX_NUMBER_LENGTH:
            raise ValueError
    except (ValueError, InvalidOperation):
        raise QueryError("a number is expected", position, value) from None
    return number


_READERS: Mapping[ComparisonKind, Callable[[str, int], Any]] = {
    ComparisonKind.INTEGER: _as_integer,
    ComparisonKind.DECIMAL: _as_decimal,
    ComparisonKind.BOOLEAN: read_boolean,
}

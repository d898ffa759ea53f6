"""Turns the values of conditions into what the database compares with. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from system.encoded_query import Condition, Moment, Operand, QueryError, read_boolean, read_instant, resolve
from tableapi.catalogue.definitions import TEXT_TYPES, Column

BIGGEST = 2**63
LONGEST_NUMBER = 400

# The database's name of what each kind of column is compared with.
SQL_TYPES: Mapping[str, str] = {
    "text": "text",
    "id": "varchar",
    "choice": "text",
    "reference": "varchar",
    "integer": "bigint",
    "decimal": "numeric",
    "boolean": "boolean",
    "datetime": "timestamptz",
    "date": "date",
    "list": "varchar",
}


def comparison_kind(column: Column) -> str:
    """Columns that compare alike: by lower case, exactly, as numbers, as instants.

    >>> comparison_kind(Column("sys_id", "string", "task", "sys_id"))
    'id'
    >>> comparison_kind(Column("notes", "wysiwyg", "task", "notes"))
    'text'
    """
    if column.name == "sys_id":
        return "id"
    return "text" if column.type in TEXT_TYPES else column.type


def comparable(column: Column, operand: Operand, moment: Moment, condition: Condition) -> Any:
    """The value as a column of this kind is compared with it."""
    value = resolve(operand, moment)
    position = condition.value_position
    if comparison_kind(column) in ("datetime", "date"):
        instant = read_instant(value, position).replace(microsecond=0)
        return instant.date() if column.type == "date" else instant
    if isinstance(value, datetime):
        raise QueryError("a time cannot be compared with this column", position, condition.value)
    return _READERS.get(comparison_kind(column), _as_text)(value, position)


def _as_text(value: str, position: int) -> str:
    return value


def _as_integer(value: str, position: int) -> int:
    try:
        if len(value) > LONGEST_NUMBER or not value.isascii() or "_" in value or value != value.strip():
            raise ValueError
        number = int(value)
    except ValueError:
        raise QueryError("a whole number is expected", position, value) from None
    if not -BIGGEST <= number < BIGGEST:
        raise QueryError(f"a whole number from {-BIGGEST} to {BIGGEST - 1} is expected", position, value)
    return number


def _as_decimal(value: str, position: int) -> Decimal:
    try:
        if len(value) > LONGEST_NUMBER or not value.isascii() or "_" in value or value != value.strip():
            raise ValueError
        number = Decimal(value)
        if not number.is_finite() or abs(number.adjusted()) > LONGEST_NUMBER:
            raise ValueError
    except (ValueError, InvalidOperation):
        raise QueryError("a number is expected", position, value) from None
    return number


_READERS: Mapping[str, Callable[[str, int], Any]] = {
    "integer": _as_integer,
    "decimal": _as_decimal,
    "boolean": read_boolean,
}

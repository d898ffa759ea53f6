"""Converts query texts and stored values to comparable values."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from system.encoded_query import Moment, Operand, read_instant, read_list, resolve
from tableapi.catalogue.definitions import Column

from .column_types import TYPE_ROWS
from .world import QueryRefused, is_empty, without_markup

NUMBER_PATTERN = re.compile(r"-?[0-9]+(\.[0-9]+)?")
INTEGER_PATTERN = re.compile(r"-?[0-9]+")
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1
# Stands for the column when a single list item is read.
ID_COLUMN = Column("", "reference", "", "")
BOOLEAN_TEXTS = {"true": True, "1": True, "false": False, "0": False}


def family_of(column: Column) -> str:
    """Columns of one family can be compared with each other. A sys_id is an id, although its type is string."""
    if column.name == "sys_id":
        return "id"
    return TYPE_ROWS[column.type].family


def literal(operand: Operand, column: Column, moment: Moment) -> Any:
    """The value of a query text for this column; raises `QueryRefused` if it is invalid for the column type."""
    if column.type == "list" and isinstance(operand, str):
        return [literal(item, ID_COLUMN, moment) for item in read_list(operand)]
    value = resolve(operand, moment)
    if family_of(column) == "time":
        instant = read_instant(value)
        return instant.date() if column.type == "date" else instant.replace(microsecond=0)
    if isinstance(value, datetime):
        raise QueryRefused
    match family_of(column):
        case "text":
            return value.lower()
        case "number":
            if not (INTEGER_PATTERN if TYPE_ROWS[column.type].is_whole else NUMBER_PATTERN).fullmatch(value):
                raise QueryRefused
            number = Decimal(value)
            if TYPE_ROWS[column.type].is_whole and not MIN_INTEGER <= number <= MAX_INTEGER:
                raise QueryRefused
            return number
        case "boolean":
            if value not in BOOLEAN_TEXTS:
                raise QueryRefused
            return BOOLEAN_TEXTS[value]
        case "list":
            return [value]
    return value


def comparable_value(value: Any, column: Column) -> Any:
    """The stored value for a comparison with a literal: None if empty, times without fractions of a second."""
    value = without_markup(value, column)
    if is_empty(value, column):
        return None
    if family_of(column) == "text":
        return value.lower()
    return value.replace(microsecond=0) if column.type == "datetime" else value


def exact_value(value: Any, column: Column) -> Any:
    """The stored value with microseconds, a date as midnight; for distances, periods, date parts and sorting."""
    value = without_markup(value, column)
    if is_empty(value, column):
        return None
    return as_instant(value) if family_of(column) == "time" else value


def as_instant(value: datetime | date) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, time(), UTC)


def column_comparison_value(value: Any, column: Column) -> Any:
    """The stored value for a comparison with another column."""
    value = comparable_value(value, column)
    return as_instant(value) if value is not None and family_of(column) == "time" else value

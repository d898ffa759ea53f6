"""Comparable values: texts of a query, and stored values of a record."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from system.encoded_query import Moment, Operand, read_instant, read_list, resolve
from tableapi.catalogue.definitions import Column

from .column_types import ROWS
from .world import Refused, is_empty, shown

NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
WHOLE = re.compile(r"-?[0-9]+")
SMALLEST, LARGEST = -(2**63), 2**63 - 1
# What stands between the commas of a list.
ONE_ID = Column("", "reference", "", "")
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def family(column: Column) -> str:
    """Columns of one family can be compared with each other. A sys_id is an id, although its type is string."""
    if column.name == "sys_id":
        return "id"
    return ROWS[column.type].family


def literal(operand: Operand, column: Column, moment: Moment) -> Any:
    """What the text of a query is, compared with this column; Refused when it is no value of the column's type."""
    if column.type == "list" and isinstance(operand, str):
        return [literal(item, ONE_ID, moment) for item in read_list(operand)]
    value = resolve(operand, moment)
    if family(column) == "time":
        instant = read_instant(value)
        return instant.date() if column.type == "date" else instant.replace(microsecond=0)
    if isinstance(value, datetime):
        raise Refused
    match family(column):
        case "text":
            return value.lower()
        case "number":
            if not (WHOLE if ROWS[column.type].is_whole else NUMBER).fullmatch(value):
                raise Refused
            number = Decimal(value)
            if ROWS[column.type].is_whole and not SMALLEST <= number <= LARGEST:
                raise Refused
            return number
        case "boolean":
            if value not in BOOLEANS:
                raise Refused
            return BOOLEANS[value]
        case "list":
            return [value]
    return value


def stored(value: Any, column: Column) -> Any:
    """The stored value, as it is compared with a literal: None when empty, times cut to the second."""
    value = shown(value, column)
    if is_empty(value, column):
        return None
    if family(column) == "text":
        return value.lower()
    return value.replace(microsecond=0) if column.type == "datetime" else value


def exact(value: Any, column: Column) -> Any:
    """The stored value to the microsecond; a date is its midnight. For distances, periods, parts and sorting."""
    value = shown(value, column)
    if is_empty(value, column):
        return None
    return instant(value) if family(column) == "time" else value


def instant(value: datetime | date) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, time(), UTC)


def beside(value: Any, column: Column) -> Any:
    """The stored value, as it is compared with another column's."""
    value = stored(value, column)
    return instant(value) if value is not None and family(column) == "time" else value

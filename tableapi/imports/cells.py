"""Turns the text of a cell into the value of a request body. Pure.

What no format here fits stays as it is, so that the write reports it in the words of the API.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any

from tableapi.catalogue.definitions import Column
from tableapi.catalogue.display_formats import value_with_label
from tableapi.values.display_values import parse_display_value

from .parser import MONTH_FIRST

BOOLEANS = {
    **dict.fromkeys(("yes", "y", "true", "t", "1", "x", "on"), True),
    **dict.fromkeys(("no", "n", "false", "f", "0", "off"), False),
}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
NUMBER = re.compile(r"([+-]?)([0-9][0-9.,'  \u202f]*)(.*)")
NUMERIC_DATE = re.compile(r"([0-9]{1,2})[./-]([0-9]{1,2})[./-]([0-9]{4}|[0-9]{2})(.*)")
YEAR_FIRST_DATE = re.compile(r"([0-9]{4})[./-]([0-9]{1,2})[./-]([0-9]{1,2})(.*)")
NAMED_DATE = re.compile(r"([0-9]{1,2})\.? ([A-Za-z]{3})[a-z]*\.?,? ([0-9]{4})(.*)")
US_NAMED_DATE = re.compile(r"([A-Za-z]{3})[a-z]*\.? ([0-9]{1,2}),? ([0-9]{4})(.*)")
TIME = re.compile(r"(?:,? +|T)([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)? ?([AaPp])?\.?[Mm]?\.?")
CENTURY_START, CENTURY_END = 70, 100


@dataclass(frozen=True)
class CellFormat:
    date_order: str
    decimal: str
    zone: tzinfo


def convert(column: Column, cell: Any, format: CellFormat) -> Any:
    """The value of a cell that is not empty, for a column that refers to no other records."""
    column_type = column.column_type
    if not isinstance(cell, str):
        return cell
    if column_type.has_choices:
        return cell if cell in dict(column.choices) else _choice(column, cell)
    if column_type.is_json:
        try:
            return json.loads(cell)
        except (ValueError, RecursionError):
            return cell
    match column_type.name:
        case "boolean":
            return BOOLEANS.get(cell.casefold(), cell)
        case "date":
            return _date(cell, replace(format, zone=UTC)) or cell  # the day that is written, even with a time
        case "datetime":
            value = _date(cell, format) or cell
            return _time(value, " 00:00", format) or value
        case "integer" | "decimal" | "percent":
            return _number(parse_display_value(column, cell), format.decimal)
    return parse_display_value(column, cell)


def _choice(column: Column, cell: str) -> str:
    value = value_with_label(cell, [(label, value) for value, label in column.choices])
    return cell if value is None else str(value)


def _number(text: Any, decimal: str) -> Any:
    """
    >>> _number("1.234,50", ","), _number("1,234.50", "."), _number("1 234", "."), _number("12 EUR", ".")
    ('1234.50', '1234.50', '1234', '12 EUR')
    """
    match = NUMBER.fullmatch(text) if isinstance(text, str) else None
    if match is None or (match[3] and not re.fullmatch("[eE][+-]?[0-9]+", match[3])):
        return text
    digits = re.sub("[^0-9,.]", "", match[2]).replace("," if decimal == "." else ".", "")
    return f"{match[1]}{digits.replace(decimal, '.')}{match[3]}"


def _date(text: str, format: CellFormat) -> str | None:
    """An ISO date, or an ISO time in UTC; None if the text is neither.

    >>> format = CellFormat("dmy", ".", UTC)
    >>> [_date(text, format) for text in ("31.12.2024", "1/2/24 3:04 PM", "May 5, 2024", "2024-05-05T10:00Z", "soon")]
    ['2024-12-31', '2024-02-01 15:04:00', '2024-05-05', None, None]
    """
    if match := YEAR_FIRST_DATE.fullmatch(text):
        year, month, day, rest = match.groups()
    elif match := NUMERIC_DATE.fullmatch(text):
        day, month, year, rest = match.groups()
        if format.date_order == MONTH_FIRST and "." not in text[:5]:
            day, month = month, day
    elif match := NAMED_DATE.fullmatch(text):
        day, month, year, rest = match.groups()
    elif match := US_NAMED_DATE.fullmatch(text):
        month, day, year, rest = match.groups()
    else:
        return None
    if month.isalpha():
        month = str(MONTHS.index(month.casefold()) + 1 if month.casefold() in MONTHS else 0)
    if len(year) == 2:
        year = str((1900 if CENTURY_START <= int(year) < CENTURY_END else 2000) + int(year))
    date = f"{year}-{int(month):02}-{int(day):02}"
    return _time(date, rest, format) if rest.strip() else date


def _time(date: str, rest: str, format: CellFormat) -> str | None:
    match = TIME.fullmatch(rest)
    if match is None:
        return None  # with a time zone, or no time; the API reads the former
    hour, minute, second, half = match.groups()
    if half:
        hour = str(int(hour) % 12 + (12 if half in "Pp" else 0))
    try:
        local = datetime.fromisoformat(f"{date} {int(hour):02}:{minute}:{second or '00'}").replace(tzinfo=format.zone)
        return local.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    except (ValueError, OverflowError):
        return None


def is_empty(cell: Any) -> bool:
    return cell is None or cell == ""


def names_in(column: Column, cell: Any) -> list[str]:
    """The names of records in a cell: one for a reference, many for a list.

    >>> [names_in(Column("it", kind, "", "it"), "Ann; Bob, ") for kind in ("reference", "list")]
    [['Ann; Bob, '], ['Ann', 'Bob']]
    """
    if isinstance(cell, Mapping):  # as responses show references
        cell = cell.get("value") or cell.get("display_value")
    items = cell if isinstance(cell, list) else re.split("[;,]", str(cell)) if column.column_type.is_list else [cell]
    return [name for item in items if (name := (str(item).strip() if column.column_type.is_list else str(item)))]

"""Turns a cell into the value of a request body. Pure.

What no format here fits stays as it is, so that the write reports it in the words of the API.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time, tzinfo
from functools import lru_cache
from typing import Any, NamedTuple

from tableapi.catalogue.definitions import Column
from tableapi.catalogue.display_formats import value_with_label
from tableapi.values.display_values import parse_display_value

MAX_CACHED_CHARACTERS = 40
BOOLEANS = {
    **dict.fromkeys(("yes", "y", "true", "t", "1", "x", "on"), True),
    **dict.fromkeys(("no", "n", "false", "f", "0", "off"), False),
}
NUMBER_TYPES = ("integer", "decimal", "percent", "duration", "json")
# Only groups of three digits are separated: "1,5" is not 15.
GROUPED_NUMBER = r"[+-]?([0-9]+|[0-9]{{1,3}}([{group}' \xa0\u202f][0-9]{{3}})+)([{decimal}][0-9]+)?([eE][+-]?[0-9]+)?"
NUMBERS = {decimal: re.compile(GROUPED_NUMBER.format(group=group, decimal=decimal)) for decimal, group in (".,", ",.")}
NUMERIC_DATE = re.compile(r"([0-9]{4}|[0-9]{1,2})[./-]([0-9]{1,2})[./-]([0-9]{4}|[0-9]{1,2})")
NAMED_DATES = ("%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y")
DATE_AND_TIME = re.compile(r"(.*?)(?:,?[ T]+(\d{1,2}):(\d\d)(?::(\d\d)(?:\.\d+)?)? ?(?:([AaPp])[Mm])?)?")


class CellFormat(NamedTuple):
    date_order: str
    decimal: str
    zone: tzinfo


def convert(column: Column, cell: Any, format: CellFormat) -> Any:
    """The value of a cell that is not empty, for a column that refers to no other records."""
    column_type = column.column_type
    if isinstance(cell, int | float) and not isinstance(cell, bool) and column_type.name not in NUMBER_TYPES:
        cell = str(cell)  # a workbook stores texts of digits as numbers
    if not isinstance(cell, str):
        return cell
    return (_convert if len(cell) > MAX_CACHED_CHARACTERS else _cached_convert)(column, cell, format)


def _convert(column: Column, cell: str, format: CellFormat) -> Any:
    column_type = column.column_type
    if column_type.has_choices:
        value = value_with_label(cell, [(label, value) for value, label in column.choices])
        return cell if value is None or cell in dict(column.choices) else value
    if column_type.name == "boolean":
        return BOOLEANS.get(cell.casefold(), cell)
    if column_type.name in ("integer", "decimal", "percent"):
        return _read_number(parse_display_value(column, cell), format.decimal)
    if not (column_type.is_json or column_type.name in ("date", "datetime")):
        return parse_display_value(column, cell)
    with suppress(ValueError, RecursionError, OverflowError):  # the last for the first and last day of the calendar
        if column_type.is_json:
            return json.loads(cell)
        moment = _read_moment(cell, format)
        if column_type.name == "date":
            return moment.date().isoformat()
        return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    return cell


# Few different values occur in many columns.
_cached_convert = lru_cache(maxsize=10_000)(_convert)


def _read_number(text: Any, decimal: str) -> Any:
    """
    >>> _read_number("1.234,50", ","), [_read_number(text, ".") for text in ("1,234.50", "1 234", "1,5")]
    ('1234.50', ['1234.50', '1234', '1,5'])
    """
    if not isinstance(text, str) or not NUMBERS[decimal].fullmatch(text):
        return text
    return re.sub("[^0-9,.eE+-]", "", text).replace("," if decimal == "." else ".", "").replace(decimal, ".")


def _read_moment(text: str, format: CellFormat) -> datetime:
    """Raises ValueError if the text is not a time, or has a time zone, which the API reads.

    >>> format = CellFormat("dmy", ".", UTC)
    >>> [str(_read_moment(text, format)) for text in ("31.12.2024", "1/2/24 3:04 PM", "May 5, 2024")]
    ['2024-12-31 00:00:00+00:00', '2024-02-01 15:04:00+00:00', '2024-05-05 00:00:00+00:00']
    """
    match = DATE_AND_TIME.fullmatch(text)
    if match is None:
        raise ValueError
    day, *time_parts, half = match.groups()
    hour, minute, second = (int(part or 0) for part in time_parts)
    if half:
        hour = hour % 12 + (12 if half in "Pp" else 0)
    return datetime.combine(_read_date(day, format.date_order), time(hour, minute, second, tzinfo=format.zone))


def _read_date(text: str, order: str) -> date:
    if match := NUMERIC_DATE.fullmatch(text):
        first, second, third = map(int, match.groups())
        if len(match[1]) == len("2024"):
            return date(first, second, third)
        if third < 100:
            third += 1900 if third >= 69 else 2000  # as in POSIX
        is_month_first = order == "mdy" and "." not in text
        return date(third, first, second) if is_month_first else date(third, second, first)
    for pattern in NAMED_DATES:
        with suppress(ValueError):
            return datetime.strptime(text.replace(",", "").replace(".", ""), pattern).date()
    raise ValueError


def is_empty(cell: Any) -> bool:
    return cell is None or cell == ""


def names_in(column: Column, cell: Any) -> list[str]:
    """The names of records in a cell: at most one for a reference, many for a list.

    >>> [names_in(Column("it", kind, "", "it"), "Ann; Bob, ") for kind in ("reference", "list")]
    [['Ann; Bob, '], ['Ann', 'Bob']]
    """
    items = [cell]
    if column.column_type.is_list:
        items = cell if isinstance(cell, list) else [item.strip() for item in re.split("[;,]", str(cell))]
    # As responses show references.
    names = [item.get("value") or item.get("display_value") if isinstance(item, Mapping) else item for item in items]
    return [str(name) for name in names if not is_empty(name)]

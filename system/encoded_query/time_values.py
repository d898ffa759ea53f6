"""Reads time values: instants, periods, distances, parts of a date."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from .dialect import RECORDS, Dialect, Path, read_whole_path
from .errors import QueryError
from .functions import Moment, Operand, read_operand, resolve
from .periods import Unit, end_of, is_within_limit, shift, start_of

# `fromisoformat` alone also accepts week dates and dates without hyphens, which are not documented.
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_DATE_LENGTH = len("2024-05-19")
_UNITS = frozenset(Unit)
INSTANT_EXPECTED = "a date such as 2024-05-19 or a time such as 2024-05-19T15:30:00Z is expected"


@dataclass(frozen=True, slots=True)
class Period:
    """The value of ON: a period, or a day if `last` is None."""

    first: Operand
    last: Operand | None = None

    def bounds(self, moment: Moment) -> tuple[datetime, datetime]:
        """First and last instant, both included; the end includes its whole day or second.

        >>> noon = Moment(datetime(2024, 5, 19, 12, tzinfo=UTC), "17")
        >>> [bound.isoformat() for bound in Period("2024-02-29").bounds(noon)]
        ['2024-02-29T00:00:00+00:00', '2024-02-29T23:59:59.999999+00:00']
        """
        first = _local(self.first, moment)
        if self.last is None:
            return _in_utc(start_of(first, Unit.DAY)), end_of(first, Unit.DAY)
        last = _local(self.last, moment)
        is_date = isinstance(self.last, str) and len(self.last) == _DATE_LENGTH
        first = _in_utc(first)
        # Times are displayed to the second, so a time that is displayed as the end is in the period.
        end = end_of(last, Unit.DAY) if is_date else _in_utc(last).replace(microsecond=999_999)
        return first.replace(microsecond=0), end


@dataclass(frozen=True, slots=True)
class RelativeTime:
    """The value of RELATIVE…: `count` units from now, in the past if negative."""

    unit: Unit
    count: int

    def instant(self, moment: Moment) -> datetime:
        """The instant that RELATIVEGT, GE, LT and LE compare with."""
        return shift(moment.local_now, self.unit, self.count).astimezone(UTC)

    def bounds(self, moment: Moment) -> tuple[datetime, datetime]:
        """First and last instant of the unit that contains it, for RELATIVEEE."""
        instant = self.instant(moment).astimezone(moment.time_zone)
        return start_of(instant, self.unit).astimezone(UTC), end_of(instant, self.unit)


@dataclass(frozen=True, slots=True)
class Distance:
    """The value of MORETHAN and LESSTHAN: `count` units before or after the column `path`."""

    path: Path
    unit: Unit
    is_before: bool
    count: int


def read_instant(value: str | datetime, position: int = 0) -> datetime:
    """The instant of a date, a UTC date and time, or ISO 8601 with a zone; a datetime is returned unchanged.

    >>> read_instant("2024-05-19T15:30+03:00").isoformat()
    '2024-05-19T12:30:00+00:00'
    """
    if isinstance(value, datetime):
        return value
    try:
        if not _INSTANT.fullmatch(value):
            raise ValueError
        instant = datetime.fromisoformat(value)
        return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise QueryError(INSTANT_EXPECTED, position, value) from None


def _local(operand: Operand, moment: Moment) -> datetime:
    """The instant in the moment's time zone, where a date without a time means the start of that day."""
    instant = read_instant(resolve(operand, moment))
    if isinstance(operand, str) and len(operand) == _DATE_LENGTH:
        return instant.replace(tzinfo=moment.time_zone)
    try:
        return instant.astimezone(moment.time_zone)
    except OverflowError:
        return instant


def _in_utc(instant: datetime) -> datetime:
    try:
        return instant.astimezone(UTC)
    except OverflowError:  # on the first or last day that is supported
        return instant.replace(tzinfo=UTC)


def read_period(text: str, position: int = 0) -> Period:
    """The value of ON and NOTON: one date, or `label@start@end`, whose label is ignored.

    >>> read_period("May@2024-05-01@2024-05-31")
    Period(first='2024-05-01', last='2024-05-31')
    """
    pieces = text.split("@")
    if len(pieces) == 1:
        return Period(_read_bound(text, position))
    if len(pieces) != 3:
        raise QueryError("a date or label@start@end is expected", position, text)
    label, start, end = pieces
    position += len(label) + 1
    return Period(_read_bound(start, position), _read_bound(end, position + len(start) + 1))


def _read_bound(text: str, position: int) -> Operand:
    operand = read_operand(text, position)
    if isinstance(operand, str):
        read_instant(operand, position)
    elif operand.name == "getUserID":
        raise QueryError(INSTANT_EXPECTED, position, text)
    return operand


def read_relative_time(text: str, position: int = 0) -> RelativeTime:
    """The value of RELATIVE….

    >>> read_relative_time("@day@ago@3")
    RelativeTime(unit=<Unit.DAY: 'day'>, count=-3)
    """
    prefix, *pieces = text.split("@", 3)
    if prefix or len(pieces) != 3 or pieces[1] not in ("ago", "ahead"):
        raise QueryError("@unit@ago@number or @unit@ahead@number is expected", position, text)
    unit_name, direction, digits = pieces
    unit, count = _read_unit_and_count(unit_name, digits, position)
    return RelativeTime(unit, -count if direction == "ago" else count)


def read_distance(text: str, position: int = 0, dialect: Dialect = RECORDS) -> Distance:
    """The value of MORETHAN and LESSTHAN.

    >>> read_distance("opened_at@hour@after@8")
    Distance(path=('opened_at',), unit=<Unit.HOUR: 'hour'>, is_before=False, count=8)
    """
    path, *pieces = text.rsplit("@", 3)
    if len(pieces) != 3 or pieces[1] not in ("before", "after"):
        raise QueryError("path@unit@before@number or path@unit@after@number is expected", position, text)
    unit, count = _read_unit_and_count(pieces[0], pieces[2], position + len(path))
    return Distance(read_whole_path(path, dialect, position), unit, pieces[1] == "before", count)


def _read_unit_and_count(unit: str, digits: str, position: int) -> tuple[Unit, int]:
    if unit not in _UNITS:
        raise QueryError(f"one of {', '.join(Unit)} is expected", position, unit)
    if not re.fullmatch("[0-9]{1,9}", digits):
        raise QueryError("a whole number is expected", position, digits)
    if not is_within_limit(Unit(unit), int(digits)):
        raise QueryError("a time span cannot exceed 1,000 years", position, digits)
    return Unit(unit), int(digits)


def read_date_part(text: str, numbers: range, position: int = 0) -> int:
    """The number of YEAR_IS and the other date part operators.

    >>> read_date_part("12", range(1, 13))
    12
    """
    if not re.fullmatch("[0-9]{1,4}", text) or int(text) not in numbers:
        raise QueryError(f"a whole number from {numbers[0]} to {numbers[-1]} is expected", position, text)
    return int(text)

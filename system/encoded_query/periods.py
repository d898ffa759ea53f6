"""Units of time: their start and end, and shifting by them, in the instant's time zone. Weeks begin on Monday."""

from calendar import monthrange
from datetime import UTC, datetime, timedelta
from enum import StrEnum


class Unit(StrEnum):
    """A unit of time, spelled as in a query."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


_DURATIONS = {
    Unit.MINUTE: timedelta(minutes=1),
    Unit.HOUR: timedelta(hours=1),
    Unit.DAY: timedelta(days=1),
    Unit.WEEK: timedelta(weeks=1),
}
_MONTHS_IN = {Unit.MONTH: 1, Unit.QUARTER: 3, Unit.YEAR: 12}

# Chosen: nobody needs more than a thousand years, and a realistic date that is shifted by them does not overflow.
MAX_MONTHS = 12_000
MAX_DURATION = timedelta(days=365_000)


def is_within_limit(unit: Unit, count: int) -> bool:
    """Whether this many units are at most a thousand years.

    >>> is_within_limit(Unit.YEAR, 1_000), is_within_limit(Unit.YEAR, -1_001), is_within_limit(Unit.MINUTE, 999_999_999)
    (True, False, False)
    """
    if unit in _MONTHS_IN:
        return abs(count) <= MAX_MONTHS // _MONTHS_IN[unit]
    return abs(count) <= MAX_DURATION // _DURATIONS[unit]


def shift(instant: datetime, unit: Unit, count: int) -> datetime:
    """The instant shifted by this many units, back if negative. 31 becomes the last day of a shorter month.

    >>> shift(datetime(2024, 3, 31, tzinfo=UTC), Unit.MONTH, -1).isoformat()
    '2024-02-29T00:00:00+00:00'
    """
    if unit in (Unit.MINUTE, Unit.HOUR):  # in UTC, because clocks may change in between
        return (instant.astimezone(UTC) + count * _DURATIONS[unit]).astimezone(instant.tzinfo)
    if unit in _DURATIONS:
        return (instant + count * _DURATIONS[unit]).replace(fold=instant.fold)
    years, month = divmod(instant.year * 12 + instant.month - 1 + count * _MONTHS_IN[unit], 12)
    return instant.replace(year=years, month=month + 1, day=min(instant.day, monthrange(years, month + 1)[1]))


def start_of(instant: datetime, unit: Unit) -> datetime:
    """The first instant of the unit that contains this one.

    >>> start_of(datetime(2024, 5, 19, 15, tzinfo=UTC), Unit.WEEK).isoformat()
    '2024-05-13T00:00:00+00:00'
    """
    if unit is Unit.MINUTE:
        return instant.replace(second=0, microsecond=0)
    if unit is Unit.HOUR:
        return instant.replace(minute=0, second=0, microsecond=0)
    day = instant.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if unit is Unit.DAY:
        return day
    if unit is Unit.WEEK:
        return day - timedelta(days=day.weekday())
    months = _MONTHS_IN[unit]
    return day.replace(month=(day.month - 1) // months * months + 1, day=1)


def end_of(instant: datetime, unit: Unit) -> datetime:
    """The last instant of the unit, to the microsecond, the precision of the database.

    >>> end_of(datetime(2024, 5, 19, tzinfo=UTC), Unit.QUARTER).isoformat()
    '2024-06-30T23:59:59.999999+00:00'
    """
    try:
        return shift(start_of(instant, unit), unit, 1).astimezone(UTC) - timedelta.resolution
    except (OverflowError, ValueError):
        return datetime.max.replace(tzinfo=UTC)  # the unit ends after the last supported year

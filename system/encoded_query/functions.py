"""The value functions `javascript:gs.…`: a fixed list, matched by pattern. No JavaScript is evaluated."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from .errors import QueryError
from .periods import Unit, end_of, is_within_limit, shift, start_of


@dataclass(frozen=True, slots=True)
class Moment:
    """The context of a value: the time of the request, the user, and the time zone in which days begin."""

    now: datetime
    user_id: str
    time_zone: tzinfo = UTC

    def __post_init__(self) -> None:
        if self.now.tzinfo is None:
            raise ValueError("the time must have a time zone")
        object.__setattr__(self, "now", self.now.astimezone(UTC))

    @property
    def local_now(self) -> datetime:
        return self.now.astimezone(self.time_zone)

    def on_wall_clock(self) -> "Moment":
        """The local time as if it were UTC, for date columns, which have no time zone."""
        return Moment(self.local_now.replace(tzinfo=UTC), self.user_id)


# For checking a value before the moment of a request is known. The user id is neither a number nor a boolean, which an
# imported id could be, so that it does not fit a column by chance.
SAMPLE_MOMENT = Moment(datetime(2000, 1, 1, tzinfo=UTC), "a1")


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRow:
    """A function. If it has a `unit`, its argument is the number of units to go back."""

    name: str
    unit: Unit | None = None
    resolve: Callable[[Moment, int], datetime | str]


@dataclass(frozen=True, slots=True)
class ValueFunction:
    """A function call in a query."""

    name: str
    count: int = 0

    def resolve(self, moment: Moment) -> datetime | str:
        """The value at that moment: an instant in UTC, or the caller's id.

        >>> noon = Moment(datetime(2024, 5, 19, 12, tzinfo=UTC), "17")
        >>> ValueFunction("daysAgoStart", 2).resolve(noon).isoformat()
        '2024-05-17T00:00:00+00:00'
        """
        value = FUNCTIONS[self.name].resolve(moment, self.count)
        return value.astimezone(UTC) if isinstance(value, datetime) else value


Operand = str | ValueFunction


def _ago_rows(unit: Unit) -> Iterator[FunctionRow]:
    """`daysAgo(2)`, `daysAgoStart(2)`, `daysAgoEnd(2)`; a negative number is in the future."""

    def ago(moment: Moment, count: int) -> datetime:
        return shift(moment.local_now, unit, -count)

    name = f"{unit}sAgo"
    yield FunctionRow(name=name, unit=unit, resolve=ago)
    yield FunctionRow(name=f"{name}Start", unit=unit, resolve=lambda moment, count: start_of(ago(moment, count), unit))
    yield FunctionRow(name=f"{name}End", unit=unit, resolve=lambda moment, count: end_of(ago(moment, count), unit))


def _start_and_end_rows(period: str, unit: Unit, offset: int) -> Iterator[FunctionRow]:
    """`beginningOfLastWeek()` and `endOfLastWeek()`."""

    def start(moment: Moment, _: int) -> datetime:
        return shift(start_of(moment.local_now, unit), unit, offset)

    yield FunctionRow(name=f"beginningOf{period}", resolve=start)
    yield FunctionRow(name=f"endOf{period}", resolve=lambda moment, _: end_of(start(moment, 0), unit))


def _function_rows() -> Iterator[FunctionRow]:
    yield FunctionRow(name="getUserID", resolve=lambda moment, _: moment.user_id)
    for name in ("now", "nowDateTime"):
        yield FunctionRow(name=name, resolve=lambda moment, _: moment.now)
    for unit in (Unit.MINUTE, Unit.HOUR, Unit.DAY, Unit.MONTH, Unit.QUARTER, Unit.YEAR):
        yield from _ago_rows(unit)
    for period, offset in (("Yesterday", -1), ("Today", 0), ("Tomorrow", 1)):
        yield from _start_and_end_rows(period, Unit.DAY, offset)
    for period, offset in (("Last", -1), ("This", 0), ("Next", 1)):
        for unit in (Unit.WEEK, Unit.MONTH, Unit.QUARTER, Unit.YEAR):
            yield from _start_and_end_rows(period + unit.capitalize(), unit, offset)


FUNCTIONS: Mapping[str, FunctionRow] = {row.name: row for row in _function_rows()}

# The parser reads a call as one token, so that its ")" does not close the group around it.
CALL_PATTERN = r"javascript:gs\.[A-Za-z]++\(-?[0-9]*+\)"

_CALL = re.compile(r"javascript:gs\.([A-Za-z]+)\((-?[0-9]{1,9})?\)")
_FUNCTION_PREFIX = "javascript:"


def read_operand(text: str, position: int = 0) -> str | ValueFunction:
    """A function as a `ValueFunction`, other text unchanged; "any other `javascript:` is a 400".

    >>> read_operand("open")
    'open'
    >>> read_operand("javascript:gs.daysAgo(7)")
    ValueFunction(name='daysAgo', count=7)
    """
    # Also refused with other case or leading spaces: " JavaScript:…" is never meant as text.
    if text.lstrip()[: len(_FUNCTION_PREFIX)].lower() != _FUNCTION_PREFIX:
        return text
    match = _CALL.fullmatch(text)
    row = FUNCTIONS.get(match.group(1)) if match else None
    if match is None or row is None:
        raise QueryError("unknown value function or invalid argument", position, text)
    number = match.group(2)
    if (number is None) is not (row.unit is None):
        rule = "takes no argument" if row.unit is None else "takes one whole number as its argument"
        raise QueryError(f"this value function {rule}", position, text)
    count = int(number or 0)
    if row.unit and not is_within_limit(row.unit, count):
        raise QueryError("a time span cannot exceed 1,000 years", position, text)
    return ValueFunction(row.name, count)


def resolve(operand: Operand, moment: Moment) -> str | datetime:
    """The result of a function at that moment; a text is returned unchanged.

    >>> resolve(read_operand("javascript:gs.getUserID()"), Moment(datetime(2024, 5, 19, tzinfo=UTC), "17"))
    '17'
    """
    return operand.resolve(moment) if isinstance(operand, ValueFunction) else operand

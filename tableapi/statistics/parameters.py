"""Parses the parameters of statistics into frozen values. Pure."""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from system.errors import InvalidParameter
from tableapi.query.parameters import (
    MAX_RECORDS,
    DisplayMode,
    RawParameters,
    parse_display_mode,
    parse_names,
    parse_number,
    parse_switch,
    parse_text,
)
from tableapi.query.parsed_query import ParsedQuery, parse_query_text

DEFAULT_GROUPS = 1_000
MAX_GROUP_KEYS = 3
MAX_AGGREGATES = 20
MAX_HAVING_CONDITIONS = 20

FUNCTIONS = ("count_distinct", "sum", "avg", "min", "max")
PERIODS = ("day", "week", "month", "quarter", "year")
COUNT = "count"

AGGREGATE_PATTERN = rf"(?:{COUNT}(?!_)|(?P<function>{'|'.join(FUNCTIONS)})\((?P<path>[^()^,]+)\))"
AGGREGATE = re.compile(AGGREGATE_PATTERN)
CONDITION = re.compile(rf"{AGGREGATE_PATTERN}(?P<operator>>=|<=|!=|=|>|<)(?P<value>-?\d{{1,30}}(?:\.\d{{1,30}})?)")


class Aggregate(NamedTuple):
    """A function applied to the values of a column; `count` has no path."""

    function: str
    path: tuple[str, ...] = ()


class GroupKey(NamedTuple):
    """A column to group by, with an optional period. `text` is its name in the response."""

    text: str
    path: tuple[str, ...]
    period: str = ""


class HavingCondition(NamedTuple):
    aggregate: Aggregate
    operator: str


class SortKey(NamedTuple):
    """Sorts by a group key, given by its number, or by an aggregate."""

    target: int | Aggregate
    is_descending: bool


class StatisticsShape(NamedTuple):
    """The part of a request that determines the SQL text."""

    # Grouped by function, which the JSON relies on.
    aggregates: tuple[Aggregate, ...]
    group_keys: tuple[GroupKey, ...]
    # At least one condition of each inner tuple must hold.
    having: tuple[tuple[HavingCondition, ...], ...]
    order: tuple[SortKey, ...]
    limit: int
    display_mode: DisplayMode

    @property
    def all_aggregates(self) -> tuple[Aggregate, ...]:
        """The distinct aggregates of the response, the conditions and the sort order."""
        return tuple(dict.fromkeys([*self.aggregates, *self.deciding_aggregates]))

    @property
    def deciding_aggregates(self) -> list[Aggregate]:
        """The aggregates that decide which groups are returned, and in which order."""
        deciding = [condition.aggregate for alternatives in self.having for condition in alternatives]
        return deciding + [sort.target for sort in self.order if isinstance(sort.target, Aggregate)]


@dataclass(frozen=True, slots=True)
class StatisticsRequest:
    query: ParsedQuery
    shape: StatisticsShape
    having_values: tuple[Decimal, ...]


def parse_statistics(raw: RawParameters) -> StatisticsRequest:
    """Parse the parameters. Raises BadRequest, or QueryError for an invalid query."""
    aggregates = [Aggregate(COUNT)] if parse_switch(raw, "sysparm_count") else []
    aggregates += [
        Aggregate(function, tuple(name.split(".")))
        for function in FUNCTIONS
        for name in parse_names(raw, f"sysparm_{function}_fields", MAX_AGGREGATES)
    ]
    if len(aggregates) > MAX_AGGREGATES:
        raise InvalidParameter(f"You can request at most {MAX_AGGREGATES} aggregates.", field="sysparm_sum_fields")
    if not aggregates:
        raise InvalidParameter("Request sysparm_count=true or at least one aggregate.", field="sysparm_count")
    group_keys = tuple(_parse_group_key(text) for text in parse_names(raw, "sysparm_group_by", MAX_GROUP_KEYS))
    having, having_values = _parse_having(parse_text(raw, "sysparm_having"))
    shape = StatisticsShape(
        tuple(dict.fromkeys(aggregates)),
        group_keys,
        having,
        tuple(_parse_sort_key(text, group_keys) for text in parse_names(raw, "sysparm_order_by", MAX_AGGREGATES)),
        parse_number(raw, "sysparm_limit", DEFAULT_GROUPS, maximum=MAX_RECORDS),
        parse_display_mode(raw),
    )
    return StatisticsRequest(parse_query_text(parse_text(raw, "sysparm_query")), shape, having_values)


def _parse_group_key(text: str) -> GroupKey:
    """
    >>> _parse_group_key("opened_at:month")
    GroupKey(text='opened_at:month', path=('opened_at',), period='month')
    """
    name, separator, period = text.partition(":")
    if separator and period not in PERIODS:
        raise InvalidParameter(f"The period must be one of {', '.join(PERIODS)}.", field="sysparm_group_by")
    return GroupKey(text, tuple(name.split(".")), period)


def _aggregate(match: "re.Match[str]") -> Aggregate:
    return Aggregate(match["function"], tuple(match["path"].split("."))) if match["function"] else Aggregate(COUNT)


def _parse_having(text: str) -> tuple[tuple[tuple[HavingCondition, ...], ...], tuple[Decimal, ...]]:
    """As in an encoded query, `^OR` binds more tightly than `^`.

    >>> shape, values = _parse_having("count>5^sum(qty)>=100^ORavg(qty)<1.5")
    >>> [len(alternatives) for alternatives in shape], [str(value) for value in values]
    ([1, 2], ['5', '100', '1.5'])
    """
    terms: list[list[HavingCondition]] = []
    values: list[Decimal] = []
    for number, part in enumerate(text.split("^") if text else []):
        is_alternative = number > 0 and part.startswith("OR")
        match = CONDITION.fullmatch(part[2:] if is_alternative else part)
        if match is None:
            message = "Expected conditions such as count>5 or sum(qty)>=100, joined by ^ or ^OR."
            raise InvalidParameter(message, field="sysparm_having")
        values.append(Decimal(match["value"]))
        condition = HavingCondition(_aggregate(match), match["operator"])
        if is_alternative:
            terms[-1].append(condition)
        else:
            terms.append([condition])
    if len(values) > MAX_HAVING_CONDITIONS:
        raise InvalidParameter(f"You can use at most {MAX_HAVING_CONDITIONS} conditions.", field="sysparm_having")
    return tuple(map(tuple, terms)), tuple(values)


def _parse_sort_key(text: str, group_keys: tuple[GroupKey, ...]) -> SortKey:
    name = text.removeprefix("-")
    is_descending = name != text
    numbers = {key.text: number for number, key in enumerate(group_keys)}
    if name in numbers:
        return SortKey(numbers[name], is_descending)
    match = AGGREGATE.fullmatch(name)
    if match is None:
        message = "Sort by a name in sysparm_group_by, by count or by an aggregate such as sum(qty)."
        raise InvalidParameter(message, field="sysparm_order_by")
    return SortKey(_aggregate(match), is_descending)

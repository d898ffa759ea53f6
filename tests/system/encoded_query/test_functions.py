"""The value functions: a fixed list that the grammar recognizes, evaluated for one moment."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from system.encoded_query import FUNCTIONS, Moment, QueryError, parse, read_operand, read_value, resolve

# A Sunday in a leap year, in the last month of a quarter, so that weeks, months and quarters all differ.
NOW = Moment(datetime(2024, 3, 31, 15, 30, 45, 123, tzinfo=UTC), "17")

FUNCTION_RESULTS = [
    ("now()", "2024-03-31 15:30:45.000123"),
    ("nowDateTime()", "2024-03-31 15:30:45.000123"),
    ("minutesAgo(31)", "2024-03-31 14:59:45.000123"),
    ("minutesAgoStart(31)", "2024-03-31 14:59:00"),
    ("minutesAgoEnd(31)", "2024-03-31 14:59:59.999999"),
    ("hoursAgo(16)", "2024-03-30 23:30:45.000123"),
    ("hoursAgoStart(16)", "2024-03-30 23:00:00"),
    ("hoursAgoEnd(16)", "2024-03-30 23:59:59.999999"),
    ("daysAgo(31)", "2024-02-29 15:30:45.000123"),
    ("daysAgoStart(0)", "2024-03-31 00:00:00"),
    ("daysAgoEnd(-1)", "2024-04-01 23:59:59.999999"),
    ("monthsAgo(1)", "2024-02-29 15:30:45.000123"),
    ("monthsAgoStart(1)", "2024-02-01 00:00:00"),
    ("monthsAgoEnd(-1)", "2024-04-30 23:59:59.999999"),
    ("quartersAgo(1)", "2023-12-31 15:30:45.000123"),
    ("quartersAgoStart(1)", "2023-10-01 00:00:00"),
    ("quartersAgoEnd(0)", "2024-03-31 23:59:59.999999"),
    ("yearsAgo(1)", "2023-03-31 15:30:45.000123"),
    ("yearsAgoStart(-1)", "2025-01-01 00:00:00"),
    ("yearsAgoEnd(1)", "2023-12-31 23:59:59.999999"),
    ("beginningOfYesterday()", "2024-03-30 00:00:00"),
    ("endOfYesterday()", "2024-03-30 23:59:59.999999"),
    ("beginningOfToday()", "2024-03-31 00:00:00"),
    ("endOfToday()", "2024-03-31 23:59:59.999999"),
    ("beginningOfTomorrow()", "2024-04-01 00:00:00"),
    ("endOfTomorrow()", "2024-04-01 23:59:59.999999"),
    ("beginningOfLastWeek()", "2024-03-18 00:00:00"),
    ("endOfLastWeek()", "2024-03-24 23:59:59.999999"),
    ("beginningOfThisWeek()", "2024-03-25 00:00:00"),
    ("endOfThisWeek()", "2024-03-31 23:59:59.999999"),
    ("beginningOfNextWeek()", "2024-04-01 00:00:00"),
    ("endOfNextWeek()", "2024-04-07 23:59:59.999999"),
    ("beginningOfLastMonth()", "2024-02-01 00:00:00"),
    ("endOfLastMonth()", "2024-02-29 23:59:59.999999"),
    ("beginningOfThisMonth()", "2024-03-01 00:00:00"),
    ("endOfThisMonth()", "2024-03-31 23:59:59.999999"),
    ("beginningOfNextMonth()", "2024-04-01 00:00:00"),
    ("endOfNextMonth()", "2024-04-30 23:59:59.999999"),
    ("beginningOfLastQuarter()", "2023-10-01 00:00:00"),
    ("endOfLastQuarter()", "2023-12-31 23:59:59.999999"),
    ("beginningOfThisQuarter()", "2024-01-01 00:00:00"),
    ("endOfThisQuarter()", "2024-03-31 23:59:59.999999"),
    ("beginningOfNextQuarter()", "2024-04-01 00:00:00"),
    ("endOfNextQuarter()", "2024-06-30 23:59:59.999999"),
    ("beginningOfLastYear()", "2023-01-01 00:00:00"),
    ("endOfLastYear()", "2023-12-31 23:59:59.999999"),
    ("beginningOfThisYear()", "2024-01-01 00:00:00"),
    ("endOfThisYear()", "2024-12-31 23:59:59.999999"),
    ("beginningOfNextYear()", "2025-01-01 00:00:00"),
    ("endOfNextYear()", "2025-12-31 23:59:59.999999"),
]


@pytest.mark.parametrize(("call", "expected_text"), FUNCTION_RESULTS)
def test_function_returns_an_instant_in_utc(call: str, expected_text: str) -> None:
    expected_instant = datetime.fromisoformat(expected_text).replace(tzinfo=UTC)
    assert resolve(read_operand(f"javascript:gs.{call}"), NOW) == expected_instant


def test_user_function_returns_text() -> None:
    assert resolve(read_operand("javascript:gs.getUserID()"), NOW) == "17"
    assert resolve(read_operand("plain"), NOW) == "plain"


def test_every_function_is_tested() -> None:
    assert {call.partition("(")[0] for call, _ in FUNCTION_RESULTS} == set(FUNCTIONS) - {"getUserID"}


REFUSED_FUNCTIONS = [
    "javascript:",
    "javascript:alert(1)",
    "javascript:gs",
    "javascript:gs.",
    "javascript:gs.getUserID",
    "javascript:gs.getUserID();",
    "javascript:gs.getUserID(1)",
    "javascript:gs.getUserName()",
    "javascript:gs.getuserid()",
    "javascript:gs.daysAgo()",
    "javascript:gs.daysAgo(x)",
    "javascript:gs.daysAgo(1.5)",
    "javascript:gs.daysAgo(--1)",
    "javascript:gs.daysAgo(+1)",
    "javascript:gs.daysAgo(1,2)",
    "javascript:gs.daysAgo(٣)",
    "javascript:gs.daysAgo(365001)",
    "javascript:gs.daysAgo(9999999999)",
    "javascript:gs.__class__()",
    "javascript:gs.now()\n",
    "javascript:gs.now() ",
    "javascript: gs.now()",
    " javascript:gs.now()",
    "\tjavascript:alert(1)",
    "JavaScript:gs.now()",
    "javascript:getMyGroups()",
]


# B45
@pytest.mark.parametrize("value", REFUSED_FUNCTIONS)
@pytest.mark.parametrize(
    "query", ["a={{{}}}", "a!={{{}}}", "aLIKE{{{}}}", "a>{{{}}}", "aBETWEEN{{1@{}}}", "(a={{{}}})"]
)
def test_other_javascript_is_refused_for_every_operator(query: str, value: str) -> None:
    with pytest.raises(QueryError):
        parse(query.format(value))


# B45
@pytest.mark.parametrize("value", ["javascript:alert(1)", "javascript:gs.now(1)", "javascript:"])
@pytest.mark.parametrize("query", ["aIN1,{}", "aHAS{},1", "aON{}", "aONx@2024-01-01@{}", "sys_idARE{}", "aDYNAMIC{}"])
def test_other_javascript_is_refused_in_a_list_of_values(query: str, value: str) -> None:
    with pytest.raises(QueryError):
        parse(query.format(value))


def test_text_that_contains_javascript_is_not_a_function() -> None:
    (condition,) = parse("nameLIKEnot javascript:x()").conditions()
    assert read_value(condition) == "not javascript:x()"

"""Operator values are parsed into typed values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from system.encoded_query import (
    METADATA,
    OPERATORS,
    Condition,
    ConditionValue,
    Distance,
    Moment,
    Period,
    QueryError,
    Range,
    RelativeTime,
    Unit,
    ValueFunction,
    ValueKind,
    end_of,
    parse,
    read_instant,
    read_value,
    shift,
    start_of,
)

NOW = Moment(datetime(2024, 5, 19, 15, 30, 45, 123, tzinfo=UTC), "17")  # a Sunday

VALUE_EXAMPLES: list[tuple[str, ConditionValue]] = [
    ("aISEMPTY", None),
    ("a=open", "open"),
    ("a=javascript:gs.getUserID()", ValueFunction("getUserID")),
    ("aLIKE%_", "%_"),
    ("aIN1", ("1",)),
    ("aIN1, 2,javascript:gs.now()", ("1", " 2", ValueFunction("now"))),
    ("aHAS{1,2}", ("1", "2")),
    ("aBETWEEN1@5", Range("1", "5")),
    (
        "aBETWEENjavascript:gs.daysAgo(7)@javascript:gs.now()",
        Range(ValueFunction("daysAgo", 7), ValueFunction("now")),
    ),
    ("aSAMEASb.c", ("b", "c")),
    ("aON2024-05-19", Period("2024-05-19")),
    ("aNOTONMay!@2024-05-01@2024-05-31 12:00:00", Period("2024-05-01", "2024-05-31 12:00:00")),
    ("aON@2024-05-01@2024-05-31", Period("2024-05-01", "2024-05-31")),
    (
        "aONToday@javascript:gs.daysAgoStart(0)@javascript:gs.daysAgoEnd(0)",
        Period(ValueFunction("daysAgoStart"), ValueFunction("daysAgoEnd")),
    ),
    ("aYEAR_IS2024", 2024),
    ("aMONTH_IS05", 5),
    ("aHOUR_IS0", 0),
    ("aRELATIVEGT@minute@ago@15", RelativeTime(Unit.MINUTE, -15)),
    ("aRELATIVELE@quarter@ahead@0", RelativeTime(Unit.QUARTER, 0)),
    ("aMORETHANb.c@week@before@2", Distance(("b", "c"), Unit.WEEK, True, 2)),
    ("aLESSTHANb@year@after@1", Distance(("b",), Unit.YEAR, False, 1)),
    ("aDYNAMICmy_roles", "my_roles"),
    ("sys_idAREon  fire on", ("on", "fire")),
    ("sys_idINSTANCEOFtask", "task"),
]


@pytest.mark.parametrize(("text", "value"), VALUE_EXAMPLES)
def test_value_is_read_as_the_kind_of_its_operator(text: str, value: ConditionValue) -> None:
    (condition,) = parse(text).conditions()
    assert read_value(condition) == value


def test_every_kind_of_value_is_tested() -> None:
    covered_kinds = {next(parse(text).conditions()).row.kind for text, _ in VALUE_EXAMPLES}
    assert covered_kinds == set(ValueKind)


def test_path_values_use_the_dialect_of_the_query() -> None:
    (condition,) = parse("aSAMEAS{{docID}}.b}", METADATA).conditions()
    assert read_value(condition, METADATA) == ("docID", "b")
    with pytest.raises(QueryError):
        read_value(condition)


def test_tree_built_in_code_is_validated_like_text() -> None:
    for condition in (Condition(("a",), "ISEMPTY", "x"), Condition(("a",), "="), Condition(("a",), "IN", ",")):
        with pytest.raises(QueryError):
            read_value(condition)


INSTANT_EXAMPLES = [
    ("2024-05-19", datetime(2024, 5, 19, tzinfo=UTC)),
    ("2024-05-19 15:30", datetime(2024, 5, 19, 15, 30, tzinfo=UTC)),
    ("2024-05-19 15:30:45", datetime(2024, 5, 19, 15, 30, 45, tzinfo=UTC)),
    ("2024-05-19T15:30:45.5Z", datetime(2024, 5, 19, 15, 30, 45, 500_000, tzinfo=UTC)),
    ("2024-05-19T01:00:00+03:00", datetime(2024, 5, 18, 22, tzinfo=UTC)),
    ("2024-05-19T01:00:00-0330", datetime(2024, 5, 19, 4, 30, tzinfo=UTC)),
]


@pytest.mark.parametrize(("text", "instant"), INSTANT_EXAMPLES)
def test_instant_without_offset_is_utc(text: str, instant: datetime) -> None:
    assert read_instant(text) == instant
    assert read_instant(text).tzinfo is UTC
    assert read_instant(instant) is instant


INVALID_INSTANTS = ["", "2024", "20240519", "2024-W20-7", "2024-02-30", "2024-05-19 25:00:00", "2024-05-19 15", "today"]
INVALID_INSTANTS += [
    "2024-05-19 15:30:00 ",
    "19.05.2024",
    "٢٠٢٤-05-19",
    "0001-01-01T00:00+03:00",
    "9999-12-31T23:00-03:00",
]


@pytest.mark.parametrize("text", INVALID_INSTANTS)
def test_invalid_instant_is_refused(text: str) -> None:
    with pytest.raises(QueryError) as exc_info:
        read_instant(text, 7)
    assert exc_info.value.position == 7


def instant_of(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


PERIOD_BOUNDS = [
    ("2024-02-29", "2024-02-29 00:00:00", "2024-02-29 23:59:59.999999"),
    ("2024-02-29 15:00:00", "2024-02-29 00:00:00", "2024-02-29 23:59:59.999999"),
    ("javascript:gs.daysAgo(1)", "2024-05-18 00:00:00", "2024-05-18 23:59:59.999999"),
    ("9999-12-31", "9999-12-31 00:00:00", "9999-12-31 23:59:59.999999"),
    ("May@2024-05-01@2024-05-31", "2024-05-01 00:00:00", "2024-05-31 23:59:59.999999"),
    ("x@2024-05-01 08:00:00@2024-05-31 12:00:00", "2024-05-01 08:00:00", "2024-05-31 12:00:00.999999"),
    ("x@javascript:gs.hoursAgo(1)@javascript:gs.now()", "2024-05-19 14:30:45", "2024-05-19 15:30:45.999999"),
]


@pytest.mark.parametrize(("text", "first_instant", "last_instant"), PERIOD_BOUNDS)
def test_day_or_period_has_a_first_and_a_last_instant(text: str, first_instant: str, last_instant: str) -> None:
    value = read_value(Condition(("a",), "ON", text))
    assert isinstance(value, Period)
    assert value.bounds(NOW) == (instant_of(first_instant), instant_of(last_instant))


def test_relative_value_has_an_instant_and_the_bounds_of_its_unit() -> None:
    relative_value = RelativeTime(Unit.MONTH, -3)
    assert relative_value.instant(NOW) == instant_of("2024-02-19 15:30:45.000123")
    assert relative_value.bounds(NOW) == (instant_of("2024-02-01 00:00:00"), instant_of("2024-02-29 23:59:59.999999"))


# minute, hour, day, week, month, quarter, year of Sunday 2024-05-19 15:30:45.000123
UNIT_BOUNDS = [
    (Unit.MINUTE, "2024-05-19 15:30:00", "2024-05-19 15:30:59.999999"),
    (Unit.HOUR, "2024-05-19 15:00:00", "2024-05-19 15:59:59.999999"),
    (Unit.DAY, "2024-05-19 00:00:00", "2024-05-19 23:59:59.999999"),
    (Unit.WEEK, "2024-05-13 00:00:00", "2024-05-19 23:59:59.999999"),
    (Unit.MONTH, "2024-05-01 00:00:00", "2024-05-31 23:59:59.999999"),
    (Unit.QUARTER, "2024-04-01 00:00:00", "2024-06-30 23:59:59.999999"),
    (Unit.YEAR, "2024-01-01 00:00:00", "2024-12-31 23:59:59.999999"),
]


@pytest.mark.parametrize(("unit", "first_instant", "last_instant"), UNIT_BOUNDS)
def test_unit_of_time_has_start_and_end(unit: Unit, first_instant: str, last_instant: str) -> None:
    assert (start_of(NOW.now, unit), end_of(NOW.now, unit)) == (instant_of(first_instant), instant_of(last_instant))
    assert start_of(end_of(NOW.now, unit) + timedelta.resolution, unit) == shift(instant_of(first_instant), unit, 1)


MONTH_SHIFTS = [
    ("2024-03-31", Unit.MONTH, -1, "2024-02-29"),
    ("2024-02-29", Unit.YEAR, -1, "2023-02-28"),
    ("2024-01-31", Unit.QUARTER, 1, "2024-04-30"),
    ("2024-01-15", Unit.MONTH, -1, "2023-12-15"),
    ("2023-12-15", Unit.MONTH, 1, "2024-01-15"),
    ("2024-02-28", Unit.DAY, 2, "2024-03-01"),
    ("2024-02-28", Unit.WEEK, -1, "2024-02-21"),
    ("2024-02-28", Unit.HOUR, 24, "2024-02-29"),
    ("2024-02-28", Unit.MINUTE, -1440, "2024-02-27"),
]


@pytest.mark.parametrize(("start", "unit", "count", "shifted"), MONTH_SHIFTS)
def test_missing_day_becomes_the_last_day_of_the_month(start: str, unit: Unit, count: int, shifted: str) -> None:
    assert shift(instant_of(start), unit, count) == instant_of(shifted)


@pytest.mark.parametrize("unit", list(Unit))
def test_relative_values_are_limited_to_a_thousand_years(unit: Unit) -> None:
    max_count = {"minute": 525_600_000, "hour": 8_760_000, "day": 365_000, "week": 52_142}.get(unit)
    max_count = max_count or {"month": 12_000, "quarter": 4_000, "year": 1_000}[unit]
    for text in (f"aRELATIVEGT@{unit}@ago@{{}}", f"aMORETHANb@{unit}@after@{{}}"):
        parse(text.format(max_count))
        with pytest.raises(QueryError, match="a time span cannot exceed 1,000 years"):
            parse(text.format(max_count + 1))


def test_instant_is_written_in_utc() -> None:
    local_time = datetime(2024, 5, 19, 1, tzinfo=timezone(timedelta(hours=3)))
    assert Moment(local_time, "17").now.isoformat() == "2024-05-18T22:00:00+00:00"
    with pytest.raises(ValueError, match="time zone"):
        Moment(local_time.replace(tzinfo=None), "17")


def test_date_part_numbers_are_bounded() -> None:
    for operator in OPERATORS.values():
        for number in operator.numbers:
            assert read_value(Condition(("a",), operator.name, str(number))) == number
        for number in {operator.numbers.start - 1, operator.numbers.stop} if operator.numbers else ():
            with pytest.raises(QueryError):
                read_value(Condition(("a",), operator.name, str(number)))

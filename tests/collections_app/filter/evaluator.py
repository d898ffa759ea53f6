"""Evaluates filters in plain Python; the tests compare the results with those of the SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from dateutil.relativedelta import relativedelta  # type: ignore[import-untyped]

from system.encoded_query import (
    METADATA,
    OPERATORS,
    Condition,
    Moment,
    Path,
    SubQuery,
    read_instant,
    read_value,
    resolve,
)

NOW = datetime(2024, 5, 19, 15, 30, tzinfo=UTC)
MOMENT = Moment(NOW, "u1")
FIELD_KINDS = {
    "sys_id": "text",
    "status": "text",
    "type": "text",
    "priority": "number",
    "flag": "truth",
    "created": "time",
}
ONE_SECOND = timedelta(seconds=1)
NUMBER_PATTERN = re.compile(r"-?[0-9]+(\.[0-9]+)?")
TIME_PATTERN = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)
NEGATIONS = {"!=", "NOT IN", "NOTLIKE", "ISEMPTY", "NOTHING", "NSAMEAS", "NOTON", "HASNOT"}


def filter_holds(groups: Any, metadata: dict[str, Any]) -> bool:
    return any(
        all(any(_factor_holds(factor, metadata) for factor in term.factors) for term in group.terms) for group in groups
    )


def _factor_holds(factor: Condition | SubQuery, metadata: dict[str, Any]) -> bool:
    return filter_holds(factor.groups, metadata) if isinstance(factor, SubQuery) else condition_holds(factor, metadata)


def condition_holds(condition: Condition, metadata: dict[str, Any]) -> bool:
    operator = condition.operator
    if operator in NEGATIONS:
        return not _holds_without_negation(str(OPERATORS[operator].complement), condition, metadata)
    return _holds_without_negation(operator, condition, metadata)


def values_at_path(metadata: Any, path: Path) -> list[Any]:
    """Returns the values at the path, including those in objects within arrays; an array yields its items."""
    values = [metadata]
    for name in path:
        values = [item[name] for item in _flattened_items(values) if isinstance(item, dict) and name in item]
    return _flattened_items(values)


def _flattened_items(values: list[Any]) -> list[Any]:
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


def field_values(metadata: Any, path: Path) -> list[Any]:
    return [value for value in values_at_path(metadata, path) if value is not None and value not in ("", {}, [])]


def kind_of(path: Path) -> str:
    return FIELD_KINDS.get(path[0], "any") if len(path) == 1 else "any"


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def exact_decimal(value: Any) -> Decimal:
    return Decimal(json.dumps(value)) if isinstance(value, int | float) else Decimal(value)


def as_number(value: Any) -> Decimal | None:
    if is_number(value):
        return exact_decimal(value)
    return Decimal(value) if isinstance(value, str) and NUMBER_PATTERN.fullmatch(value) else None


def as_time(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not TIME_PATTERN.fullmatch(value):
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def as_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_number(value):
        return format(exact_decimal(value), "f")
    return value if isinstance(value, str) else None


def to_second(value: datetime | None) -> datetime | None:
    return value.replace(microsecond=0) if value else None


def equals(value: Any, operand: Any, kind: str) -> bool:
    if kind == "time" or isinstance(operand, datetime):
        return to_second(as_time(value)) == to_second(read_instant(operand))
    if kind == "truth":
        return bool(value) == (operand.lower() in ("true", "1"))
    if isinstance(value, bool):
        return str(operand).lower() == as_text(value)
    if is_number(value):
        return bool(NUMBER_PATTERN.fullmatch(str(operand).lstrip("+"))) and exact_decimal(value) == Decimal(operand)
    return isinstance(value, str) and value.lower() == operand.lower()


def satisfies_order(value: Any, operator: str, operand: Any, kind: str) -> bool:
    if kind == "number":
        key: Any = as_number(value)
        bound: Any = Decimal(operand)
    elif kind == "time":
        key, bound = (to_second(as_time(value)), to_second(read_instant(operand)))
    else:
        key, bound = (value.lower() if isinstance(value, str) else None), operand.lower()
    if key is None:
        return False
    return bool({">": key > bound, "<": key < bound, ">=": key >= bound, "<=": key <= bound}[operator])


def common_kind(path: Path, *operands: Any) -> str:
    if kind_of(path) != "any":
        return kind_of(path)
    if all(isinstance(operand, str) and NUMBER_PATTERN.fullmatch(operand) for operand in operands):
        return "number"
    return "time" if all(as_time(operand) for operand in operands) else "text"


def same_value(value: Any, other_value: Any, is_time: bool) -> bool:
    if is_time:
        return as_time(value) is not None and to_second(as_time(value)) == to_second(as_time(other_value))

    def comparison_key(value: Any) -> str | None:
        if is_number(value):
            text = format(exact_decimal(value), "f")
            text = text.rstrip("0").rstrip(".") if "." in text else text
            return "0" if text == "-0" else text
        value_text = as_text(value)
        return value_text.lower() if value_text else None

    return comparison_key(value) is not None and comparison_key(value) == comparison_key(other_value)


def _holds_without_negation(operator: str, condition: Condition, metadata: dict[str, Any]) -> bool:
    values = field_values(metadata, condition.path)
    if operator == "ANYTHING":
        return True
    if operator == "ISNOTEMPTY":
        return bool(values)
    if operator == "EMPTYSTRING":
        return any(isinstance(value, str) and not value for value in values_at_path(metadata, condition.path))
    operand: Any = read_value(Condition(condition.path, operator, condition.value), METADATA)
    test = OPERATOR_TESTS[operator](condition.path, operand, metadata)
    return test if isinstance(test, bool) else any(test(value) for value in values)


OperatorTest = bool | Callable[[Any], bool]


def _one_of_test(path: Path, operands: Any, _: Any) -> OperatorTest:
    return lambda value: any(equals(value, resolve(operand, MOMENT), kind_of(path)) for operand in operands)


def _order_test(operator: str) -> Any:
    def build_test(path: Path, operand: Any, _: Any) -> OperatorTest:
        resolved_operand = resolve(operand, MOMENT)
        return lambda value: satisfies_order(value, operator, resolved_operand, common_kind(path, resolved_operand))

    return build_test


def _between_test(path: Path, bounds: Any, _: Any) -> OperatorTest:
    lower, upper = resolve(bounds.low, MOMENT), resolve(bounds.high, MOMENT)
    kind = common_kind(path, lower, upper)
    return lambda value: satisfies_order(value, ">=", lower, kind) and satisfies_order(value, "<=", upper, kind)


def _text_test(predicate: Callable[[str, str], bool]) -> Any:
    def build_test(path: Path, operand: Any, _: Any) -> OperatorTest:
        expected = str(resolve(operand, MOMENT)).lower()
        return lambda value: (text := as_text(value)) is not None and predicate(text.lower(), expected)

    return build_test


def _same_as_test(path: Path, other_path: Any, metadata: Any) -> OperatorTest:
    values, other_values = field_values(metadata, path), field_values(metadata, other_path)
    is_time = "time" in (kind_of(path), kind_of(other_path))
    return (not values and not other_values) or any(
        same_value(value, other_value, is_time) for value in values for other_value in other_values
    )


def _field_test(operator: str) -> Any:
    def build_test(path: Path, other_path: Any, metadata: Any) -> OperatorTest:
        return any(
            _compare_field_values(value, other_value, operator)
            for value in field_values(metadata, path)
            for other_value in field_values(metadata, other_path)
        )

    return build_test


def _compare_field_values(value: Any, other_value: Any, operator: str) -> bool:
    pairs: list[tuple[Any, Any]] = [
        (as_number(value), as_number(other_value)),
        (to_second(as_time(value)), to_second(as_time(other_value))),
    ]
    comparisons = [
        {">": a > b, "<": a < b, ">=": a >= b, "<=": a <= b}[operator]
        for a, b in pairs
        if a is not None and b is not None
    ]
    return any(comparisons)


def _within_test(path: Path, interval: Any, _: Any) -> OperatorTest:
    start, end = interval.bounds(MOMENT)
    return lambda value: (time := as_time(value)) is not None and start <= time <= end


def _date_part_test(read_part: Callable[[datetime], int]) -> Any:
    return lambda path, expected, _: lambda value: (time := as_time(value)) is not None and read_part(time) == expected


def _relative_test(operator: str) -> Any:
    def build_test(path: Path, relative_time: Any, _: Any) -> OperatorTest:
        bound = relative_time.instant(MOMENT)

        def value_matches(value: Any) -> bool:
            time = as_time(value)
            if time is None:
                return False
            return bool({">": time > bound, "<": time < bound, ">=": time >= bound, "<=": time <= bound}[operator])

        return value_matches

    return build_test


def _distance_test(is_greater: bool) -> Any:
    def build_test(path: Path, distance: Any, metadata: Any) -> OperatorTest:
        months_per_unit = {"month": 1, "quarter": 3, "year": 12}.get(distance.unit)
        duration = (
            relativedelta(months=months_per_unit * distance.count)
            if months_per_unit
            else timedelta(**{f"{distance.unit}s": distance.count})
        )
        for time in map(as_time, field_values(metadata, path)):
            for other_time in map(as_time, field_values(metadata, distance.path)):
                if time and other_time and _is_distant(time, other_time, duration, distance.is_before, is_greater):
                    return True
        return False

    return build_test


def _is_distant(time: datetime, other_time: datetime, duration: Any, is_before: bool, is_greater: bool) -> bool:
    if is_before:
        limit = other_time - duration
        return time < limit if is_greater else limit < time <= other_time
    limit = other_time + duration
    return time > limit if is_greater else other_time <= time < limit


OPERATOR_TESTS: dict[str, Any] = {
    "=": lambda path, operand, metadata: _one_of_test(path, (operand,), metadata),
    "IN": _one_of_test,
    "HAS": _one_of_test,
    ">": _order_test(">"),
    "<": _order_test("<"),
    ">=": _order_test(">="),
    "<=": _order_test("<="),
    "BETWEEN": _between_test,
    "LIKE": _text_test(lambda text, expected: expected in text),
    "STARTSWITH": _text_test(str.startswith),
    "ENDSWITH": _text_test(str.endswith),
    "SAMEAS": _same_as_test,
    "GT_FIELD": _field_test(">"),
    "LT_FIELD": _field_test("<"),
    "GT_OR_EQUALS_FIELD": _field_test(">="),
    "LT_OR_EQUALS_FIELD": _field_test("<="),
    "ON": _within_test,
    "RELATIVEEE": _within_test,
    "YEAR_IS": _date_part_test(lambda time: time.year),
    "QUARTER_IS": _date_part_test(lambda time: (time.month + 2) // 3),
    "MONTH_IS": _date_part_test(lambda time: time.month),
    "WEEK_IS": _date_part_test(lambda time: time.isocalendar()[1]),
    "DAY_IS": _date_part_test(lambda time: time.day),
    "DAY_OF_WEEK_IS": _date_part_test(lambda time: time.isoweekday()),
    "HOUR_IS": _date_part_test(lambda time: time.hour),
    "RELATIVEGT": _relative_test(">"),
    "RELATIVEGE": _relative_test(">="),
    "RELATIVELT": _relative_test("<"),
    "RELATIVELE": _relative_test("<="),
    "MORETHAN": _distance_test(True),
    "LESSTHAN": _distance_test(False),
}

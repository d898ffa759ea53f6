"""The meaning of a filter in plain Python, which the law tests compare with the SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from dateutil.relativedelta import relativedelta  # type: ignore[import-untyped]

from system.encoded_query import METADATA, OPERATORS, Condition, Moment, Path, SubQuery, read, read_instant, resolve

NOW = datetime(2024, 5, 19, 15, 30, tzinfo=UTC)
MOMENT = Moment(NOW, "u1")
TYPED = {"sys_id": "text", "status": "text", "type": "text", "priority": "number", "flag": "truth", "created": "time"}
SECOND = timedelta(seconds=1)
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)
NEGATIONS = {"!=", "NOT IN", "NOTLIKE", "ISEMPTY", "NOTHING", "NSAMEAS", "NOTON", "HASNOT"}


def holds(groups: Any, metadata: dict[str, Any]) -> bool:
    return any(
        all(any(_factor(factor, metadata) for factor in term.factors) for term in group.terms) for group in groups
    )


def _factor(factor: Condition | SubQuery, metadata: dict[str, Any]) -> bool:
    return holds(factor.groups, metadata) if isinstance(factor, SubQuery) else condition(factor, metadata)


def condition(given: Condition, metadata: dict[str, Any]) -> bool:
    name = given.operator
    if name in NEGATIONS:
        return not _positive(str(OPERATORS[name].complement), given, metadata)
    return _positive(name, given, metadata)


def raw(metadata: Any, path: Path) -> list[Any]:
    """What stands under the path: through objects and the objects of arrays, an array as its items."""
    result = [metadata]
    for name in path:
        result = [item[name] for item in _items(result) if isinstance(item, dict) and name in item]
    return _items(result)


def _items(found: list[Any]) -> list[Any]:
    return [item for value in found for item in (value if isinstance(value, list) else [value])]


def values(metadata: Any, path: Path) -> list[Any]:
    return [value for value in raw(metadata, path) if value is not None and value not in ("", {}, [])]


def kind(path: Path) -> str:
    return TYPED.get(path[0], "any") if len(path) == 1 else "any"


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def exact(value: Any) -> Decimal:
    return Decimal(json.dumps(value)) if isinstance(value, int | float) else Decimal(value)


def as_number(value: Any) -> Decimal | None:
    if is_number(value):
        return exact(value)
    return Decimal(value) if isinstance(value, str) and NUMBER.fullmatch(value) else None


def as_time(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not TIME.fullmatch(value):
        return None
    try:
        result = datetime.fromisoformat(value)
    except ValueError:
        return None
    return result.astimezone(UTC) if result.tzinfo else result.replace(tzinfo=UTC)


def as_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_number(value):
        return format(exact(value), "f")
    return value if isinstance(value, str) else None


def second(value: datetime | None) -> datetime | None:
    return value.replace(microsecond=0) if value else None


def equals(value: Any, operand: Any, kind: str) -> bool:
    if kind == "time" or isinstance(operand, datetime):
        return second(as_time(value)) == second(read_instant(operand))
    if kind == "truth":
        return bool(value) == (operand.lower() in ("true", "1"))
    if isinstance(value, bool):
        return str(operand).lower() == as_text(value)
    if is_number(value):
        return bool(NUMBER.fullmatch(str(operand).lstrip("+"))) and exact(value) == Decimal(operand)
    return isinstance(value, str) and value.lower() == operand.lower()


def compares(value: Any, operator: str, operand: Any, kind: str) -> bool:
    if kind == "number":
        one: Any = as_number(value)
        two: Any = Decimal(operand)
    elif kind == "time":
        one, two = second(as_time(value)), second(read_instant(operand))
    else:
        one, two = (value.lower() if isinstance(value, str) else None), operand.lower()
    if one is None:
        return False
    return bool({">": one > two, "<": one < two, ">=": one >= two, "<=": one <= two}[operator])


def common(path: Path, *operands: Any) -> str:
    if kind(path) != "any":
        return kind(path)
    if all(isinstance(operand, str) and NUMBER.fullmatch(operand) for operand in operands):
        return "number"
    return "time" if all(as_time(operand) for operand in operands) else "text"


def same(one: Any, two: Any, is_time: bool) -> bool:
    if is_time:
        return as_time(one) is not None and second(as_time(one)) == second(as_time(two))

    def key(value: Any) -> str | None:
        if is_number(value):
            text = format(exact(value), "f")
            text = text.rstrip("0").rstrip(".") if "." in text else text
            return "0" if text == "-0" else text
        result = as_text(value)
        return result.lower() if result else None

    return key(one) is not None and key(one) == key(two)


def _positive(name: str, given: Condition, metadata: dict[str, Any]) -> bool:
    result = values(metadata, given.path)
    if name == "ANYTHING":
        return True
    if name == "ISNOTEMPTY":
        return bool(result)
    if name == "EMPTYSTRING":
        return any(isinstance(value, str) and not value for value in raw(metadata, given.path))
    value: Any = read(Condition(given.path, name, given.value), METADATA)
    test = TESTS[name](given.path, value, metadata)
    return test if isinstance(test, bool) else any(test(value) for value in result)


Test = bool | Callable[[Any], bool]


def _one_of(path: Path, operands: Any, _: Any) -> Test:
    return lambda value: any(equals(value, resolve(operand, MOMENT), kind(path)) for operand in operands)


def _ordered(operator: str) -> Any:
    def test(path: Path, operand: Any, _: Any) -> Test:
        result = resolve(operand, MOMENT)
        return lambda value: compares(value, operator, result, common(path, result))

    return test


def _between(path: Path, found: Any, _: Any) -> Test:
    low, high = resolve(found.low, MOMENT), resolve(found.high, MOMENT)
    how = common(path, low, high)
    return lambda value: compares(value, ">=", low, how) and compares(value, "<=", high, how)


def _text(test: Callable[[str, str], bool]) -> Any:
    def row(path: Path, operand: Any, _: Any) -> Test:
        expected = str(resolve(operand, MOMENT)).lower()
        return lambda value: (text := as_text(value)) is not None and test(text.lower(), expected)

    return row


def _same_as(path: Path, other: Any, metadata: Any) -> Test:
    mine, theirs = values(metadata, path), values(metadata, other)
    is_time = "time" in (kind(path), kind(other))
    return (not mine and not theirs) or any(same(one, two, is_time) for one in mine for two in theirs)


def _fields(operator: str) -> Any:
    def test(path: Path, other: Any, metadata: Any) -> Test:
        return any(
            _compared_pair(one, two, operator) for one in values(metadata, path) for two in values(metadata, other)
        )

    return test


def _compared_pair(one: Any, two: Any, operator: str) -> bool:
    pairs: list[tuple[Any, Any]] = [(as_number(one), as_number(two)), (second(as_time(one)), second(as_time(two)))]
    compared = [
        {">": a > b, "<": a < b, ">=": a >= b, "<=": a <= b}[operator]
        for a, b in pairs
        if a is not None and b is not None
    ]
    return any(compared)


def _within(path: Path, found: Any, _: Any) -> Test:
    first, last = found.bounds(MOMENT)
    return lambda value: (time := as_time(value)) is not None and first <= time <= last


def _part(of: Callable[[datetime], int]) -> Any:
    return lambda path, wanted, _: lambda value: (time := as_time(value)) is not None and of(time) == wanted


def _relative(operator: str) -> Any:
    def test(path: Path, found: Any, _: Any) -> Test:
        edge = found.instant(MOMENT)

        def one(value: Any) -> bool:
            time = as_time(value)
            if time is None:
                return False
            return bool({">": time > edge, "<": time < edge, ">=": time >= edge, "<=": time <= edge}[operator])

        return one

    return test


def _distance(is_more: bool) -> Any:
    def test(path: Path, found: Any, metadata: Any) -> Test:
        months = {"month": 1, "quarter": 3, "year": 12}.get(found.unit)
        length = relativedelta(months=months * found.count) if months else timedelta(**{f"{found.unit}s": found.count})
        for one in map(as_time, values(metadata, path)):
            for two in map(as_time, values(metadata, found.path)):
                if one and two and _is_distant(one, two, length, found.is_before, is_more):
                    return True
        return False

    return test


def _is_distant(one: datetime, two: datetime, length: Any, is_before: bool, is_more: bool) -> bool:
    if is_before:
        far = two - length
        return one < far if is_more else far < one <= two
    far = two + length
    return one > far if is_more else two <= one < far


TESTS: dict[str, Any] = {
    "=": lambda path, operand, metadata: _one_of(path, (operand,), metadata),
    "IN": _one_of,
    "HAS": _one_of,
    ">": _ordered(">"),
    "<": _ordered("<"),
    ">=": _ordered(">="),
    "<=": _ordered("<="),
    "BETWEEN": _between,
    "LIKE": _text(lambda text, wanted: wanted in text),
    "STARTSWITH": _text(str.startswith),
    "ENDSWITH": _text(str.endswith),
    "SAMEAS": _same_as,
    "GT_FIELD": _fields(">"),
    "LT_FIELD": _fields("<"),
    "GT_OR_EQUALS_FIELD": _fields(">="),
    "LT_OR_EQUALS_FIELD": _fields("<="),
    "ON": _within,
    "RELATIVEEE": _within,
    "YEAR_IS": _part(lambda time: time.year),
    "QUARTER_IS": _part(lambda time: (time.month + 2) // 3),
    "MONTH_IS": _part(lambda time: time.month),
    "WEEK_IS": _part(lambda time: time.isocalendar()[1]),
    "DAY_IS": _part(lambda time: time.day),
    "DAY_OF_WEEK_IS": _part(lambda time: time.isoweekday()),
    "HOUR_IS": _part(lambda time: time.hour),
    "RELATIVEGT": _relative(">"),
    "RELATIVEGE": _relative(">="),
    "RELATIVELT": _relative("<"),
    "RELATIVELE": _relative("<="),
    "MORETHAN": _distance(True),
    "LESSTHAN": _distance(False),
}

"""The meaning of each operator: a function that returns the test of one column's value (and another column's)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from system.encoded_query import Condition, Distance, Period, Range, RelativeTime, read, shift
from tableapi.catalogue.definitions import Column

from .literals import comparable_value, comparison_value, exact_value, family_of, literal
from .world import QueryRefused, Question, is_empty, shown_value

# The value of the column, and of the other column where the operator names one; else None.
ValueTest = Callable[[Any, Any], bool]

NEGATED_OPERATORS = {
    "!=": "=",
    "NOT IN": "IN",
    "NOTLIKE": "LIKE",
    "ISNOTEMPTY": "ISEMPTY",
    "NOTHING": "ANYTHING",
    "NSAMEAS": "SAMEAS",
    "NOTON": "ON",
    "ISNOT_DYNAMIC": "DYNAMIC",
    "HASNOT": "HAS",
    "DOESNOTCONTAIN_DYNAMIC": "CONTAINS_DYNAMIC",
}


@dataclass(frozen=True)
class OperatorUse:
    """One operator on one column."""

    question: Question
    condition: Condition
    column: Column
    other: Column | None = None

    @property
    def value(self) -> Any:
        return read(self.condition)

    def literal(self, operand: Any) -> Any:
        return literal(operand, self.column, self.question.moment)

    @property
    def other_column(self) -> Column:
        assert self.other is not None
        return self.other


def test_of(use: OperatorUse) -> ValueTest:
    """The test that the condition puts to a record; Refused when it cannot be put to such a column at all."""
    name = use.condition.operator
    # "password, secret none" and every other combination that is not in the table is a bad query.
    if not use.condition.row.fits(use.column.compare_as, use.condition.path):
        raise QueryRefused
    if name not in NEGATED_OPERATORS:
        return OPERATOR_TESTS[name](use)
    positive = OPERATOR_TESTS[NEGATED_OPERATORS[name]](use)
    return lambda value, other_value: not positive(value, other_value)


def value_test(
    use: OperatorUse, holds: Callable[[Any], bool], form: Callable[[Any, Column], Any] = comparable_value
) -> ValueTest:
    """False for an empty column, else what `holds` says of the value in that form."""

    def test(value: Any, _: Any) -> bool:
        result = form(value, use.column)
        return result is not None and holds(result)

    return test


def comparison_test(compare: Callable[[Any, Any], bool]) -> Callable[[OperatorUse], ValueTest]:
    def build(use: OperatorUse) -> ValueTest:
        expected = use.literal(use.value)
        return value_test(use, lambda value: compare(value, expected))

    return build


def text_test(holds: Callable[[str, str], bool]) -> Callable[[OperatorUse], ValueTest]:
    """LIKE and its siblings ignore case, in a choice or sys_id too, and no character is special."""

    def build(use: OperatorUse) -> ValueTest:
        expected = use.literal(use.value).lower()
        return value_test(use, lambda value: holds(value.lower(), expected))

    return build


def membership_test(use: OperatorUse) -> ValueTest:
    result = [use.literal(operand) for operand in use.value]
    return value_test(use, lambda value: value in result)


def between_test(use: OperatorUse) -> ValueTest:
    assert isinstance(use.value, Range)
    lower, upper = use.literal(use.value.low), use.literal(use.value.high)
    return value_test(use, lambda value: lower <= value <= upper)


def same_as_test(use: OperatorUse) -> ValueTest:
    if family_of(use.column) == "json" or family_of(use.column) != family_of(use.other_column):
        raise QueryRefused

    def test(value: Any, other: Any) -> bool:
        # An empty value beside another is None, so both empty are the same, and one empty is not.
        return bool(comparison_value(value, use.column) == comparison_value(other, use.other_column))

    return test


def column_order_test(compare: Callable[[Any, Any], bool]) -> Callable[[OperatorUse], ValueTest]:
    def build(use: OperatorUse) -> ValueTest:
        if family_of(use.column) != family_of(use.other_column):
            raise QueryRefused

        def test(value: Any, other: Any) -> bool:
            comparable, other_comparable = (
                comparison_value(value, use.column),
                comparison_value(other, use.other_column),
            )
            return comparable is not None and other_comparable is not None and compare(comparable, other_comparable)

        return test

    return build


def period_test(use: OperatorUse) -> ValueTest:
    assert isinstance(use.value, Period)
    start, end = use.value.bounds(use.question.moment)
    return value_test(use, lambda value: start <= value <= end, exact_value)


def date_part_test(part: Callable[[Any], int]) -> Callable[[OperatorUse], ValueTest]:
    return lambda use: value_test(use, lambda value: part(value) == use.value, exact_value)


def relative_test(compare: Callable[[Any, Any], bool]) -> Callable[[OperatorUse], ValueTest]:
    def build(use: OperatorUse) -> ValueTest:
        assert isinstance(use.value, RelativeTime)
        edge = use.value.instant(use.question.moment)
        return value_test(use, lambda value: compare(value, edge), exact_value)

    return build


def same_period_test(use: OperatorUse) -> ValueTest:
    assert isinstance(use.value, RelativeTime)
    start, end = use.value.bounds(use.question.moment)
    return value_test(use, lambda value: start <= value <= end, exact_value)


def distance_test(is_greater: bool) -> Callable[[OperatorUse], ValueTest]:
    """MORETHAN lies beyond the shifted column, LESSTHAN between the column itself and the shifted one."""

    def build(use: OperatorUse) -> ValueTest:
        request = use.value
        assert isinstance(request, Distance)
        if family_of(use.other_column) != "time":
            raise QueryRefused

        def test(value: Any, other: Any) -> bool:
            instant, start = exact_value(value, use.column), exact_value(other, use.other_column)
            if instant is None or start is None:
                return False
            end = shift(start, request.unit, -request.count if request.is_before else request.count)
            if request.is_before:
                return bool(instant < end) if is_greater else bool(end < instant <= start)
            return bool(instant > end) if is_greater else bool(start <= instant < end)

        return test

    return build


def name_test(use: OperatorUse) -> ValueTest:
    ids = use.question.caller.has_name(use.value)
    return value_test(use, lambda value: value in ids)


def list_test(use: OperatorUse) -> ValueTest:
    ids = [use.literal(operand)[0] for operand in use.value]
    return value_test(use, lambda value: any(sys_id in value for sys_id in ids))


def list_name_test(use: OperatorUse) -> ValueTest:
    ids = use.question.caller.has_name(use.value)
    return value_test(use, lambda value: any(sys_id in value for sys_id in ids))


OPERATOR_TESTS: dict[str, Callable[[OperatorUse], ValueTest]] = {
    "=": comparison_test(operator.eq),
    ">": comparison_test(operator.gt),
    "<": comparison_test(operator.lt),
    ">=": comparison_test(operator.ge),
    "<=": comparison_test(operator.le),
    "IN": membership_test,
    "LIKE": text_test(lambda text, part: part in text),
    "STARTSWITH": text_test(str.startswith),
    "ENDSWITH": text_test(str.endswith),
    "ISEMPTY": lambda use: lambda value, _: is_empty(shown_value(value, use.column), use.column),
    "EMPTYSTRING": lambda use: lambda value, _: shown_value(value, use.column) == "",
    "ANYTHING": lambda use: lambda value, _: True,
    "BETWEEN": between_test,
    "SAMEAS": same_as_test,
    "GT_FIELD": column_order_test(operator.gt),
    "LT_FIELD": column_order_test(operator.lt),
    "GT_OR_EQUALS_FIELD": column_order_test(operator.ge),
    "LT_OR_EQUALS_FIELD": column_order_test(operator.le),
    "ON": period_test,
    "YEAR_IS": date_part_test(lambda instant: instant.year),
    "QUARTER_IS": date_part_test(lambda instant: (instant.month + 2) // 3),
    "MONTH_IS": date_part_test(lambda instant: instant.month),
    "WEEK_IS": date_part_test(lambda instant: instant.isocalendar().week),
    "DAY_IS": date_part_test(lambda instant: instant.day),
    "DAY_OF_WEEK_IS": date_part_test(lambda instant: instant.isoweekday()),
    "HOUR_IS": date_part_test(lambda instant: instant.hour),
    "RELATIVEGT": relative_test(operator.gt),
    "RELATIVEGE": relative_test(operator.ge),
    "RELATIVELT": relative_test(operator.lt),
    "RELATIVELE": relative_test(operator.le),
    "RELATIVEEE": same_period_test,
    "MORETHAN": distance_test(is_greater=True),
    "LESSTHAN": distance_test(is_greater=False),
    "DYNAMIC": name_test,
    "HAS": list_test,
    "CONTAINS_DYNAMIC": list_name_test,
}

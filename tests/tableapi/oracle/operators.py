"""The meaning of each operator: a function that returns the test of one column's value (and another column's)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from system.encoded_query import Condition, Distance, Period, Range, RelativeTime, read_value, shift
from tableapi.catalogue.definitions import Column

from .literals import column_comparison_value, comparable_value, exact_value, family_of, literal
from .world import EvaluationContext, QueryRefused, is_empty, shown_value

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

    context: EvaluationContext
    condition: Condition
    column: Column
    other: Column | None = None

    @property
    def value(self) -> Any:
        return read_value(self.condition)

    def literal(self, operand: Any) -> Any:
        return literal(operand, self.column, self.context.moment)

    @property
    def other_column(self) -> Column:
        assert self.other is not None
        return self.other


def build_test(operator_use: OperatorUse) -> ValueTest:
    """The test of a condition; raises `QueryRefused` if the operator does not fit the column."""
    name = operator_use.condition.operator
    # "password, secret none" and every other combination that is not in the table is an invalid query.
    if not operator_use.condition.row.fits(operator_use.column.compare_as, operator_use.condition.path):
        raise QueryRefused
    if name not in NEGATED_OPERATORS:
        return OPERATOR_TESTS[name](operator_use)
    positive_test = OPERATOR_TESTS[NEGATED_OPERATORS[name]](operator_use)
    return lambda value, other_value: not positive_test(value, other_value)


def value_test(
    operator_use: OperatorUse, holds: Callable[[Any], bool], convert: Callable[[Any, Column], Any] = comparable_value
) -> ValueTest:
    """False for an empty value, otherwise the result of `holds` for the converted value."""

    def test(value: Any, _: Any) -> bool:
        comparison_value = convert(value, operator_use.column)
        return comparison_value is not None and holds(comparison_value)

    return test


def comparison_test(compare: Callable[[Any, Any], bool]) -> Callable[[OperatorUse], ValueTest]:
    def build(operator_use: OperatorUse) -> ValueTest:
        expected = operator_use.literal(operator_use.value)
        return value_test(operator_use, lambda value: compare(value, expected))

    return build


def text_test(holds: Callable[[str, str], bool]) -> Callable[[OperatorUse], ValueTest]:
    """LIKE and its siblings ignore case, in a choice or sys_id too, and no character is special."""

    def build(operator_use: OperatorUse) -> ValueTest:
        expected = operator_use.literal(operator_use.value).lower()
        return value_test(operator_use, lambda value: holds(value.lower(), expected))

    return build


def membership_test(operator_use: OperatorUse) -> ValueTest:
    members = [operator_use.literal(operand) for operand in operator_use.value]
    return value_test(operator_use, lambda value: value in members)


def between_test(operator_use: OperatorUse) -> ValueTest:
    assert isinstance(operator_use.value, Range)
    lower, upper = operator_use.literal(operator_use.value.low), operator_use.literal(operator_use.value.high)
    return value_test(operator_use, lambda value: lower <= value <= upper)


def same_as_test(operator_use: OperatorUse) -> ValueTest:
    if family_of(operator_use.column) == "json" or family_of(operator_use.column) != family_of(
        operator_use.other_column
    ):
        raise QueryRefused

    def test(value: Any, other: Any) -> bool:
        # Empty values are None, so two empty values are the same.
        return bool(
            column_comparison_value(value, operator_use.column)
            == column_comparison_value(other, operator_use.other_column)
        )

    return test


def column_order_test(compare: Callable[[Any, Any], bool]) -> Callable[[OperatorUse], ValueTest]:
    def build(operator_use: OperatorUse) -> ValueTest:
        if family_of(operator_use.column) != family_of(operator_use.other_column):
            raise QueryRefused

        def test(value: Any, other: Any) -> bool:
            own_value, other_value = (
                column_comparison_value(value, operator_use.column),
                column_comparison_value(other, operator_use.other_column),
            )
            return own_value is not None and other_value is not None and compare(own_value, other_value)

        return test

    return build


def period_test(operator_use: OperatorUse) -> ValueTest:
    assert isinstance(operator_use.value, Period)
    start, end = operator_use.value.bounds(operator_use.context.moment)
    return value_test(operator_use, lambda value: start <= value <= end, exact_value)


def date_part_test(part: Callable[[Any], int]) -> Callable[[OperatorUse], ValueTest]:
    return lambda operator_use: value_test(operator_use, lambda value: part(value) == operator_use.value, exact_value)


def relative_test(compare: Callable[[Any, Any], bool]) -> Callable[[OperatorUse], ValueTest]:
    def build(operator_use: OperatorUse) -> ValueTest:
        assert isinstance(operator_use.value, RelativeTime)
        boundary = operator_use.value.instant(operator_use.context.moment)
        return value_test(operator_use, lambda value: compare(value, boundary), exact_value)

    return build


def same_period_test(operator_use: OperatorUse) -> ValueTest:
    assert isinstance(operator_use.value, RelativeTime)
    start, end = operator_use.value.bounds(operator_use.context.moment)
    return value_test(operator_use, lambda value: start <= value <= end, exact_value)


def distance_test(is_greater: bool) -> Callable[[OperatorUse], ValueTest]:
    """MORETHAN lies beyond the shifted column, LESSTHAN between the column itself and the shifted one."""

    def build(operator_use: OperatorUse) -> ValueTest:
        distance = operator_use.value
        assert isinstance(distance, Distance)
        if family_of(operator_use.other_column) != "time":
            raise QueryRefused

        def test(value: Any, other: Any) -> bool:
            instant, start = exact_value(value, operator_use.column), exact_value(other, operator_use.other_column)
            if instant is None or start is None:
                return False
            end = shift(start, distance.unit, -distance.count if distance.is_before else distance.count)
            if distance.is_before:
                return bool(instant < end) if is_greater else bool(end < instant <= start)
            return bool(instant > end) if is_greater else bool(start <= instant < end)

        return test

    return build


def name_test(operator_use: OperatorUse) -> ValueTest:
    ids = operator_use.context.caller.ids_of_name(operator_use.value)
    return value_test(operator_use, lambda value: value in ids)


def list_test(operator_use: OperatorUse) -> ValueTest:
    ids = [operator_use.literal(operand)[0] for operand in operator_use.value]
    return value_test(operator_use, lambda value: any(sys_id in value for sys_id in ids))


def list_name_test(operator_use: OperatorUse) -> ValueTest:
    ids = operator_use.context.caller.ids_of_name(operator_use.value)
    return value_test(operator_use, lambda value: any(sys_id in value for sys_id in ids))


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
    "ISEMPTY": lambda operator_use: (
        lambda value, _: is_empty(shown_value(value, operator_use.column), operator_use.column)
    ),
    "EMPTYSTRING": lambda operator_use: lambda value, _: shown_value(value, operator_use.column) == "",
    "ANYTHING": lambda operator_use: lambda value, _: True,
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

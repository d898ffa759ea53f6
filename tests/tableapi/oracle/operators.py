"""The meaning of each operator: a function that returns a predicate for the value of a column."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from system.encoded_query import Condition, Distance, Period, Range, RelativeTime, read_value, shift
from tableapi.catalogue.definitions import Column

from .literals import column_comparison_value, comparable_value, exact_value, family_of, literal
from .world import EvaluationContext, QueryRefused, is_empty, without_markup

# Takes the value of the column and that of the column it is compared with, or None.
ValuePredicate = Callable[[Any, Any], bool]

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


def build_predicate(operator_use: OperatorUse) -> ValuePredicate:
    """The predicate of a condition; raises `QueryRefused` if the operator does not fit the column."""
    name = operator_use.condition.operator
    # "password, secret none" and every other combination that the operator table lacks is an invalid query.
    if not operator_use.condition.row.fits(operator_use.column.compare_as, operator_use.condition.path):
        raise QueryRefused
    if name not in NEGATED_OPERATORS:
        return OPERATOR_PREDICATES[name](operator_use)
    positive_predicate = OPERATOR_PREDICATES[NEGATED_OPERATORS[name]](operator_use)
    return lambda value, other_value: not positive_predicate(value, other_value)


def value_predicate(
    operator_use: OperatorUse, holds: Callable[[Any], bool], convert: Callable[[Any, Column], Any] = comparable_value
) -> ValuePredicate:
    """False for an empty value, otherwise the result of `holds` for the converted value."""

    def predicate(value: Any, _: Any) -> bool:
        comparison_value = convert(value, operator_use.column)
        return comparison_value is not None and holds(comparison_value)

    return predicate


def comparison_predicate(compare: Callable[[Any, Any], bool]) -> Callable[[OperatorUse], ValuePredicate]:
    def build(operator_use: OperatorUse) -> ValuePredicate:
        operand = operator_use.literal(operator_use.value)
        return value_predicate(operator_use, lambda value: compare(value, operand))

    return build


def text_predicate(holds: Callable[[str, str], bool]) -> Callable[[OperatorUse], ValuePredicate]:
    """LIKE and similar operators ignore case, even in choices and sys_id, and have no special characters."""

    def build(operator_use: OperatorUse) -> ValuePredicate:
        fragment = operator_use.literal(operator_use.value).lower()
        return value_predicate(operator_use, lambda value: holds(value.lower(), fragment))

    return build


def membership_predicate(operator_use: OperatorUse) -> ValuePredicate:
    members = [operator_use.literal(operand) for operand in operator_use.value]
    return value_predicate(operator_use, lambda value: value in members)


def between_predicate(operator_use: OperatorUse) -> ValuePredicate:
    assert isinstance(operator_use.value, Range)
    lower, upper = operator_use.literal(operator_use.value.low), operator_use.literal(operator_use.value.high)
    return value_predicate(operator_use, lambda value: lower <= value <= upper)


def same_as_predicate(operator_use: OperatorUse) -> ValuePredicate:
    if family_of(operator_use.column) == "json" or family_of(operator_use.column) != family_of(
        operator_use.other_column
    ):
        raise QueryRefused

    def predicate(value: Any, other_value: Any) -> bool:
        # Empty values are None, so two empty values are the same.
        return bool(
            column_comparison_value(value, operator_use.column)
            == column_comparison_value(other_value, operator_use.other_column)
        )

    return predicate


def column_order_predicate(compare: Callable[[Any, Any], bool]) -> Callable[[OperatorUse], ValuePredicate]:
    def build(operator_use: OperatorUse) -> ValuePredicate:
        if family_of(operator_use.column) != family_of(operator_use.other_column):
            raise QueryRefused

        def predicate(value: Any, other_value: Any) -> bool:
            own_operand = column_comparison_value(value, operator_use.column)
            other_operand = column_comparison_value(other_value, operator_use.other_column)
            return own_operand is not None and other_operand is not None and compare(own_operand, other_operand)

        return predicate

    return build


def period_predicate(operator_use: OperatorUse) -> ValuePredicate:
    assert isinstance(operator_use.value, Period)
    start, end = operator_use.value.bounds(operator_use.context.moment)
    return value_predicate(operator_use, lambda value: start <= value <= end, exact_value)


def date_part_predicate(extract_part: Callable[[Any], int]) -> Callable[[OperatorUse], ValuePredicate]:
    return lambda operator_use: value_predicate(
        operator_use, lambda value: extract_part(value) == operator_use.value, exact_value
    )


def relative_predicate(compare: Callable[[Any, Any], bool]) -> Callable[[OperatorUse], ValuePredicate]:
    def build(operator_use: OperatorUse) -> ValuePredicate:
        assert isinstance(operator_use.value, RelativeTime)
        boundary = operator_use.value.instant(operator_use.context.moment)
        return value_predicate(operator_use, lambda value: compare(value, boundary), exact_value)

    return build


def same_period_predicate(operator_use: OperatorUse) -> ValuePredicate:
    assert isinstance(operator_use.value, RelativeTime)
    start, end = operator_use.value.bounds(operator_use.context.moment)
    return value_predicate(operator_use, lambda value: start <= value <= end, exact_value)


def distance_predicate(is_greater: bool) -> Callable[[OperatorUse], ValuePredicate]:
    """MORETHAN: beyond the shifted other column; LESSTHAN: between the other column and its shifted value."""

    def build(operator_use: OperatorUse) -> ValuePredicate:
        distance = operator_use.value
        assert isinstance(distance, Distance)
        if family_of(operator_use.other_column) != "time":
            raise QueryRefused

        def predicate(value: Any, other_value: Any) -> bool:
            instant = exact_value(value, operator_use.column)
            start = exact_value(other_value, operator_use.other_column)
            if instant is None or start is None:
                return False
            end = shift(start, distance.unit, -distance.count if distance.is_before else distance.count)
            if distance.is_before:
                return bool(instant < end) if is_greater else bool(end < instant <= start)
            return bool(instant > end) if is_greater else bool(start <= instant < end)

        return predicate

    return build


def dynamic_predicate(operator_use: OperatorUse) -> ValuePredicate:
    ids = operator_use.context.caller.dynamic_ids(operator_use.value)
    return value_predicate(operator_use, lambda value: value in ids)


def has_predicate(operator_use: OperatorUse) -> ValuePredicate:
    ids = [operator_use.literal(operand)[0] for operand in operator_use.value]
    return value_predicate(operator_use, lambda value: any(sys_id in value for sys_id in ids))


def contains_dynamic_predicate(operator_use: OperatorUse) -> ValuePredicate:
    ids = operator_use.context.caller.dynamic_ids(operator_use.value)
    return value_predicate(operator_use, lambda value: any(sys_id in value for sys_id in ids))


OPERATOR_PREDICATES: dict[str, Callable[[OperatorUse], ValuePredicate]] = {
    "=": comparison_predicate(operator.eq),
    ">": comparison_predicate(operator.gt),
    "<": comparison_predicate(operator.lt),
    ">=": comparison_predicate(operator.ge),
    "<=": comparison_predicate(operator.le),
    "IN": membership_predicate,
    "LIKE": text_predicate(lambda text, fragment: fragment in text),
    "STARTSWITH": text_predicate(str.startswith),
    "ENDSWITH": text_predicate(str.endswith),
    "ISEMPTY": lambda operator_use: (
        lambda value, _: is_empty(without_markup(value, operator_use.column), operator_use.column)
    ),
    "EMPTYSTRING": lambda operator_use: lambda value, _: without_markup(value, operator_use.column) == "",
    "ANYTHING": lambda operator_use: lambda value, _: True,
    "BETWEEN": between_predicate,
    "SAMEAS": same_as_predicate,
    "GT_FIELD": column_order_predicate(operator.gt),
    "LT_FIELD": column_order_predicate(operator.lt),
    "GT_OR_EQUALS_FIELD": column_order_predicate(operator.ge),
    "LT_OR_EQUALS_FIELD": column_order_predicate(operator.le),
    "ON": period_predicate,
    "YEAR_IS": date_part_predicate(lambda instant: instant.year),
    "QUARTER_IS": date_part_predicate(lambda instant: (instant.month + 2) // 3),
    "MONTH_IS": date_part_predicate(lambda instant: instant.month),
    "WEEK_IS": date_part_predicate(lambda instant: instant.isocalendar().week),
    "DAY_IS": date_part_predicate(lambda instant: instant.day),
    "DAY_OF_WEEK_IS": date_part_predicate(lambda instant: instant.isoweekday()),
    "HOUR_IS": date_part_predicate(lambda instant: instant.hour),
    "RELATIVEGT": relative_predicate(operator.gt),
    "RELATIVEGE": relative_predicate(operator.ge),
    "RELATIVELT": relative_predicate(operator.lt),
    "RELATIVELE": relative_predicate(operator.le),
    "RELATIVEEE": same_period_predicate,
    "MORETHAN": distance_predicate(is_greater=True),
    "LESSTHAN": distance_predicate(is_greater=False),
    "DYNAMIC": dynamic_predicate,
    "HAS": has_predicate,
    "CONTAINS_DYNAMIC": contains_dynamic_predicate,
}

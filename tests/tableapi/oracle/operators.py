"""The meaning of each operator: a function that returns the test of one column's value (and another column's)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from system.encoded_query import Condition, Distance, Period, Range, Relative, read, shift
from tableapi.catalogue.definitions import Column

from .literals import beside, exact, family, literal, stored
from .world import Question, Refused, is_empty, shown

# The value of the column, and of the other column where the operator names one; else None.
Test = Callable[[Any, Any], bool]

NEGATIONS = {
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
class Use:
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


def test_of(use: Use) -> Test:
    """The test that the condition puts to a record; Refused when it cannot be put to such a column at all."""
    name = use.condition.operator
    # "password, secret none" and every other combination that is not in the table is a bad query.
    if not use.condition.row.fits(use.column.compare_as, use.condition.path):
        raise Refused
    if name not in NEGATIONS:
        return MEANINGS[name](use)
    positive = MEANINGS[NEGATIONS[name]](use)
    return lambda value, other: not positive(value, other)


def on_value(use: Use, holds: Callable[[Any], bool], form: Callable[[Any, Column], Any] = stored) -> Test:
    """False for an empty column, else what `holds` says of the value in that form."""

    def test(value: Any, _: Any) -> bool:
        result = form(value, use.column)
        return result is not None and holds(result)

    return test


def compared(compare: Callable[[Any, Any], bool]) -> Callable[[Use], Test]:
    def build(use: Use) -> Test:
        expected = use.literal(use.value)
        return on_value(use, lambda found: compare(found, expected))

    return build


def text_part(holds: Callable[[str, str], bool]) -> Callable[[Use], Test]:
    """LIKE and its siblings ignore case, in a choice or sys_id too, and no character is special."""

    def build(use: Use) -> Test:
        expected = use.literal(use.value).lower()
        return on_value(use, lambda found: holds(found.lower(), expected))

    return build


def one_of(use: Use) -> Test:
    result = [use.literal(operand) for operand in use.value]
    return on_value(use, lambda found: found in result)


def between(use: Use) -> Test:
    assert isinstance(use.value, Range)
    low, high = use.literal(use.value.low), use.literal(use.value.high)
    return on_value(use, lambda found: low <= found <= high)


def same_as(use: Use) -> Test:
    if family(use.column) == "json" or family(use.column) != family(use.other_column):
        raise Refused

    def test(value: Any, other: Any) -> bool:
        # An empty value beside another is None, so both empty are the same, and one empty is not.
        return bool(beside(value, use.column) == beside(other, use.other_column))

    return test


def ordered_with(compare: Callable[[Any, Any], bool]) -> Callable[[Use], Test]:
    def build(use: Use) -> Test:
        if family(use.column) != family(use.other_column):
            raise Refused

        def test(value: Any, other: Any) -> bool:
            ours, theirs = beside(value, use.column), beside(other, use.other_column)
            return ours is not None and theirs is not None and compare(ours, theirs)

        return test

    return build


def on(use: Use) -> Test:
    assert isinstance(use.value, Period)
    first, last = use.value.bounds(use.question.moment)
    return on_value(use, lambda found: first <= found <= last, exact)


def date_part(part: Callable[[Any], int]) -> Callable[[Use], Test]:
    return lambda use: on_value(use, lambda found: part(found) == use.value, exact)


def relative(compare: Callable[[Any, Any], bool]) -> Callable[[Use], Test]:
    def build(use: Use) -> Test:
        assert isinstance(use.value, Relative)
        edge = use.value.instant(use.question.moment)
        return on_value(use, lambda found: compare(found, edge), exact)

    return build


def relative_same(use: Use) -> Test:
    assert isinstance(use.value, Relative)
    first, last = use.value.bounds(use.question.moment)
    return on_value(use, lambda found: first <= found <= last, exact)


def distance(is_more: bool) -> Callable[[Use], Test]:
    """MORETHAN lies beyond the shifted column, LESSTHAN between the column itself and the shifted one."""

    def build(use: Use) -> Test:
        request = use.value
        assert isinstance(request, Distance)
        if family(use.other_column) != "time":
            raise Refused

        def test(value: Any, other: Any) -> bool:
            ours, start = exact(value, use.column), exact(other, use.other_column)
            if ours is None or start is None:
                return False
            end = shift(start, request.unit, -request.count if request.is_before else request.count)
            if request.is_before:
                return bool(ours < end) if is_more else bool(end < ours <= start)
            return bool(ours > end) if is_more else bool(start <= ours < end)

        return test

    return build


def is_named(use: Use) -> Test:
    ids = use.question.caller.named(use.value)
    return on_value(use, lambda found: found in ids)


def has(use: Use) -> Test:
    ids = [use.literal(operand)[0] for operand in use.value]
    return on_value(use, lambda found: any(sys_id in found for sys_id in ids))


def has_named(use: Use) -> Test:
    ids = use.question.caller.named(use.value)
    return on_value(use, lambda found: any(sys_id in found for sys_id in ids))


MEANINGS: dict[str, Callable[[Use], Test]] = {
    "=": compared(operator.eq),
    ">": compared(operator.gt),
    "<": compared(operator.lt),
    ">=": compared(operator.ge),
    "<=": compared(operator.le),
    "IN": one_of,
    "LIKE": text_part(lambda text, part: part in text),
    "STARTSWITH": text_part(str.startswith),
    "ENDSWITH": text_part(str.endswith),
    "ISEMPTY": lambda use: lambda value, _: is_empty(shown(value, use.column), use.column),
    "EMPTYSTRING": lambda use: lambda value, _: shown(value, use.column) == "",
    "ANYTHING": lambda use: lambda value, other: True,
    "BETWEEN": between,
    "SAMEAS": same_as,
    "GT_FIELD": ordered_with(operator.gt),
    "LT_FIELD": ordered_with(operator.lt),
    "GT_OR_EQUALS_FIELD": ordered_with(operator.ge),
    "LT_OR_EQUALS_FIELD": ordered_with(operator.le),
    "ON": on,
    "YEAR_IS": date_part(lambda found: found.year),
    "QUARTER_IS": date_part(lambda found: (found.month + 2) // 3),
    "MONTH_IS": date_part(lambda found: found.month),
    "WEEK_IS": date_part(lambda found: found.isocalendar().week),
    "DAY_IS": date_part(lambda found: found.day),
    "DAY_OF_WEEK_IS": date_part(lambda found: found.isoweekday()),
    "HOUR_IS": date_part(lambda found: found.hour),
    "RELATIVEGT": relative(operator.gt),
    "RELATIVEGE": relative(operator.ge),
    "RELATIVELT": relative(operator.lt),
    "RELATIVELE": relative(operator.le),
    "RELATIVEEE": relative_same,
    "MORETHAN": distance(is_more=True),
    "LESSTHAN": distance(is_more=False),
    "DYNAMIC": is_named,
    "HAS": has,
    "CONTAINS_DYNAMIC": has_named,
}

"""Compiles one condition to SQL, for typed columns and for metadata.

`COMPARISONS` maps each operator to a function that compiles it; negations are compiled as complements. This module
compiles what both stores share: text, dates, date parts, distances and negation. Each store subclasses
`ConditionCompiler` to bind values and to implement comparisons that depend on types (equality, order, emptiness).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from .dialect import RECORDS, Dialect
from .functions import Moment
from .time_values import Distance, Period, RelativeTime
from .tree import Condition
from .values import read_value

# Text is compared by code point, ignoring case.
FOLD_SQL = 'lower({} COLLATE "pg_c_utf8")'
FOLD_ARRAY_SQL = f"ARRAY(SELECT {FOLD_SQL.format('each')} FROM unnest({{}}) each)"

# Reads the value to bind from a condition. It may be called later, with another condition of the same form.
ValueReader = Callable[[Condition, Moment], Any]


class Subject(Protocol):
    """One side of a condition: the SQL of its value."""

    @property
    def raw(self) -> str: ...

    @property
    def instant(self) -> str: ...

    def compare(self, operator: str, other: Self) -> str:
        """Compares this side with the other; times are compared to the second, as they are displayed."""
        ...


SubjectT = TypeVar("SubjectT", bound=Subject)


class ConditionCompiler(ABC, Generic[SubjectT]):
    """Compiles a condition with one or two sides for one store."""

    dialect: ClassVar[Dialect] = RECORDS
    comparisons: ClassVar[Mapping[str, "Comparison"]]

    def __init__(self, condition: Condition, subject: SubjectT, other: SubjectT | None) -> None:
        self.condition = condition
        self.subject = subject
        self._other = other

    @property
    def other(self) -> SubjectT:
        assert self._other is not None
        return self._other

    def sql(self) -> str:
        """The SQL of the condition. A negation is never NULL, so that each record matches it or its complement."""
        negates = self.condition.row.negates
        positive = self.comparisons[negates or self.condition.operator](self)
        return f"(({positive}) IS NOT TRUE)" if negates else f"({positive})"

    @abstractmethod
    def bind(self, reader: ValueReader, sql_type: str) -> str:
        """Bind a value of the condition and return its placeholder."""

    def time_zone(self) -> str:
        """The SQL of the zone in which days begin."""
        return "'UTC'"

    @abstractmethod
    def any_value(self, test: str) -> str:
        """The SQL that is true if any of the values of a side passes the test."""

    @abstractmethod
    def read_text(self, condition: Condition, moment: Moment) -> str: ...

    @abstractmethod
    def equal(self) -> str: ...

    @abstractmethod
    def compare_order(self, operator: str) -> str: ...

    @abstractmethod
    def one_of(self) -> str: ...

    @abstractmethod
    def between(self) -> str: ...

    @abstractmethod
    def has(self) -> str: ...

    @abstractmethod
    def not_empty(self) -> str: ...

    @abstractmethod
    def same_as(self) -> str: ...


# Takes the compiler. The comparisons of one store can use methods that only its compiler has.
Comparison = Callable[[Any], str]


def _compare(operator: str) -> Comparison:
    return lambda compiler: compiler.any_value(compiler.subject.compare(operator, compiler.other))


def _text(template: str) -> Comparison:
    def comparison(compiler: ConditionCompiler[Any]) -> str:
        value = FOLD_SQL.format(compiler.bind(compiler.read_text, "text"))
        return compiler.any_value(template.format(c=FOLD_SQL.format(compiler.subject.raw), v=value))

    return comparison


def _period_bound(index: int) -> ValueReader:
    def reader(condition: Condition, moment: Moment) -> datetime:
        value: Any = read_value(condition)
        assert isinstance(value, Period | RelativeTime)
        return value.bounds(moment)[index]

    return reader


def _within_period(compiler: ConditionCompiler[Any]) -> str:
    start, end = (compiler.bind(_period_bound(index), "timestamptz") for index in (0, 1))
    return compiler.any_value(f"{compiler.subject.instant} BETWEEN {start} AND {end}")


def _date_part(field: str) -> Comparison:
    def comparison(compiler: ConditionCompiler[Any]) -> str:
        number = compiler.bind(lambda condition, _: read_value(condition), "integer")
        local = f"{compiler.subject.instant} AT TIME ZONE {compiler.time_zone()}"
        return compiler.any_value(f"extract({field} FROM {local}) = {number}")

    return comparison


def _relative_instant(condition: Condition, moment: Moment) -> datetime:
    value: Any = read_value(condition)
    assert isinstance(value, RelativeTime)
    return value.instant(moment)


def _relative_time(operator: str) -> Comparison:
    def comparison(compiler: ConditionCompiler[Any]) -> str:
        value = compiler.bind(_relative_instant, "timestamptz")
        return compiler.any_value(f"{compiler.subject.instant} {operator} {value}")

    return comparison


def _distance(is_more: bool) -> Comparison:
    """Compiles MORETHAN and LESSTHAN. LESSTHAN also matches equal times, but none on the opposite side."""

    def comparison(compiler: ConditionCompiler[Any]) -> str:
        distance: Any = read_value(compiler.condition, compiler.dialect)
        assert isinstance(distance, Distance)
        months = {"quarter": f"{3 * distance.count} months"}
        interval = f"interval '{months.get(distance.unit, f'{distance.count} {distance.unit}s')}'"
        farther, nearer, sign = ("<", ">", "-") if distance.is_before else (">", "<", "+")
        own_instant, other_instant = compiler.subject.instant, compiler.other.instant
        limit = f"{other_instant} {sign} {interval}"
        if is_more:
            return compiler.any_value(f"{own_instant} {farther} {limit}")
        return compiler.any_value(f"({own_instant} {nearer} {limit} AND {own_instant} {farther}= {other_instant})")

    return comparison


COMPARISONS: Mapping[str, Comparison] = {
    "=": lambda compiler: compiler.equal(),
    ">": lambda compiler: compiler.compare_order(">"),
    "<": lambda compiler: compiler.compare_order("<"),
    ">=": lambda compiler: compiler.compare_order(">="),
    "<=": lambda compiler: compiler.compare_order("<="),
    "IN": lambda compiler: compiler.one_of(),
    "LIKE": _text("strpos({c}, {v}) > 0"),
    "STARTSWITH": _text("starts_with({c}, {v})"),
    "ENDSWITH": _text("right({c}, length({v})) = {v}"),
    "ISNOTEMPTY": lambda compiler: compiler.not_empty(),
    "EMPTYSTRING": lambda compiler: compiler.any_value(f"{compiler.subject.raw} = ''"),
    "ANYTHING": lambda _: "TRUE",
    "BETWEEN": lambda compiler: compiler.between(),
    "SAMEAS": lambda compiler: compiler.same_as(),
    "GT_FIELD": _compare(">"),
    "LT_FIELD": _compare("<"),
    "GT_OR_EQUALS_FIELD": _compare(">="),
    "LT_OR_EQUALS_FIELD": _compare("<="),
    "ON": _within_period,
    "YEAR_IS": _date_part("year"),
    "QUARTER_IS": _date_part("quarter"),
    "MONTH_IS": _date_part("month"),
    "WEEK_IS": _date_part("week"),
    "DAY_IS": _date_part("day"),
    "DAY_OF_WEEK_IS": _date_part("isodow"),
    "HOUR_IS": _date_part("hour"),
    "RELATIVEGT": _relative_time(">"),
    "RELATIVEGE": _relative_time(">="),
    "RELATIVELT": _relative_time("<"),
    "RELATIVELE": _relative_time("<="),
    "RELATIVEEE": _within_period,
    "MORETHAN": _distance(True),
    "LESSTHAN": _distance(False),
    "HAS": lambda compiler: compiler.has(),
}
"""The operators of every store. Only the Table API also compiles ARE, INSTANCEOF and the DYNAMIC operators."""

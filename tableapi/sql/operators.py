"""The SQL of each operator of the query language, one row each; negations are complements. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from system.encoded_query import ComparisonKind, Condition, Distance, Moment, Period, Range, Relative, read, read_list
from tableapi.catalogue.definitions import Column
from tableapi.values.comparison import SQL_TYPES, comparable

if TYPE_CHECKING:
    from .statement_builder import ValueBinder

FOLD = 'lower({} COLLATE "pg_c_utf8")'
SECOND = "interval '1 second'"
# The grammar's table names their complement, which has a row below.
NEGATIONS = frozenset(
    {
        "!=", "NOT IN", "NOTLIKE", "ISEMPTY", "NOTHING", "NSAMEAS", "NOTON", "ISNOT_DYNAMIC", "HASNOT",
        "DOESNOTCONTAIN_DYNAMIC",
    }
)  # fmt: skip

# Group membership decides what a caller may read: it is read from the primary only.
MEMBERSHIPS = "public.sys_user_group"
NAMED = {
    "me": "= {me}",
    "my_groups": f"IN (SELECT group_id FROM {MEMBERSHIPS} WHERE user_id = {{me}})",
    "my_roles": "IN (SELECT sys_id FROM public.sys_role WHERE name = ANY ({roles}))",
}
NAMED_IDS = {
    "me": "ARRAY[{me}]",
    "my_groups": f"ARRAY(SELECT group_id FROM {MEMBERSHIPS} WHERE user_id = {{me}})",
    "my_roles": "ARRAY(SELECT sys_id FROM public.sys_role WHERE name = ANY ({roles}))",
}


def key(kind: ComparisonKind, sql: str) -> str:
    """The SQL that a column is compared and sorted by; an empty text counts as no value.

    >>> key(ComparisonKind.TEXT, "t.subject")
    'nullif(lower(t.subject COLLATE "pg_c_utf8"), \\'\\')'
    """
    if kind is ComparisonKind.TEXT:
        return f"nullif({FOLD.format(sql)}, '')"
    return f'{sql} COLLATE "C"' if kind is ComparisonKind.CHOICE else sql


@dataclass(frozen=True)
class Operand:
    """A column in a test: its raw SQL, and how it is compared."""

    column: Column
    raw: str

    @property
    def kind(self) -> ComparisonKind:
        return self.column.compare_as

    @property
    def key(self) -> str:
        return key(self.kind, self.raw)

    @property
    def folded(self) -> str:
        return FOLD.format(self.raw)

    @property
    def instant(self) -> str:
        """As a timestamp; a date is its midnight."""
        return f"({self.raw})::timestamp AT TIME ZONE 'UTC'" if self.kind is ComparisonKind.DATE else self.raw

    @property
    def second(self) -> str:
        """Truncated to the second, as it is displayed."""
        is_time = self.kind in (ComparisonKind.DATE, ComparisonKind.DATETIME)
        return f"date_trunc('second', {self.instant})" if is_time else self.key


# A row gets the column, the other column (if the operator has one), the condition, and what binds its values.
Row = Callable[[Operand, Operand | None, Condition, "ValueBinder"], str]


def _value(side: Operand, condition: Condition, bind: ValueBinder) -> str:
    def of(condition: Condition, moment: Moment) -> Any:
        return comparable(side.column, read(condition), moment, condition)  # type: ignore[arg-type]  # a value of TEXT kind

    placeholder = bind.value(of, SQL_TYPES[side.kind])
    return FOLD.format(placeholder) if side.kind is ComparisonKind.TEXT else placeholder


def _compared(operator: str) -> Row:
    """> and its siblings; a time, displayed to the second, means that whole second."""
    of_instants = {">": ">= {v} + " + SECOND, ">=": ">= {v}", "<": "< {v}", "<=": "< {v} + " + SECOND}

    def row(side: Operand, _: Operand | None, condition: Condition, bind: ValueBinder) -> str:
        value = _value(side, condition, bind)
        if side.kind is ComparisonKind.DATETIME:
            return f"{side.key} {of_instants[operator].format(v=value)}"
        return f"{side.key} {operator} {value}"

    return row


def _ids(condition: Condition, moment: Moment) -> list[str]:
    operands = read_list(condition.value, condition.value_position)
    return [str(comparable(_AS_TEXT, operand, moment, condition)) for operand in operands]


def _equal(side: Operand, _: Operand | None, condition: Condition, bind: ValueBinder) -> str:
    if side.kind is ComparisonKind.LIST:
        return f"{side.raw} = {bind.value(_ids, 'varchar[]')}"
    value = _value(side, condition, bind)
    if side.kind is ComparisonKind.DATETIME:
        return f"({side.key} >= {value} AND {side.key} < {value} + {SECOND})"
    return f"{side.key} = {value}"


def _in(side: Operand, _: Operand | None, condition: Condition, bind: ValueBinder) -> str:
    def of(condition: Condition, moment: Moment) -> list[Any]:
        return [comparable(side.column, operand, moment, condition) for operand in read(condition)]  # type: ignore[union-attr]

    values = bind.value(of, SQL_TYPES[side.kind] + "[]")
    if side.kind is ComparisonKind.TEXT:
        return f"{side.key} = ANY (ARRAY(SELECT {FOLD.format('each')} FROM unnest({values}) each))"
    return f"{side.second if side.kind is ComparisonKind.DATETIME else side.key} = ANY ({values})"


def _between(side: Operand, _: Operand | None, condition: Condition, bind: ValueBinder) -> str:
    def end(name: str) -> str:
        def of(condition: Condition, moment: Moment) -> Any:
            value: Any = read(condition)
            assert isinstance(value, Range)
            return comparable(side.column, getattr(value, name), moment, condition)

        placeholder = bind.value(of, SQL_TYPES[side.kind])
        return FOLD.format(placeholder) if side.kind is ComparisonKind.TEXT else placeholder

    low, high = end("low"), end("high")
    if side.kind is ComparisonKind.DATETIME:
        return f"({side.key} >= {low} AND {side.key} < {high} + {SECOND})"
    return f"{side.key} BETWEEN {low} AND {high}"


def _text(template: str) -> Row:
    def row(side: Operand, _: Operand | None, condition: Condition, bind: ValueBinder) -> str:
        def of(condition: Condition, moment: Moment) -> Any:
            return comparable(_AS_TEXT, read(condition), moment, condition)  # type: ignore[arg-type]

        return template.format(c=side.folded, v=FOLD.format(bind.value(of, "text")))

    return row


_AS_TEXT = Column("", "string", "", "")


def _not_empty(side: Operand, _: Operand | None, __: Condition, ___: ValueBinder) -> str:
    return f"cardinality({side.raw}) > 0" if side.kind is ComparisonKind.LIST else f"{side.key} IS NOT NULL"


def _same_as(side: Operand, other: Operand | None, _: Condition, __: ValueBinder) -> str:
    assert other is not None
    if side.kind is ComparisonKind.LIST:
        return f"nullif({side.raw}, '{{}}') IS NOT DISTINCT FROM nullif({other.raw}, '{{}}')"
    return f"{side.second} IS NOT DISTINCT FROM {other.second}"


def _compared_columns(operator: str) -> Row:
    def row(side: Operand, other: Operand | None, _: Condition, __: ValueBinder) -> str:
        assert other is not None
        return f"{side.second} {operator} {other.second}"

    return row


def _within(side: Operand, _: Operand | None, condition: Condition, bind: ValueBinder) -> str:
    def edge(number: int) -> str:
        def of(condition: Condition, moment: Moment) -> datetime:
            value: Any = read(condition)
            assert isinstance(value, Period | Relative)
            return value.bounds(moment)[number]

        return bind.value(of, "timestamptz")

    return f"{side.instant} BETWEEN {edge(0)} AND {edge(1)}"


def _part(field: str) -> Row:
    def row(side: Operand, _: Operand | None, condition: Condition, bind: ValueBinder) -> str:
        number = bind.value(lambda condition, _: read(condition), "integer")
        return f"extract({field} FROM {side.instant} AT TIME ZONE 'UTC') = {number}"

    return row


def _relative(operator: str) -> Row:
    def row(side: Operand, _: Operand | None, condition: Condition, bind: ValueBinder) -> str:
        def of(condition: Condition, moment: Moment) -> datetime:
            value: Any = read(condition)
            assert isinstance(value, Relative)
            return value.instant(moment)

        return f"{side.instant} {operator} {bind.value(of, 'timestamptz')}"

    return row


def _distance(is_more: bool) -> Row:
    """More than so many units after (before) the other column; or less, on the same side of it."""

    def row(side: Operand, other: Operand | None, condition: Condition, _: ValueBinder) -> str:
        assert other is not None
        distance: Any = read(condition)
        assert isinstance(distance, Distance)
        months = {"quarter": f"{3 * distance.count} months"}
        length = f"interval '{months.get(distance.unit, f'{distance.count} {distance.unit}s')}'"
        far = f"{other.instant} {'-' if distance.is_before else '+'} {length}"
        if distance.is_before:
            return (
                f"{side.instant} < {far}"
                if is_more
                else f"({side.instant} > {far} AND {side.instant} <= {other.instant})"
            )
        return (
            f"{side.instant} > {far}" if is_more else f"({side.instant} < {far} AND {side.instant} >= {other.instant})"
        )

    return row


def _named(template: str, bind: ValueBinder) -> str:
    # Bound only where it is used: PostgreSQL refuses a parameter that the text does not contain.
    return template.format(roles=bind.roles()) if "{roles}" in template else template.format(me=bind.me())


def _dynamic(side: Operand, _: Operand | None, condition: Condition, bind: ValueBinder) -> str:
    return f"{side.key} {_named(NAMED[condition.value], bind)}"


def _has(side: Operand, _: Operand | None, condition: Condition, bind: ValueBinder) -> str:
    def of(condition: Condition, moment: Moment) -> list[Any]:
        return [comparable(_AS_TEXT, operand, moment, condition) for operand in read(condition)]  # type: ignore[union-attr]

    ids = bind.value(of, "varchar[]")
    return f"{side.raw} && {ids}"


def _has_dynamic(side: Operand, _: Operand | None, condition: Condition, bind: ValueBinder) -> str:
    return f"{side.raw} && {_named(NAMED_IDS[condition.value], bind)}::varchar[]"


ROWS: Mapping[str, Row] = {
    "=": _equal,
    ">": _compared(">"),
    "<": _compared("<"),
    ">=": _compared(">="),
    "<=": _compared("<="),
    "IN": _in,
    "LIKE": _text("strpos({c}, {v}) > 0"),
    "STARTSWITH": _text("starts_with({c}, {v})"),
    "ENDSWITH": _text("right({c}, length({v})) = {v}"),
    "ISNOTEMPTY": _not_empty,
    "EMPTYSTRING": lambda side, _, __, ___: f"{side.raw} = ''",
    "ANYTHING": lambda _, __, ___, ____: "TRUE",
    "BETWEEN": _between,
    "SAMEAS": _same_as,
    "GT_FIELD": _compared_columns(">"),
    "LT_FIELD": _compared_columns("<"),
    "GT_OR_EQUALS_FIELD": _compared_columns(">="),
    "LT_OR_EQUALS_FIELD": _compared_columns("<="),
    "ON": _within,
    "YEAR_IS": _part("year"),
    "QUARTER_IS": _part("quarter"),
    "MONTH_IS": _part("month"),
    "WEEK_IS": _part("week"),
    "DAY_IS": _part("day"),
    "DAY_OF_WEEK_IS": _part("isodow"),
    "HOUR_IS": _part("hour"),
    "RELATIVEGT": _relative(">"),
    "RELATIVEGE": _relative(">="),
    "RELATIVELT": _relative("<"),
    "RELATIVELE": _relative("<="),
    "RELATIVEEE": _within,
    "MORETHAN": _distance(True),
    "LESSTHAN": _distance(False),
    "DYNAMIC": _dynamic,
    "HAS": _has,
    "CONTAINS_DYNAMIC": _has_dynamic,
}
# ARE and INSTANCEOF are conditions on the record, not on one column: `predicates` has them.

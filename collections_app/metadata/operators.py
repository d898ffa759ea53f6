"""The SQL of each operator on metadata, one row per operator. Pure.

A row defines when the operator is true for one value. Negations are the complements of their rows, so every document is
on exactly one side of each pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from system.encoded_query import METADATA, Operand, Period, Range, Relative, read

from .conditions import MetadataCondition, Row, not_empty
from .field_comparisons import compared_fields, distance, same_as
from .fields import FOLD, Field, Kind, Sql, joined
from .operands import instant, number

NEGATIONS = frozenset({"!=", "NOT IN", "NOTLIKE", "ISEMPTY", "NOTHING", "NSAMEAS", "NOTON", "HASNOT"})
# Operators for features that metadata does not have: groups and roles, word search, tables.
RECORDS_ONLY = frozenset(
    {"DYNAMIC", "ISNOT_DYNAMIC", "CONTAINS_DYNAMIC", "DOESNOTCONTAIN_DYNAMIC", "ARE", "INSTANCEOF"}
)
SECOND = timedelta(seconds=1)
FOLDED = FOLD.format("%s::text")
LAST = datetime.max.replace(microsecond=0)


def _equal(restriction: MetadataCondition) -> Sql:
    value: Any = read(restriction.condition, METADATA)
    return _one_of(restriction, (value,))


def _in(restriction: MetadataCondition) -> Sql:
    restriction.only(Kind.TEXT, Kind.INTEGER, Kind.INSTANT)
    values: Any = read(restriction.condition, METADATA)
    return _one_of(restriction, values)


def _has(restriction: MetadataCondition) -> Sql:
    restriction.only()
    values: Any = read(restriction.condition, METADATA)
    return _one_of(restriction, values)


def _one_of(restriction: MetadataCondition, operands: tuple[Operand, ...]) -> Sql:
    subject = restriction.field.subject()
    values = [
        restriction.reader.typed(each) if restriction.field.kind is not Kind.ANY else restriction.reader.resolved(each)
        for each in operands
    ]
    if restriction.field.kind is Kind.INSTANT:
        return restriction.field.holds(
            Sql(f"date_trunc('second', {subject.instant}) = ANY (%s::timestamptz[])", (values,))
        )
    if restriction.field.kind in (Kind.INTEGER, Kind.BOOLEAN):
        sql_type = "numeric" if restriction.field.kind is Kind.INTEGER else "boolean"
        return restriction.field.holds(Sql(f"{subject.key} = ANY (%s::{sql_type}[])", (values,)))
    texts = [each for each in values if isinstance(each, str)]
    folded = f"ARRAY(SELECT {FOLD.format('each')} FROM unnest(%s::text[]) AS each)"
    tests = [Sql(f"{subject.key} = ANY ({folded})", (texts,))]
    if restriction.field.kind is Kind.ANY:
        tests += _one_of_any(restriction, values, texts)
    return restriction.field.holds(joined(" OR ", tests))


def _one_of_any(restriction: MetadataCondition, values: list[Any], texts: list[str]) -> list[Sql]:
    """The other types: 3 is also a number, true also a boolean, and an instant matches its second."""
    subject, value = restriction.field.subject(), "item.value"
    tests = []
    numbers = [each for each in map(number, texts) if each is not None]
    if numbers:
        # Text is compared as text: 3 does not equal the code 003.
        plain = f"CASE jsonb_typeof({value}) WHEN 'number' THEN ({value} #>> '{{}}')::numeric END"
        tests.append(Sql(f"{plain} = ANY (%s::numeric[])", (numbers,)))
    booleans = [each.lower() == "true" for each in texts if each.lower() in ("true", "false")]
    if booleans:
        tests.append(Sql(f"{subject.boolean} = ANY (%s::boolean[])", (booleans,)))
    instants = [restriction.reader.instant(each) for each in values if isinstance(each, datetime)]
    if instants:
        tests.append(Sql(f"date_trunc('second', {subject.instant}) = ANY (%s::timestamptz[])", (instants,)))
    return tests


def _ordered(operator: str) -> Row:
    """The ordering operators; a time means its whole second."""

    def row(restriction: MetadataCondition) -> Sql:
        restriction.only(Kind.TEXT, Kind.INTEGER, Kind.INSTANT)
        value: Any = read(restriction.condition, METADATA)
        return restriction.field.holds(_compared(restriction, operator, restriction.reader.resolved(value)))

    return row


def _between(restriction: MetadataCondition) -> Sql:
    restriction.only(Kind.TEXT, Kind.INTEGER, Kind.INSTANT)
    value_range: Any = read(restriction.condition, METADATA)
    assert isinstance(value_range, Range)
    low, high = restriction.reader.resolved(value_range.low), restriction.reader.resolved(value_range.high)
    kind = _common_kind(restriction.field, low, high)
    return restriction.field.holds(
        joined(" AND ", [_compared(restriction, ">=", low, kind), _compared(restriction, "<=", high, kind)])
    )


def _common_kind(field: Field, *values: str | datetime) -> Kind:
    """How an untyped field is compared: as numbers or times if all values are such, otherwise as text."""
    if field.kind is not Kind.ANY:
        return field.kind
    if all(number(each) is not None for each in values):
        return Kind.INTEGER
    return Kind.INSTANT if all(instant(each) for each in values) else Kind.TEXT


def _compared(restriction: MetadataCondition, operator: str, value: str | datetime, kind: Kind | None = None) -> Sql:
    subject = restriction.field.subject()
    kind = kind or _common_kind(restriction.field, value)
    if kind is Kind.INSTANT:
        return _compared_instants(subject.instant, operator, restriction.reader.instant(value))
    if isinstance(value, datetime):
        raise restriction.reader.refused("a time cannot be compared with this field")
    if kind is Kind.INTEGER:
        operand = restriction.reader.typed(value) if restriction.field.kind is kind else Decimal(value)
        return Sql(f"{subject.number} {operator} %s::numeric", (operand,))
    return Sql(f"{subject.key} {operator} {FOLDED}", (value,))


def _compared_instants(sql: str, operator: str, value: datetime) -> Sql:
    is_after_second = operator in (">", "<=")
    if is_after_second and value.replace(tzinfo=None) >= LAST:
        return Sql("FALSE") if operator == ">" else Sql(f"{sql} IS NOT NULL")
    edge = value + SECOND if is_after_second else value
    return Sql(f"{sql} {'>=' if operator in ('>', '>=') else '<'} %s::timestamptz", (edge,))


def _text(template: str) -> Row:
    def row(restriction: MetadataCondition) -> Sql:
        restriction.only(Kind.TEXT)
        value: Any = read(restriction.condition, METADATA)
        text = restriction.reader.resolved(value)
        if isinstance(text, datetime):
            raise restriction.reader.refused("text cannot contain a time")
        count = template.count("{v}")
        sql = template.format(c=FOLD.format(restriction.field.subject().text), v=FOLDED)
        return restriction.field.holds(Sql(sql, (text,) * count))

    return row


def _empty_text(restriction: MetadataCondition) -> Sql:
    restriction.only(Kind.TEXT)
    return restriction.field.holds(Sql(f"{restriction.field.subject().text} = ''"))


def _within(restriction: MetadataCondition) -> Sql:
    restriction.only(Kind.INSTANT)
    period: Any = read(restriction.condition, METADATA)
    assert isinstance(period, Period | Relative)
    return restriction.field.holds(
        Sql(
            f"{restriction.field.subject().instant} BETWEEN %s::timestamptz AND %s::timestamptz",
            period.bounds(restriction.moment),
        )
    )


def _part(name: str) -> Row:
    def row(restriction: MetadataCondition) -> Sql:
        restriction.only(Kind.INSTANT)
        part = f"extract({name} FROM {restriction.field.subject().instant} AT TIME ZONE 'UTC') = %s"
        return restriction.field.holds(Sql(part, (read(restriction.condition, METADATA),)))

    return row


def _relative(operator: str) -> Row:
    def row(restriction: MetadataCondition) -> Sql:
        restriction.only(Kind.INSTANT)
        relative: Any = read(restriction.condition, METADATA)
        assert isinstance(relative, Relative)
        edge = relative.instant(restriction.moment)
        return restriction.field.holds(
            Sql(f"{restriction.field.subject().instant} {operator} %s::timestamptz", (edge,))
        )

    return row


ROWS: Mapping[str, Row] = {
    "=": _equal,
    ">": _ordered(">"),
    "<": _ordered("<"),
    ">=": _ordered(">="),
    "<=": _ordered("<="),
    "IN": _in,
    "HAS": _has,
    "LIKE": _text("strpos({c}, {v}) > 0"),
    "STARTSWITH": _text("starts_with({c}, {v})"),
    "ENDSWITH": _text("right({c}, length({v})) = {v}"),
    "ISNOTEMPTY": not_empty,
    "EMPTYSTRING": _empty_text,
    "ANYTHING": lambda restriction: Sql("TRUE"),
    "BETWEEN": _between,
    "SAMEAS": same_as,
    "GT_FIELD": compared_fields(">"),
    "LT_FIELD": compared_fields("<"),
    "GT_OR_EQUALS_FIELD": compared_fields(">="),
    "LT_OR_EQUALS_FIELD": compared_fields("<="),
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
    "MORETHAN": distance(True),
    "LESSTHAN": distance(False),
}

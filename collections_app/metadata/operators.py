"""The SQL of each operator on metadata, one row per operator. Pure.

A row says when the operator holds for one value; negations are the complements of their rows, so every document is on
exactly one side of each pair.
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
# What a record has and metadata do not: groups and roles, a list of words, a table.
RECORDS_ONLY = frozenset(
    {"DYNAMIC", "ISNOT_DYNAMIC", "CONTAINS_DYNAMIC", "DOESNOTCONTAIN_DYNAMIC", "ARE", "INSTANCEOF"}
)
SECOND = timedelta(seconds=1)
FOLDED = FOLD.format("%s::text")
LAST = datetime.max.replace(microsecond=0)


def _equal(asked: MetadataCondition) -> Sql:
    value: Any = read(asked.condition, METADATA)
    return _one_of(asked, (value,))


def _in(asked: MetadataCondition) -> Sql:
    asked.only(Kind.TEXT, Kind.INTEGER, Kind.INSTANT)
    values: Any = read(asked.condition, METADATA)
    return _one_of(asked, values)


def _has(asked: MetadataCondition) -> Sql:
    asked.only()
    values: Any = read(asked.condition, METADATA)
    return _one_of(asked, values)


def _one_of(asked: MetadataCondition, operands: tuple[Operand, ...]) -> Sql:
    subject = asked.field.subject()
    values = [
        asked.reader.typed(each) if asked.field.kind is not Kind.ANY else asked.reader.resolved(each)
        for each in operands
    ]
    if asked.field.kind is Kind.INSTANT:
        return asked.field.holds(Sql(f"date_trunc('second', {subject.instant}) = ANY (%s::timestamptz[])", (values,)))
    if asked.field.kind in (Kind.INTEGER, Kind.BOOLEAN):
        sql_type = "numeric" if asked.field.kind is Kind.INTEGER else "boolean"
        return asked.field.holds(Sql(f"{subject.key} = ANY (%s::{sql_type}[])", (values,)))
    texts = [each for each in values if isinstance(each, str)]
    folded = f"ARRAY(SELECT {FOLD.format('each')} FROM unnest(%s::text[]) AS each)"
    found = [Sql(f"{subject.key} = ANY ({folded})", (texts,))]
    if asked.field.kind is Kind.ANY:
        found += _one_of_any(asked, values, texts)
    return asked.field.holds(joined(" OR ", found))


def _one_of_any(asked: MetadataCondition, values: list[Any], texts: list[str]) -> list[Sql]:
    """Besides as text: 3 is also the number, true also the truth, a function's instant also its second."""
    subject, value = asked.field.subject(), "item.value"
    found = []
    numbers = [each for each in map(number, texts) if each is not None]
    if numbers:
        # Texts were compared as texts: 3 is not the same as the code 003.
        plain = f"CASE jsonb_typeof({value}) WHEN 'number' THEN ({value} #>> '{{}}')::numeric END"
        found.append(Sql(f"{plain} = ANY (%s::numeric[])", (numbers,)))
    truths = [each.lower() == "true" for each in texts if each.lower() in ("true", "false")]
    if truths:
        found.append(Sql(f"{subject.boolean} = ANY (%s::boolean[])", (truths,)))
    instants = [asked.reader.instant(each) for each in values if isinstance(each, datetime)]
    if instants:
        found.append(Sql(f"date_trunc('second', {subject.instant}) = ANY (%s::timestamptz[])", (instants,)))
    return found


def _ordered(operator: str) -> Row:
    """> and its siblings; a time that is shown to the second stands for that whole second."""

    def row(asked: MetadataCondition) -> Sql:
        asked.only(Kind.TEXT, Kind.INTEGER, Kind.INSTANT)
        value: Any = read(asked.condition, METADATA)
        return asked.field.holds(_compared(asked, operator, asked.reader.resolved(value)))

    return row


def _between(asked: MetadataCondition) -> Sql:
    asked.only(Kind.TEXT, Kind.INTEGER, Kind.INSTANT)
    found: Any = read(asked.condition, METADATA)
    assert isinstance(found, Range)
    low, high = asked.reader.resolved(found.low), asked.reader.resolved(found.high)
    kind = _common_kind(asked.field, low, high)
    return asked.field.holds(joined(" AND ", [_compared(asked, ">=", low, kind), _compared(asked, "<=", high, kind)]))


def _common_kind(field: Field, *values: str | datetime) -> Kind:
    """How a field that may hold anything is compared with these: as number or time if they all are, else as text."""
    if field.kind is not Kind.ANY:
        return field.kind
    if all(number(each) is not None for each in values):
        return Kind.INTEGER
    return Kind.INSTANT if all(instant(each) for each in values) else Kind.TEXT


def _compared(asked: MetadataCondition, operator: str, value: str | datetime, kind: Kind | None = None) -> Sql:
    subject = asked.field.subject()
    kind = kind or _common_kind(asked.field, value)
    if kind is Kind.INSTANT:
        return _compared_instants(subject.instant, operator, asked.reader.instant(value))
    if isinstance(value, datetime):
        raise asked.reader.refused("a time cannot be compared with this field")
    if kind is Kind.INTEGER:
        wanted = asked.reader.typed(value) if asked.field.kind is kind else Decimal(value)
        return Sql(f"{subject.number} {operator} %s::numeric", (wanted,))
    return Sql(f"{subject.key} {operator} {FOLDED}", (value,))


def _compared_instants(sql: str, operator: str, value: datetime) -> Sql:
    is_behind = operator in (">", "<=")
    if is_behind and value.replace(tzinfo=None) >= LAST:
        return Sql("FALSE") if operator == ">" else Sql(f"{sql} IS NOT NULL")
    edge = value + SECOND if is_behind else value
    return Sql(f"{sql} {'>=' if operator in ('>', '>=') else '<'} %s::timestamptz", (edge,))


def _text(template: str) -> Row:
    def row(asked: MetadataCondition) -> Sql:
        asked.only(Kind.TEXT)
        value: Any = read(asked.condition, METADATA)
        found = asked.reader.resolved(value)
        if isinstance(found, datetime):
            raise asked.reader.refused("a time cannot be looked for in a text")
        count = template.count("{v}")
        sql = template.format(c=FOLD.format(asked.field.subject().text), v=FOLDED)
        return asked.field.holds(Sql(sql, (found,) * count))

    return row


def _empty_text(asked: MetadataCondition) -> Sql:
    asked.only(Kind.TEXT)
    return asked.field.holds(Sql(f"{asked.field.subject().text} = ''"))


def _within(asked: MetadataCondition) -> Sql:
    asked.only(Kind.INSTANT)
    found: Any = read(asked.condition, METADATA)
    assert isinstance(found, Period | Relative)
    return asked.field.holds(
        Sql(f"{asked.field.subject().instant} BETWEEN %s::timestamptz AND %s::timestamptz", found.bounds(asked.moment))
    )


def _part(name: str) -> Row:
    def row(asked: MetadataCondition) -> Sql:
        asked.only(Kind.INSTANT)
        part = f"extract({name} FROM {asked.field.subject().instant} AT TIME ZONE 'UTC') = %s"
        return asked.field.holds(Sql(part, (read(asked.condition, METADATA),)))

    return row


def _relative(operator: str) -> Row:
    def row(asked: MetadataCondition) -> Sql:
        asked.only(Kind.INSTANT)
        found: Any = read(asked.condition, METADATA)
        assert isinstance(found, Relative)
        edge = found.instant(asked.moment)
        return asked.field.holds(Sql(f"{asked.field.subject().instant} {operator} %s::timestamptz", (edge,)))

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
    "ANYTHING": lambda asked: Sql("TRUE"),
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

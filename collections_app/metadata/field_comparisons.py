"""The operators that compare two metadata fields. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from system.encoded_query import METADATA, Distance, Path, read

from .conditions import MetadataCondition, Row, not_empty, refuse_unless
from .fields import Kind, Sql, joined


def _with_other(restriction: MetadataCondition, path: Path, test: Callable[[Any, Any], str]) -> Sql:
    """Apply the test to the values of the field and those of the other field."""
    field, other = restriction.field, restriction.other(path)
    inner = other.holds(Sql(test(field.subject("item"), other.subject("other"))), "other")
    return field.holds(inner)


def same_as(restriction: MetadataCondition) -> Sql:
    path: Any = read(restriction.condition, METADATA)
    other = restriction.other(path)
    is_instant = Kind.INSTANT in (restriction.field.kind, other.kind)

    def same(one: Any, two: Any) -> str:
        if is_instant:
            return f"date_trunc('second', {one.instant}) = date_trunc('second', {two.instant})"
        return f"{one.same} = {two.same}"

    one = not_empty(restriction)
    two = not_empty(MetadataCondition(other, restriction.condition, restriction.moment))
    both_empty = Sql("(") + one + Sql(") IS NOT TRUE AND (") + two + Sql(") IS NOT TRUE")
    return joined(" OR ", [both_empty, _with_other(restriction, path, same)])


def compared_fields(operator: str) -> Row:
    def row(restriction: MetadataCondition) -> Sql:
        path: Any = read(restriction.condition, METADATA)
        for field in (restriction.field, restriction.other(path)):
            refuse_unless(restriction.condition, field, Kind.INTEGER, Kind.INSTANT)

        def test(one: Any, two: Any) -> str:
            seconds = f"date_trunc('second', {one.instant}) {operator} date_trunc('second', {two.instant})"
            return f"({one.number} {operator} {two.number} OR {seconds})"

        return _with_other(restriction, path, test)

    return row


def distance(is_more: bool) -> Row:
    """More or less than a number of units after (or before) the other field."""

    def row(restriction: MetadataCondition) -> Sql:
        distance: Any = read(restriction.condition, METADATA)
        assert isinstance(distance, Distance)
        for field in (restriction.field, restriction.other(distance.path)):
            refuse_unless(restriction.condition, field, Kind.INSTANT)
        months = {"quarter": f"{3 * distance.count} months"}
        length = f"interval '{months.get(distance.unit, f'{distance.count} {distance.unit}s')}'"
        beyond, back, sign = ("<", ">", "-") if distance.is_before else (">", "<", "+")

        def test(one: Any, two: Any) -> str:
            limit = f"{two.instant} {sign} {length}"
            if is_more:
                return f"{one.instant} {beyond} {limit}"
            return f"({one.instant} {back} {limit} AND {one.instant} {beyond}= {two.instant})"

        return _with_other(restriction, distance.path, test)

    return row

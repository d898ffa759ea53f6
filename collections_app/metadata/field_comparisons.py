"""The operators that compare two metadata fields. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from system.encoded_query import METADATA, Distance, Path, read

from .conditions import MetadataCondition, Row, not_empty, refuse_unless
from .fields import Kind, Sql, joined


def _with_other(asked: MetadataCondition, path: Path, test: Callable[[Any, Any], str]) -> Sql:
    """The test of a value of the field and one of the other field."""
    field, other = asked.field, asked.other(path)
    inner = other.holds(Sql(test(field.subject("item"), other.subject("other"))), "other")
    return field.holds(inner)


def same_as(asked: MetadataCondition) -> Sql:
    path: Any = read(asked.condition, METADATA)
    other = asked.other(path)
    is_instant = Kind.INSTANT in (asked.field.kind, other.kind)

    def same(one: Any, two: Any) -> str:
        if is_instant:
            return f"date_trunc('second', {one.instant}) = date_trunc('second', {two.instant})"
        return f"{one.same} = {two.same}"

    one = not_empty(asked)
    two = not_empty(MetadataCondition(other, asked.condition, asked.moment))
    both_empty = Sql("(") + one + Sql(") IS NOT TRUE AND (") + two + Sql(") IS NOT TRUE")
    return joined(" OR ", [both_empty, _with_other(asked, path, same)])


def compared_fields(operator: str) -> Row:
    def row(asked: MetadataCondition) -> Sql:
        path: Any = read(asked.condition, METADATA)
        for field in (asked.field, asked.other(path)):
            refuse_unless(asked.condition, field, Kind.INTEGER, Kind.INSTANT)

        def test(one: Any, two: Any) -> str:
            seconds = f"date_trunc('second', {one.instant}) {operator} date_trunc('second', {two.instant})"
            return f"({one.number} {operator} {two.number} OR {seconds})"

        return _with_other(asked, path, test)

    return row


def distance(is_more: bool) -> Row:
    """Further than so many units after (before) the other field; nearer, on the same side of it."""

    def row(asked: MetadataCondition) -> Sql:
        distance: Any = read(asked.condition, METADATA)
        assert isinstance(distance, Distance)
        for field in (asked.field, asked.other(distance.path)):
            refuse_unless(asked.condition, field, Kind.INSTANT)
        months = {"quarter": f"{3 * distance.count} months"}
        length = f"interval '{months.get(distance.unit, f'{distance.count} {distance.unit}s')}'"
        beyond, back, sign = ("<", ">", "-") if distance.is_before else (">", "<", "+")

        def test(one: Any, two: Any) -> str:
            far = f"{two.instant} {sign} {length}"
            if is_more:
                return f"{one.instant} {beyond} {far}"
            return f"({one.instant} {back} {far} AND {one.instant} {beyond}= {two.instant})"

        return _with_other(asked, distance.path, test)

    return row

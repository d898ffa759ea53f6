"""Compiles an encoded query on metadata to an SQL condition. Pure.

"The filter is the encoded-query language: field=value joined by ^". Names are parameters as values are, and only the
metadata can be named: what the server knows of a document (its id, collection, owner, state) lies in other columns.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from system.encoded_query import METADATA, Condition, Group, Moment, Query, QueryError, SubQuery, Term, parse

from .conditions import MetadataCondition
from .fields import Field, Kind, Sql, joined
from .operands import number
from .operators import NEGATIONS, RECORDS_ONLY, ROWS


@dataclass(frozen=True, slots=True)
class Filter:
    """Which documents are wanted; without conditions, all."""

    query: Query = field(default_factory=Query)
    moment: Moment = field(default_factory=lambda: Moment(datetime.now(UTC), ""))

    @property
    def is_empty(self) -> bool:
        return not self.query.groups

    def sql(self, column: str) -> tuple[str, list[Any]]:
        """A condition on a row by this column of type jsonb, with %s for its values.

        >>> Filter().sql("metadata")
        ('TRUE', [])
        """
        if self.is_empty:
            return "TRUE", []
        found = _Writer(column, self.moment).groups(self.query.groups)
        return found.text, list(found.values)


def read(text: str, moment: Moment | None = None) -> Filter:
    """The filter that the text says, or `QueryError`: also for values that their field cannot have.

    `moment` tells the time, for values that depend on it.

    >>> read("priority=high")
    Traceback (most recent call last):
    ...
    system.encoded_query.errors.QueryError: priority: a whole number is expected at position 9: 'high'
    """
    query = parse(text, METADATA)
    if query.order:
        # Chosen: refused and not left out: nobody shall believe in an order that there is not.
        raise QueryError("a filter does not sort", query.order[0].position, "ORDERBY")
    found = Filter(query, moment) if moment else Filter(query)
    found.sql("metadata")
    return found


@dataclass(frozen=True, slots=True)
class _Writer:
    column: str
    moment: Moment

    def groups(self, groups: tuple[Group, ...]) -> Sql:
        return joined(" OR ", [joined(" AND ", [self.term(each) for each in group.terms]) for group in groups])

    def term(self, term: Term) -> Sql:
        return joined(" OR ", [self.factor(each) for each in term.factors])

    def factor(self, factor: Condition | SubQuery) -> Sql:
        return self.groups(factor.groups) if isinstance(factor, SubQuery) else self.condition(factor)

    def condition(self, condition: Condition) -> Sql:
        name = condition.operator
        if name in RECORDS_ONLY:
            raise QueryError(f"{name} asks for what metadata do not have", condition.position, name)
        is_negation = name in NEGATIONS
        row = ROWS[str(condition.row.complement) if is_negation else name]
        asked = MetadataCondition(Field(self.column, condition.path), condition, self.moment)
        positive = row(asked)
        if is_negation:
            # Never NULL: a document without a value must be on exactly one side.
            return Sql("((") + positive + Sql(") IS NOT TRUE)")
        return joined(" AND ", [*self.implied(asked), positive])

    def implied(self, asked: MetadataCondition) -> list[Sql]:
        """What `=` implies and the index on metadata can answer; texts only where case plays no part in them."""
        condition, field = asked.condition, asked.field
        value = condition.value
        if condition.operator != "=" or len(field.path) > 1 or value.lower() != value.upper():
            return []
        if field.kind in (Kind.BOOLEAN, Kind.INSTANT) or value.startswith("javascript:"):
            return []
        whole = number(value)
        written = [json.dumps(value, ensure_ascii=False)] if field.kind is not Kind.INTEGER else [str(int(value))]
        if field.kind is Kind.ANY:
            written += [str(whole)] if whole is not None else []
            written += [f"[{each}]" for each in written]
        name = json.dumps(field.path[0], ensure_ascii=False)
        return [joined(" OR ", [Sql(f"{self.column} @> %s::jsonb", (f"{{{name}: {each}}}",)) for each in written])]

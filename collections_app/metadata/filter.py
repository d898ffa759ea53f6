"""Compiles an encoded query on metadata to an SQL condition. Pure.

"The filter is the encoded-query language: field=value joined by ^". Names and values are passed as parameters. Only
metadata can be filtered: what the server stores about a document (id, collection, owner, state) is in other columns.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from system.encoded_query import METADATA, Condition, Group, Moment, Query, QueryError, SubQuery, Term, parse

from .fields import FieldKind, FilterField, SqlParameters, join_conditions, parse_number
from .operators import FieldConditionCompiler


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on documents; an empty one matches all."""

    query: Query = field(default_factory=Query)
    moment: Moment = field(default_factory=lambda: Moment(datetime.now(UTC), ""))

    @property
    def is_empty(self) -> bool:
        return not self.query.groups

    def sql(self, column: str) -> tuple[str, list[Any]]:
        """Returns the condition on a jsonb column, with %s placeholders, and its values.

        >>> Filter().sql("metadata")
        ('TRUE', [])
        """
        if self.is_empty:
            return "TRUE", []
        compiler = _FilterCompiler(column, self.moment)
        return compiler.parameters.to_positional(compiler.compile_groups(self.query.groups))


def parse_filter(text: str, moment: Moment | None = None) -> Filter:
    """Parse a filter; raises `QueryError`, also for values that are invalid for their field.

    `moment` is the reference time for relative values.

    >>> parse_filter("priority=high")
    Traceback (most recent call last):
    ...
    system.encoded_query.errors.QueryError: priority: a whole number is expected at position 9: 'high'
    """
    query = parse(text, METADATA)
    if query.order:
        # Chosen: refused rather than ignored, because callers would rely on an order that does not exist.
        raise QueryError("sorting is not supported in a filter", query.order[0].position, "ORDERBY")
    filter_ = Filter(query, moment) if moment else Filter(query)
    filter_.sql("metadata")
    return filter_


@dataclass(frozen=True, slots=True)
class _FilterCompiler:
    column: str
    moment: Moment
    parameters: SqlParameters = field(default_factory=SqlParameters)

    def compile_groups(self, groups: tuple[Group, ...]) -> str:
        return join_conditions(
            " OR ", [join_conditions(" AND ", [self.compile_term(term) for term in group.terms]) for group in groups]
        )

    def compile_term(self, term: Term) -> str:
        factors = [
            self.compile_groups(factor.groups) if isinstance(factor, SubQuery) else self.compile_condition(factor)
            for factor in term.factors
        ]
        return join_conditions(" OR ", factors)

    def compile_condition(self, condition: Condition) -> str:
        compiler = FieldConditionCompiler(self.parameters, self.column, condition, self.moment)
        sql = compiler.sql()
        return join_conditions(" AND ", [*self.index_conditions(condition, compiler.field), sql])

    def index_conditions(self, condition: Condition, field: FilterField) -> list[str]:
        """Returns conditions that `=` implies and the metadata index supports; none for values with cased letters."""
        value = condition.value
        if condition.operator != "=" or len(field.path) > 1 or value.lower() != value.upper():
            return []
        if field.kind in (FieldKind.BOOLEAN, FieldKind.INSTANT) or value.startswith("javascript:"):
            return []
        json_values = [str(int(value)) if field.kind is FieldKind.INTEGER else json.dumps(value, ensure_ascii=False)]
        if field.kind is FieldKind.ANY:
            number = parse_number(value)
            json_values += [] if number is None else [str(number)]
            json_values += [f"[{text}]" for text in json_values]
        name = json.dumps(field.path[0], ensure_ascii=False)
        placeholders = [self.parameters.add(f"{{{name}: {text}}}", "jsonb") for text in json_values]
        return [join_conditions(" OR ", [f"{self.column} @> {placeholder}" for placeholder in placeholders])]

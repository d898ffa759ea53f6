"""Compiles a condition on a metadata field to SQL. Pure.

A field represents a set of values, so a test is wrapped in EXISTS. Negations are complements: every document matches
either an operator or its negation.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from system.encoded_query import (
    METADATA,
    OPERATORS,
    ComparisonKind,
    Condition,
    Moment,
    Operand,
    QueryError,
    Range,
    ValueFunction,
    ValueKind,
    read_boolean,
    read_instant,
    read_value,
    resolve,
)
from system.encoded_query.sql import COMPARISONS, FOLD_ARRAY_SQL, FOLD_SQL, ConditionCompiler, ValueReader

from .fields import (
    INTEGER_BOUND,
    FieldKind,
    FilterField,
    SqlParameters,
    ValueExpressions,
    join_conditions,
    parse_instant,
    parse_number,
)

# Operators for features that metadata does not have: groups and roles, word search, tables.
RECORD_OPERATORS = frozenset(name for name, row in OPERATORS.items() if (row.negates or name) not in COMPARISONS)
ONE_SECOND = timedelta(seconds=1)
LAST_INSTANT = datetime.max.replace(microsecond=0)
COMPARISON_KINDS: Mapping[FieldKind, ComparisonKind] = {
    FieldKind.TEXT: ComparisonKind.TEXT,
    FieldKind.INTEGER: ComparisonKind.INTEGER,
    FieldKind.BOOLEAN: ComparisonKind.BOOLEAN,
    FieldKind.INSTANT: ComparisonKind.DATETIME,
}


class FieldConditionCompiler(ConditionCompiler[ValueExpressions]):
    """Binds resolved values, because a filter is compiled for each request."""

    dialect = METADATA
    comparisons = COMPARISONS

    def __init__(self, parameters: SqlParameters, column: str, condition: Condition, moment: Moment) -> None:
        if condition.operator in RECORD_OPERATORS:
            raise QueryError(
                f"{condition.operator} is not supported for metadata", condition.position, condition.operator
            )
        self.field = FilterField(column, condition.path)
        self.other_field = _other_field(column, condition)
        other = self.other_field.subject("other") if self.other_field else None
        super().__init__(condition, self.field.subject(), other)
        self.parameters = parameters
        self.moment = moment
        for field in filter(None, (self.field, self.other_field)):
            kind = COMPARISON_KINDS.get(field.kind)  # every operator fits an untyped field
            if kind is not None and not condition.row.fits(kind, condition.path):
                message = f"{condition.operator} cannot be used with {field.name}, whose type is {field.kind}"
                raise QueryError(message, condition.position)

    def bind(self, reader: ValueReader, sql_type: str) -> str:
        return self.parameters.add(reader(self.condition, self.moment), sql_type)

    def any_value(self, test: str) -> str:
        if self.other_field:
            test = self.other_field.any_value(self.parameters, test, "other")
        return self.field.any_value(self.parameters, test)

    def read_text(self, condition: Condition, moment: Moment) -> str:
        value: Any = read_value(condition)
        text = self.resolve_operand(value)
        if isinstance(text, datetime):
            raise self.field_error("a time cannot be compared with text")
        return text

    def resolve_operand(self, operand: Operand) -> str | datetime:
        # Metadata has no users: the caller's id would be compared as plain text.
        if isinstance(operand, ValueFunction) and operand.name == "getUserID":
            raise self.field_error("a value that depends on the caller cannot be used in a filter")
        return resolve(operand, self.moment)

    def typed_value(self, operand: Operand) -> Any:
        value = self.resolve_operand(operand)
        if self.field.kind is FieldKind.INSTANT:
            return self.instant_value(value)
        if isinstance(value, datetime):
            raise self.field_error("a time cannot be compared with this field")
        if self.field.kind is FieldKind.INTEGER:
            is_number = re.fullmatch("[+-]?[0-9]{1,19}", value, re.ASCII)
            if not is_number or not -INTEGER_BOUND <= int(value) < INTEGER_BOUND:
                raise self.field_error("a whole number is expected")
            return int(value)
        if self.field.kind is FieldKind.BOOLEAN:
            try:
                return read_boolean(value)
            except QueryError as error:
                raise self.field_error(error.message) from None
        return value

    def instant_value(self, value: str | datetime) -> datetime:
        """Returns the time truncated to the second, as times are displayed."""
        try:
            return read_instant(value).replace(microsecond=0)
        except QueryError as error:
            raise self.field_error(error.message) from None

    def field_error(self, message: str) -> QueryError:
        return QueryError(f"{self.field.name}: {message}", self.condition.value_position, self.condition.value)

    def equal(self) -> str:
        value: Any = read_value(self.condition)
        return self._one_of((value,))

    def one_of(self) -> str:
        values: Any = read_value(self.condition, METADATA)
        return self._one_of(values)

    has = one_of

    def _one_of(self, operands: tuple[Operand, ...]) -> str:
        if self.field.kind is FieldKind.ANY:
            return self._one_of_untyped([self.resolve_operand(operand) for operand in operands])
        values = [self.typed_value(operand) for operand in operands]
        if self.field.kind is FieldKind.TEXT:
            return self.any_value(self._text_predicate(values))
        if self.field.kind is FieldKind.INSTANT:
            return self.any_value(self._instant_predicate(values))
        sql_type = "numeric" if self.field.kind is FieldKind.INTEGER else "boolean"
        return self.any_value(f"{self.subject.comparison_key} = ANY ({self.parameters.add(values, f'{sql_type}[]')})")

    def _text_predicate(self, texts: list[str]) -> str:
        return f"{self.subject.comparison_key} = ANY ({FOLD_ARRAY_SQL.format(self.parameters.add(texts, 'text[]'))})"

    def _instant_predicate(self, instants: list[datetime]) -> str:
        return f"{self.subject.second} = ANY ({self.parameters.add(instants, 'timestamptz[]')})"

    def _one_of_untyped(self, values: list[str | datetime]) -> str:
        """Compares with values of all types: 3 is text and a number, true is text and a boolean."""
        texts = [value for value in values if isinstance(value, str)]
        tests = [self._text_predicate(texts)]
        numbers = [value for value in map(parse_number, texts) if value is not None]
        if numbers:
            # Text is compared as text: 3 does not equal the code 003.
            number_sql = "CASE jsonb_typeof(item.value) WHEN 'number' THEN item.value::numeric END"
            tests.append(f"{number_sql} = ANY ({self.parameters.add(numbers, 'numeric[]')})")
        booleans = [text.lower() == "true" for text in texts if text.lower() in ("true", "false")]
        if booleans:
            tests.append(f"{self.subject.boolean} = ANY ({self.parameters.add(booleans, 'boolean[]')})")
        instants = [self.instant_value(value) for value in values if isinstance(value, datetime)]
        if instants:
            tests.append(self._instant_predicate(instants))
        return self.any_value(join_conditions(" OR ", tests))

    def compare_order(self, operator: str) -> str:
        value: Any = read_value(self.condition)
        return self._any_ordered((operator, self.resolve_operand(value)))

    def between(self) -> str:
        value_range: Any = read_value(self.condition)
        assert isinstance(value_range, Range)
        low, high = self.resolve_operand(value_range.low), self.resolve_operand(value_range.high)
        return self._any_ordered((">=", low), ("<=", high))

    def _any_ordered(self, *bounds: tuple[str, str | datetime]) -> str:
        kind = _common_kind(self.field, *[value for _, value in bounds])
        test = " AND ".join([self._ordered_test(operator, value, kind) for operator, value in bounds])
        number_tests = [
            f"{{number}} {operator} {self.parameters.add(number, 'numeric')}"
            for operator, value in bounds
            if kind is FieldKind.INTEGER and (number := parse_number(value)) is not None
        ]
        return self.field.any_value(self.parameters, f"({test})", number_test=" AND ".join(number_tests))

    def _ordered_test(self, operator: str, value: str | datetime, kind: FieldKind) -> str:
        if kind is FieldKind.INSTANT:
            return self._ordered_instant_test(operator, self.instant_value(value))
        if isinstance(value, datetime):
            raise self.field_error("a time cannot be compared with this field")
        if kind is FieldKind.INTEGER:
            operand = self.typed_value(value) if self.field.kind is kind else Decimal(value)
            return f"{self.subject.number} {operator} {self.parameters.add(operand, 'numeric')}"
        return f"{self.subject.comparison_key} {operator} {FOLD_SQL.format(self.parameters.add(value, 'text'))}"

    def _ordered_instant_test(self, operator: str, value: datetime) -> str:
        instant_sql = self.subject.instant
        is_after_second = operator in (">", "<=")
        if is_after_second and value.replace(tzinfo=None) >= LAST_INSTANT:
            return "FALSE" if operator == ">" else f"{instant_sql} IS NOT NULL"
        bound = self.parameters.add(value + ONE_SECOND if is_after_second else value, "timestamptz")
        return f"{instant_sql} {'>=' if operator in ('>', '>=') else '<'} {bound}"

    def not_empty(self) -> str:
        return self.field.not_empty(self.parameters)

    def same_as(self) -> str:
        assert self.other_field is not None
        subject, other = self.subject, self.other
        is_instant = FieldKind.INSTANT in (subject.kind, other.kind)
        test = f"{subject.second} = {other.second}" if is_instant else f"{subject.equality_key} = {other.equality_key}"
        empty_tests = [f"({field.not_empty(self.parameters)}) IS NOT TRUE" for field in (self.field, self.other_field)]
        return join_conditions(" OR ", [" AND ".join(empty_tests), self.any_value(test)])


def _other_field(column: str, condition: Condition) -> FilterField | None:
    value: Any = read_value(condition, METADATA)
    if condition.row.kind is ValueKind.PATH:
        return FilterField(column, value)
    return FilterField(column, value.path) if condition.row.kind is ValueKind.DISTANCE else None


def _common_kind(field: FilterField, *values: str | datetime) -> FieldKind:
    """Returns how to compare an untyped field: as numbers or times if all values are such, otherwise as text."""
    if field.kind is not FieldKind.ANY:
        return field.kind
    if all(parse_number(value) is not None for value in values):
        return FieldKind.INTEGER
    return FieldKind.INSTANT if all(parse_instant(value) for value in values) else FieldKind.TEXT

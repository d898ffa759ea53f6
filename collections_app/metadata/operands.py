"""The values in a filter: numbers, instants, booleans or plain text. Pure."""

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from system.encoded_query import (
    Condition,
    Moment,
    Operand,
    QueryError,
    ValueFunction,
    read_boolean,
    read_instant,
    resolve,
)

from .fields import FieldKind, FilterField

INTEGER_BOUND = 2**63
NUMBER_PATTERN = re.compile(r"-?[0-9]{1,100}(?:\.[0-9]{1,100})?")


@dataclass(frozen=True, slots=True)
class OperandReader:
    """Reads the values of one condition for its field. Errors name the field."""

    field: FilterField
    condition: Condition
    moment: Moment

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
        """Truncated to the second, as times are displayed."""
        try:
            return read_instant(value).replace(microsecond=0)
        except QueryError as error:
            raise self.field_error(error.message) from None

    def field_error(self, message: str) -> QueryError:
        return QueryError(f"{self.field.name}: {message}", self.condition.value_position, self.condition.value)


def parse_number(value: str | datetime) -> Decimal | None:
    """
    >>> parse_number("3.50"), parse_number("3a"), parse_number("1e3")
    (Decimal('3.50'), None, None)
    """
    return Decimal(value) if isinstance(value, str) and NUMBER_PATTERN.fullmatch(value) else None


def parse_instant(value: str | datetime) -> datetime | None:
    """
    >>> parse_instant("2024-05-19").isoformat(), parse_instant("2024")
    ('2024-05-19T00:00:00+00:00', None)
    """
    try:
        return read_instant(value).replace(microsecond=0)
    except QueryError:
        return None

"""The metadata fields of a filter: six typed fields, and the values that other fields hold. Pure.

Any other field can hold text, a number, a boolean, an array of these, or an object, so it represents a set of values:
none if it is missing or empty, one, or the items of its array. A path leads into objects and into the objects of
arrays. A condition is true if it is true for any of the values; its negation is true for all other documents.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from system.encoded_query import Path, QueryError, read_instant
from system.encoded_query.sql import FOLD_SQL

# Checked before conversion, because one invalid date would make the whole search fail.
INSTANT_PATTERN_SQL = (
    r"'^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{{1,9}})?)?"
    r"(Z|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)?)?$'"
)
INSTANT_SQL = (
    "CASE WHEN {0} ~ "
    + INSTANT_PATTERN_SQL
    + " THEN CASE WHEN pg_input_is_valid({0}, 'timestamptz') THEN ({0})::timestamptz END END"
)
PLACEHOLDER = re.compile(r"%\(([0-9]+)\)s")
INTEGER_BOUND = 2**63
NUMBER_PATTERN = re.compile(r"-?[0-9]{1,100}(?:\.[0-9]{1,100})?")
NUMBER_PATTERN_SQL = "'^-?[0-9]{{1,100}}([.][0-9]{{1,100}})?$'"


class FieldKind(StrEnum):
    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    INSTANT = "date and time"
    ANY = "any"


# "sys_id, status, type text, priority integer, flag boolean, created ISO 8601 UTC"
FIELD_KINDS: Mapping[str, FieldKind] = {
    "sys_id": FieldKind.TEXT,
    "status": FieldKind.TEXT,
    "type": FieldKind.TEXT,
    "priority": FieldKind.INTEGER,
    "flag": FieldKind.BOOLEAN,
    "created": FieldKind.INSTANT,
}


class SqlParameters:
    """The values of a filter. Placeholders are numbered until the SQL is complete, so they can be added in any order.

    >>> parameters = SqlParameters()
    >>> first, second = parameters.add(1, "integer"), parameters.add("x", "text")
    >>> parameters.to_positional(f"a = {second} AND b = {first}")
    ('a = %s::text AND b = %s::integer', ['x', 1])
    """

    def __init__(self) -> None:
        self._values: list[Any] = []

    def add(self, value: Any, sql_type: str) -> str:
        self._values.append(value)
        return f"%({len(self._values) - 1})s::{sql_type}"

    def to_positional(self, sql: str) -> tuple[str, list[Any]]:
        values = [self._values[int(number)] for number in PLACEHOLDER.findall(sql)]
        return PLACEHOLDER.sub("%s", sql), values


def join_conditions(separator: str, parts: list[str]) -> str:
    """
    >>> join_conditions(" AND ", ["a", "b"])
    '(a AND b)'
    """
    return parts[0] if len(parts) == 1 else f"({separator.join(parts)})"


@dataclass(frozen=True, slots=True)
class ValueExpressions:
    """SQL expressions for one value in each type; NULL if the value does not have that type."""

    kind: FieldKind
    raw: str
    comparison_key: str
    number: str
    boolean: str
    instant: str
    equality_key: str

    @property
    def second(self) -> str:
        return f"date_trunc('second', {self.instant})"

    def compare(self, operator: str, other: "ValueExpressions") -> str:
        return f"({self.number} {operator} {other.number} OR {self.second} {operator} {other.second})"


@dataclass(frozen=True, slots=True)
class FilterField:
    column: str
    path: Path

    @property
    def kind(self) -> FieldKind:
        return FIELD_KINDS.get(self.path[0], FieldKind.ANY) if len(self.path) == 1 else FieldKind.ANY

    @property
    def name(self) -> str:
        return ".".join(self.path)

    def subject(self, item: str = "item") -> ValueExpressions:
        """Returns the expressions for a typed field, or for the values that `any_value` selects under this alias."""
        return _untyped_expressions(f"{item}.value") if self.kind is FieldKind.ANY else _typed_expressions(self)

    def any_value(self, parameters: SqlParameters, test: str, item: str = "item", number_test: str = "") -> str:
        """Returns SQL that is true if the test is true for at least one of the values.

        A number can have a simpler test.
        """
        if self.kind is not FieldKind.ANY:
            return f"({test})"
        names = "".join([f".{json.dumps(step, ensure_ascii=False)}" for step in self.path])
        path = parameters.add(f"lax ${names}[*]", "jsonpath")
        any_item = f"EXISTS (SELECT FROM jsonb_path_query({self.column}, {path}) AS {item} (value) WHERE {test})"
        if len(self.path) > 1:
            return any_item
        # Most fields hold one value, and testing it takes a third of the time. OFFSET 0: it is read only once.
        value = f"{self.column} -> {parameters.add(self.path[0], 'text')}"
        one_value = f"EXISTS (SELECT FROM (SELECT {value} OFFSET 0) AS {item} (value) WHERE {test})"
        one_number = f" WHEN 'number' THEN {number_test.format(number=f'({value})::numeric')}" if number_test else ""
        return f"CASE jsonb_typeof({value}) WHEN 'array' THEN {any_item}{one_number} ELSE {one_value} END"

    def not_empty(self, parameters: SqlParameters) -> str:
        if self.kind is not FieldKind.ANY:
            return f"{self.subject().comparison_key} IS NOT NULL"
        test = """item.value NOT IN ('null'::jsonb, '""'::jsonb, '{}'::jsonb, '[]'::jsonb)"""
        return self.any_value(parameters, test)


def _typed_expressions(field: FilterField) -> ValueExpressions:
    name = field.path[0]
    text = f"({field.column} ->> '{name}')"
    kind = field.kind
    number = f"CASE WHEN jsonb_typeof({field.column} -> '{name}') = 'number' THEN {text}::numeric END"
    boolean = f"CASE WHEN jsonb_typeof({field.column} -> '{name}') = 'boolean' THEN {text}::boolean END"
    instant = INSTANT_SQL.format(text)
    folded = f"nullif({FOLD_SQL.format(text)}, '')"
    keys = {FieldKind.TEXT: folded, FieldKind.INTEGER: number, FieldKind.BOOLEAN: boolean, FieldKind.INSTANT: instant}
    equality_key = f"trim_scale({number})::text" if kind is FieldKind.INTEGER else folded
    return ValueExpressions(kind, text, keys[kind], number, boolean, f"({instant})", equality_key)


def _untyped_expressions(value: str) -> ValueExpressions:
    plain = f"({value} #>> '{{}}')"
    text = f"CASE WHEN jsonb_typeof({value}) IN ('string', 'number', 'boolean') THEN {plain} END"
    number = (
        f"CASE jsonb_typeof({value}) WHEN 'number' THEN {value}::numeric WHEN 'string' THEN "
        f"CASE WHEN {plain} ~ {NUMBER_PATTERN_SQL.format()} THEN {plain}::numeric END END"
    )
    key = f"CASE jsonb_typeof({value}) WHEN 'string' THEN nullif({FOLD_SQL.format(plain)}, '') END"
    boolean = f"CASE jsonb_typeof({value}) WHEN 'boolean' THEN {plain}::boolean END"
    instant = f"CASE jsonb_typeof({value}) WHEN 'string' THEN {INSTANT_SQL.format(plain)} END"
    equality_key = (
        f"CASE jsonb_typeof({value}) WHEN 'number' THEN trim_scale({value}::numeric)::text "
        f"WHEN 'string' THEN nullif({FOLD_SQL.format(plain)}, '') WHEN 'boolean' THEN {plain} END"
    )
    return ValueExpressions(FieldKind.ANY, text, key, number, boolean, f"({instant})", equality_key)


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

"""The metadata fields of a filter: six typed fields, and the values that other fields hold. Pure.

Any other field can hold text, a number, a boolean, an array of these, or an object, so it represents a set of values:
none if it is missing or empty, one, or the items of its array. A path leads into objects and into the objects of
arrays. A condition is true if it is true for one of the values; its negation is true for all other documents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from system.encoded_query import Path

# Text is compared as in the Table API: ignoring case, by code points.
FOLD = 'lower({} COLLATE "pg_c_utf8")'
# Checked before conversion, because one invalid date would fail the whole search.
INSTANT = (
    r"'^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{{1,9}})?)?"
    r"(Z|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)?)?$'"
)
AS_INSTANT = (
    "CASE WHEN {0} ~ "
    + INSTANT
    + " THEN CASE WHEN pg_input_is_valid({0}, 'timestamptz') THEN ({0})::timestamptz END END"
)
NUMBER_AS_TEXT = "'^-?[0-9]{{1,100}}([.][0-9]{{1,100}})?$'"


class Kind(StrEnum):
    """What a field holds; ANY for untyped fields."""

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    INSTANT = "date and time"
    ANY = "any"


TYPED: Mapping[str, Kind] = {
    "sys_id": Kind.TEXT,
    "status": Kind.TEXT,
    "type": Kind.TEXT,
    "priority": Kind.INTEGER,
    "flag": Kind.BOOLEAN,
    "created": Kind.INSTANT,
}


@dataclass(frozen=True, slots=True)
class Sql:
    """SQL with the values of its %s placeholders, in order."""

    text: str
    values: tuple[Any, ...] = ()

    def __add__(self, other: Sql) -> Sql:
        return Sql(self.text + other.text, self.values + other.values)


def joined(word: str, parts: list[Sql]) -> Sql:
    """
    >>> joined(" AND ", [Sql("a = %s", (1,)), Sql("b")])
    Sql(text='(a = %s AND b)', values=(1,))
    """
    if len(parts) == 1:
        return parts[0]
    return Sql(
        f"({word.join([part.text for part in parts])})", tuple([value for part in parts for value in part.values])
    )


@dataclass(frozen=True, slots=True)
class Subject:
    """SQL expressions for one value in each type; NULL if the value does not have that type."""

    kind: Kind
    text: str
    key: str
    number: str
    boolean: str
    instant: str
    same: str


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the metadata in this column."""

    column: str
    path: Path

    @property
    def kind(self) -> Kind:
        return TYPED.get(self.path[0], Kind.ANY) if len(self.path) == 1 else Kind.ANY

    @property
    def name(self) -> str:
        return ".".join(self.path)

    def subject(self, item: str = "item") -> Subject:
        """The expressions for the field itself, or for the values that `values` gives this alias."""
        return _any(f"{item}.value") if self.kind is Kind.ANY else _typed(self)

    def holds(self, test: Sql, item: str = "item") -> Sql:
        """True if the test is true for at least one of the values."""
        if self.kind is not Kind.ANY:
            return Sql(f"({test.text})", test.values)
        return Sql("EXISTS (SELECT FROM ") + self.values(item) + Sql(f" WHERE {test.text})", test.values)

    def values(self, item: str) -> Sql:
        """The values of an untyped field, for a FROM clause."""
        names = "".join([f".{json.dumps(step, ensure_ascii=False)}" for step in self.path])
        return Sql(f"jsonb_path_query({self.column}, %s::jsonpath) AS {item} (value)", (f"lax ${names}[*]",))


def _typed(field: Field) -> Subject:
    name = field.path[0]
    text = f"({field.column} ->> '{name}')"
    kind = field.kind
    number = f"CASE WHEN jsonb_typeof({field.column} -> '{name}') = 'number' THEN {text}::numeric END"
    boolean = f"CASE WHEN jsonb_typeof({field.column} -> '{name}') = 'boolean' THEN {text}::boolean END"
    instant = AS_INSTANT.format(text)
    folded = f"nullif({FOLD.format(text)}, '')"
    key = {Kind.TEXT: folded, Kind.INTEGER: number, Kind.BOOLEAN: boolean, Kind.INSTANT: instant}[kind]
    same = f"trim_scale({number})::text" if kind is Kind.INTEGER else folded
    return Subject(kind, text, key, number, boolean, f"({instant})", same)


def _any(value: str) -> Subject:
    plain = f"({value} #>> '{{}}')"
    text = f"CASE WHEN jsonb_typeof({value}) IN ('string', 'number', 'boolean') THEN {plain} END"
    number = (
        f"CASE jsonb_typeof({value}) WHEN 'number' THEN {plain}::numeric WHEN 'string' THEN "
        f"CASE WHEN {plain} ~ {NUMBER_AS_TEXT.format()} THEN {plain}::numeric END END"
    )
    key = f"CASE jsonb_typeof({value}) WHEN 'string' THEN nullif({FOLD.format(plain)}, '') END"
    boolean = f"CASE jsonb_typeof({value}) WHEN 'boolean' THEN {plain}::boolean END"
    instant = f"CASE jsonb_typeof({value}) WHEN 'string' THEN {AS_INSTANT.format(plain)} END"
    same = (
        f"CASE jsonb_typeof({value}) WHEN 'number' THEN trim_scale({plain}::numeric)::text "
        f"WHEN 'string' THEN nullif({FOLD.format(plain)}, '') WHEN 'boolean' THEN {plain} END"
    )
    return Subject(Kind.ANY, text, key, number, boolean, f"({instant})", same)

"""The data that the oracle evaluates: a catalogue, its records, and callers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from system.encoded_query import Moment
from tableapi.catalogue.definitions import OWN_TABLE_COLUMN, Catalogue, Column, Table

# Column name → Python value: str, int, Decimal, bool, datetime in UTC, date, list[str], parsed JSON, None.
# Contains all columns of the record's own table.
Row = dict[str, Any]


class QueryRefused(Exception):
    """The query is invalid and must be refused with a 400, for any reason."""


@dataclass(frozen=True)
class World:
    """Each record is stored once, under its own table."""

    catalogue: Catalogue
    rows: Mapping[str, Mapping[str, Row]]

    def records(self, table: Table) -> Iterator[Row]:
        """The records of a table and of all tables that extend it."""
        for name in table.family:
            yield from self.rows.get(name, {}).values()

    def find(self, table: Table, sys_id: Any) -> Row | None:
        """The record that a reference to this table points to."""
        return next((row for row in self.records(table) if row["sys_id"] == sys_id), None)

    def own_table(self, table: Table, row: Row) -> Table:
        """The own table of a record that was found in `table`."""
        return table if table.is_system else self.catalogue.tables_by_id[row[OWN_TABLE_COLUMN]]


@dataclass(frozen=True)
class Caller:
    id: str
    role_names: frozenset[str] = frozenset()
    group_ids: tuple[str, ...] = ()
    role_ids: tuple[str, ...] = ()

    @property
    def is_admin(self) -> bool:
        return "admin" in self.role_names

    def dynamic_ids(self, name: str) -> tuple[str, ...]:
        """The ids that `me`, `my_groups` or `my_roles` stands for."""
        return {"me": (self.id,), "my_groups": self.group_ids, "my_roles": self.role_ids}[name]


@dataclass(frozen=True)
class EvaluationContext:
    """A caller who reads a world at a moment."""

    world: World
    caller: Caller
    moment: Moment


def is_empty(value: Any, column: Column) -> bool:
    """For JSON only NULL is empty, as `""` and `[]` are JSON values."""
    return value is None or (column.type != "json" and (value == "" or value == []))


def text_of_html(html: str | None) -> str | None:
    """The text of a wysiwyg value as filters see it. Handles only simple HTML like `<p>a</p>`, as generated here.

    >>> text_of_html("<p>a</p>"), text_of_html("<p></p>"), text_of_html(None)
    ('a', '', None)
    """
    return None if html is None else re.sub("<[^>]*>", "", html)


def without_markup(value: Any, column: Column) -> Any:
    """The stored value as operators see it: the text of HTML, any other value unchanged."""
    return text_of_html(value) if column.type == "wysiwyg" else value

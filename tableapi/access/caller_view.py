"""The only way to look up tables for a caller: it returns only what the caller's roles may see. Pure."""

from collections.abc import Callable, Hashable
from typing import TypeVar

from system.errors import NotFound
from tableapi.catalogue.definitions import READ, Catalogue, Column, Table
from tableapi.query.expressions import NEVER, Decision

from .permissions import Permissions

BYTES_PER_COLUMN = 400

Item = TypeVar("Item")


class CallerView:
    """The tables and columns of a catalogue that callers with these roles can see. Implements `ReadScope`."""

    def __init__(self, catalogue: Catalogue, role_names: frozenset[str]) -> None:
        self.catalogue = catalogue
        self.role_names = role_names
        self.sorted_role_names = tuple(sorted(role_names))
        self.permissions = Permissions(catalogue, role_names)

    @property
    def weight(self) -> int:
        """The approximate size in bytes once every column has a decision."""
        return BYTES_PER_COLUMN * (1 + self.catalogue.column_count)

    def column(self, table: Table, name: str) -> tuple[Column, Decision] | None:
        column = table.columns.get(name)
        if column is None or not column.is_readable:
            return None
        decision = self.permissions.column_decision(READ, table, column)
        return None if decision == NEVER else (column, decision)

    def record_decision(self, table: Table) -> Decision:
        return self.permissions.record_decision(READ, table)

    def table(self, name: str) -> Table | None:
        table = self.catalogue.tables.get(name)
        return table if table is not None and self.permissions.can_see_table(table) else None

    def can_read(self, table: Table) -> bool:
        return self.record_decision(table) != NEVER

    def open_table(self, name: str) -> Table:
        """Return the table, or raise the same 404 whether it is missing or hidden from the caller."""
        table = self.table(name)
        if table is None:
            raise NotFound("There is no such table.", code="table_not_found")
        return table

    def cached(self, key: Hashable, make: Callable[[], Item]) -> Item:
        """Return the cached item, or make it. Plans and statements depend only on the shape of a request."""
        item: Item = self.catalogue.caches.statements.get_or_make((self.role_names, key), make)
        return item


def view_for(catalogue: Catalogue, role_names: frozenset[str]) -> CallerView:
    view: CallerView = catalogue.caches.caller_views.get_or_make(role_names, lambda: CallerView(catalogue, role_names))
    return view


def record_not_found() -> NotFound:
    """The error for both a missing record and one that the caller cannot read."""
    return NotFound("There is no such record.", code="record_not_found")

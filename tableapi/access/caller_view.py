"""The one door: a table as one caller sees it. What is behind it can see nothing else."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from system.errors import NotFound
from tableapi.catalogue.definitions import READ, Catalogue, Column, Table
from tableapi.query.expressions import NEVER, Decision
from tableapi.query.read_plan import ReadPlan
from tableapi.sql.select import Statement

from .permissions import Permissions

MOST_STATEMENTS = 500
# What they may weigh together, about in bytes: a few hundred usual ones, or a few dozen of 500 fields.
MOST_KEPT = 4_000_000
PER_FIELD = 500


class CallerView:
    """What holders of these roles see of this catalogue, as `resolve.Eyes`; keeps what was worked out for them."""

    def __init__(self, catalogue: Catalogue, role_names: frozenset[str]) -> None:
        self.catalogue = catalogue
        self.role_names = role_names
        self.sorted_roles = tuple(sorted(role_names))
        self.rights = Permissions(catalogue, role_names)
        self._statements: dict[Any, Any] = {}
        self._weight = 0

    def column(self, table: Table, name: str) -> tuple[Column, Decision] | None:
        column = table.columns.get(name)
        if column is None or not column.is_readable:
            return None
        decision = self.rights.column(READ, table, column)
        return None if decision == NEVER else (column, decision)

    def records(self, table: Table) -> Decision:
        return self.rights.records(READ, table)

    def table(self, name: str) -> Table | None:
        found = self.catalogue.tables.get(name)
        return found if found is not None and self.rights.is_there(found) else None

    def can_read(self, table: Table) -> bool:
        return self.records(table) != NEVER

    def open_table(self, name: str) -> Table:
        """The table for this caller; the same 404 for one that is missing and one that is not there for them."""
        found = self.table(name)
        if found is None:
            raise NotFound("There is no such table.", code="table_not_found")
        return found

    def kept(self, key: Any, make: Any) -> Any:
        """What `make` gives, made once for each key: statements depend on the shape of a request only."""
        found = self._statements.get(key)
        if found is None:
            found = make()
            weight = _weight(found) + len(repr(key))
            if len(self._statements) >= MOST_STATEMENTS or self._weight + weight > MOST_KEPT:
                self._statements.clear()
                self._weight = 0
            self._statements[key] = found
            self._weight += weight
        return found


def _weight(kept: Any) -> int:
    """About how much memory a plan, a statement or something else holds."""
    if isinstance(kept, tuple):
        return sum(map(_weight, kept))
    if isinstance(kept, Statement):
        return len(kept.sql)
    return PER_FIELD * len(kept.fields) if isinstance(kept, ReadPlan) else len(repr(kept))


@lru_cache(maxsize=64)
def caller_view(catalogue: Catalogue, role_names: frozenset[str]) -> CallerView:
    return CallerView(catalogue, role_names)


def record_not_found() -> NotFound:
    """The same for a record that is missing and one that the caller may not read."""
    return NotFound("There is no such record.", code="record_not_found")

"""The one door: a table as one caller sees it. What is behind it can see nothing else."""

from __future__ import annotations

from typing import Any

from system.errors import NotFound
from system.process_cache import WeightedCache
from tableapi.catalogue.definitions import READ, Catalogue, Column, Table
from tableapi.query.expressions import NEVER, Decision
from tableapi.query.read_plan import ReadPlan
from tableapi.sql.select import Statement

from .permissions import Permissions

# In bytes of a process: some thousand usual plans and statements, or some hundred of 500 fields.
STATEMENTS_BYTES = 32 * 1024 * 1024
# A set of roles weighs as if what it may do with every column had been worked out.
SIGHTS_BYTES = 64 * 1024 * 1024
PER_FIELD = 500
PER_PARAMETER = 250
PER_COLUMN = 400


class CallerView:
    """What holders of these roles see of this catalogue, as `resolve.Eyes`; keeps what was worked out for them."""

    def __init__(self, catalogue: Catalogue, role_names: frozenset[str]) -> None:
        self.catalogue = catalogue
        self.role_names = role_names
        self.sorted_roles = tuple(sorted(role_names))
        self.rights = Permissions(catalogue, role_names)

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
        return _statements.get_or_make((self, key), make)


def _weight(kept: Any) -> int:
    """About how much memory a plan, a statement or something else holds."""
    if isinstance(kept, tuple):
        return sum(map(_weight, kept))
    if isinstance(kept, Statement):
        return 2 * len(kept.sql) + PER_PARAMETER * len(kept.parameters)  # twice: as text and as bytes
    return PER_FIELD * len(kept.fields) if isinstance(kept, ReadPlan) else len(repr(kept))


_statements: WeightedCache[tuple[CallerView, Any], Any] = WeightedCache(
    "statements", limit=STATEMENTS_BYTES, weigh=lambda key, kept: _weight(kept) + len(repr(key[1]))
)
_sights: WeightedCache[tuple[Catalogue, frozenset[str]], CallerView] = WeightedCache(
    "sights", limit=SIGHTS_BYTES, weigh=lambda key, _: PER_COLUMN * (1 + key[0].columns_count)
)


def caller_view(catalogue: Catalogue, role_names: frozenset[str]) -> CallerView:
    return _sights.get_or_make((catalogue, role_names), lambda: CallerView(catalogue, role_names))


def forget() -> None:
    """With a new catalogue, so that nothing keeps the former one."""
    _sights.clear()
    _statements.clear()


def record_not_found() -> NotFound:
    """The same for a record that is missing and one that the caller may not read."""
    return NotFound("There is no such record.", code="record_not_found")

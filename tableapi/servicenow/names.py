"""ServiceNow's names of tables and columns. Pure.

Designed tables that the caller can see, and their columns, take precedence over the names of ServiceNow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tableapi.catalogue.definitions import USER_TABLE, Catalogue, Table
from tableapi.query.path_resolver import ReadScope

# Names that ServiceNow has for tables of this service; administrators can add others.
TABLES = {
    "sys_user": "user", "sys_user_group": "sys_group", "sys_user_grmember": "sys_user_group",
    "sys_user_role": "sys_role", "sys_user_has_role": "sys_user_role", "core_company": "company",
    "sys_db_object": "sys_db_table", "sys_dictionary": "sys_db_column", "sys_properties": "sys_property",
}  # fmt: skip
# Of every table.
COMMON_COLUMNS = {
    "sys_created_on": "sys_created_at", "sys_updated_on": "sys_updated_at", "sys_mod_count": "sys_version",
    "sys_class_name": "sys_db_table_id.name",
}  # fmt: skip
# Of tables of this service. Several paths are joined by a space; a path can follow references.
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "user": {
        "user_name": "login", "name": "first_name last_name", "last_login_time": "last_login",
        "user_password": "password",
    },
    "sys_db_table": {"super_class": "parent"},
    "sys_db_column": {
        "name": "table.name", "element": "name", "column_label": "label", "internal_type": "type",
        "reference": "reference_table",
    },
    "sys_choice": {"name": "column.table.name", "element": "column.name", "sequence": "position"},
}  # fmt: skip


@dataclass(frozen=True)
class ServiceNowNames:
    """The names with the tables that an administrator has added. Implements `Names`."""

    added_tables: tuple[tuple[str, str], ...] = ()
    tables: Mapping[str, str] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", TABLES | dict(self.added_tables))

    def find_table(self, view: ReadScope, name: str) -> Table | None:
        """The table that the caller can see under this name."""
        table = view.table(name)
        return table if table is not None and not table.is_system else view.table(self.tables.get(name, name))

    def table(self, name: str) -> str:
        return next((foreign for foreign, own in self.tables.items() if own == name), name)

    def keys(self, table: Table, path: str) -> Sequence[str]:
        # Only the first column can differ: views have paths of this service, and those are rarely longer.
        name, *rest = path.split(".")
        columns = _column_names(table)
        own_name = next((foreign for foreign, own in columns.items() if own == name), name)
        joined_names = [foreign for foreign, own in columns.items() if own.startswith(f"{path} ")]
        return [*joined_names, ".".join((own_name, *rest))]

    def is_masked(self, table: Table, key: str) -> bool:
        return key == "user_password" and table.is_system and table.name == USER_TABLE

    def paths(self, catalogue: Catalogue, table: Table, key: str) -> Sequence[tuple[str, ...]]:
        *names, last = key.split(".")
        prefix: tuple[str, ...] = ()
        current: Table | None = table
        for name in names:
            if current is None:
                return ()
            path = _native_path(current, name)
            prefix = (*prefix, *path)
            current = _table_after(catalogue, current, path)
        if current is None:
            return ()
        return [(*prefix, *part.split(".")) for part in _column_names(current).get(last, last).split(" ")]


@lru_cache(maxsize=1_000)
def _own_names(is_system: bool, name: str) -> Mapping[str, str]:
    return COMMON_COLUMNS | dict(COLUMNS.get(name, {}) if is_system else {})


def _column_names(table: Table) -> Mapping[str, str]:
    return _own_names(table.is_system, table.name)


def _native_path(table: Table, name: str) -> tuple[str, ...]:
    return tuple(_column_names(table).get(name, name).split("."))


def _table_after(catalogue: Catalogue, table: Table, path: Sequence[str]) -> Table | None:
    current: Table | None = table
    for name in path:
        column = current.columns.get(name) if current else None
        current = catalogue.tables.get(column.reference or "") if column else None
    return current

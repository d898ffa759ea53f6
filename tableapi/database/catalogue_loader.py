"""Loads the catalogue from its tables as one frozen value, and caches the newest version in this process."""

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from accounts.models import Role
from system import process_cache
from system.encoded_query import QueryError
from tableapi import models
from tableapi.catalogue.definitions import (
    OWN_TABLE_COLUMN,
    SYS_COLUMNS,
    TABLE_TABLE,
    Catalogue,
    Column,
    Rule,
    SetOnChangeRule,
    Table,
    ViewEntries,
)

MAX_ATTEMPTS = 5
# Attributes that a column in the catalogue has from its row.
ROW_ATTRIBUTES = (
    "name", "type", "label", "mandatory", "is_unique", "read_only", "max_length", "is_display", "is_indexed",
    "converted_from_text",
)  # fmt: skip


class _Cache:
    """The newest catalogue that this process has loaded."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.catalogue: Catalogue | None = None


_cache = _Cache()


def cached_catalogue() -> Catalogue:
    """The cached catalogue. Statements return the current version, which shows whether it is outdated."""
    cached = _cache.catalogue
    return cached if cached is not None else reload_if_changed()


def reload_if_changed() -> Catalogue:
    """Return the current catalogue, and load it if its version has changed."""
    version = _stored_version()
    cached = _cache.catalogue
    if cached is not None and cached.version == version:
        return cached
    with _cache.lock:
        if _cache.catalogue is None or _cache.catalogue.version != version:
            _cache.catalogue = load()
        return _cache.catalogue


def clear_cache() -> None:
    _cache.catalogue = None


# Also frees everything derived from the catalogue.
process_cache.register("catalogue", clear_cache)


def _stored_version() -> int:
    return models.State.objects.values_list("version", flat=True).get(pk=models.State.ROW_ID)


def load() -> Catalogue:
    """Load the catalogue as this connection sees it. Repeats if the version changed while loading, because only a part
    of a change may have been loaded."""
    for _ in range(MAX_ATTEMPTS):
        version = _stored_version()
        tables = {table.name: table for table in _load_tables()}
        rules = tuple(_load_rules({table.id: table.name for table in tables.values()}))
        catalogue = Catalogue(version, tables, rules, _load_views())
        if _stored_version() == version:
            return catalogue
    return catalogue


def _load_tables() -> Iterator[Table]:
    rows: dict[str, dict[str, Any]] = {row["sys_id"]: dict(row) for row in models.Table.objects.values()}
    names = {sys_id: row["name"] for sys_id, row in rows.items()}
    own_columns = _load_columns(names, {row["sys_id"] for row in rows.values() if row["is_system"]})
    set_on_change_rules = list(_load_set_on_change_rules(own_columns))
    lineages = {sys_id: _lineage(sys_id, rows) for sys_id in rows}
    families: dict[str, list[str]] = defaultdict(list)
    for sys_id, lineage in lineages.items():
        for ancestor in lineage:
            families[ancestor].append(names[sys_id])
    for sys_id, row in sorted(rows.items(), key=lambda item: item[1]["name"]):
        lineage = lineages[sys_id]
        root = names[lineage[-1]]
        numbered_table = next((table for table in lineage if rows[table]["number_prefix"]), "")
        columns = {column.name: column for column in _sys_columns(root, bool(row["is_system"]))}
        for table in reversed(lineage):
            columns |= {column.name: column for column in own_columns[table]}
        yield Table(
            id=sys_id,
            name=row["name"],
            label=row["label"],
            columns=columns,
            parent=names.get(row["parent_id"]),
            is_system=row["is_system"],
            number_prefix=rows[numbered_table]["number_prefix"] if numbered_table else "",
            number_table_id=numbered_table,
            deferred_create=row["deferred_create"],
            lineage=tuple(names[table] for table in lineage),
            family=tuple(families[sys_id]),
            set_on_change_rules=tuple(
                rule for rule in set_on_change_rules if columns.get(rule.column.name) is rule.column
            ),
        )


def _load_set_on_change_rules(own_columns: Mapping[str, list[Column]]) -> Iterator[SetOnChangeRule]:
    columns = {column.id: column for table_columns in own_columns.values() for column in table_columns}
    for row in models.SetRule.objects.order_by("sys_id").values():
        column, watched = columns.get(row["column_id"]), columns.get(row["watched_id"])
        if column is not None and watched is not None:  # otherwise they were added after the columns were read
            yield SetOnChangeRule(column, watched, row["value"], replace(column, default=row["set_to"]), row["clears"])


def _lineage(sys_id: str, rows: Mapping[str, dict[str, Any]]) -> tuple[str, ...]:
    lineage: tuple[str, ...] = ()
    current: str | None = sys_id
    while current is not None and current not in lineage:
        lineage += (current,)
        current = rows[current]["parent_id"]
    return lineage


def _sys_columns(root: str, is_system: bool) -> Iterator[Column]:
    for name, (type_name, reference, label) in SYS_COLUMNS.items():
        yield Column(name, type_name, root, name, label=label, reference=reference, read_only=True)
    if not is_system:
        name = OWN_TABLE_COLUMN
        yield Column(name, "reference", root, name, label="Table", reference=TABLE_TABLE, read_only=True)


def _load_columns(names: Mapping[str, str], system_ids: set[str]) -> dict[str, list[Column]]:
    choices: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for column, value, label in models.Choice.objects.values_list("column_id", "value", "label"):
        choices[column].append((value, label))
    columns: dict[str, list[Column]] = defaultdict(list)
    rows: Any = models.Column.objects.order_by("sys_id").values()
    for row in rows:
        columns[row["table_id"]].append(
            Column(
                **{name: row[name] for name in ROW_ATTRIBUTES},
                owner=names.get(row["table_id"], ""),  # unknown if the table was added after the tables were read
                database_name=row["physical_name"] or row["name"],
                id=row["sys_id"],
                reference=names.get(row["reference_table_id"]),
                default=row["default_value"],
                is_custom=row["table_id"] in system_ids and not row["physical_name"],
                choices=tuple(choices[row["sys_id"]]),
            )
        )
    return columns


def _load_rules(table_names: Mapping[str, str]) -> Iterator[Rule]:
    roles = dict(Role.objects.values_list("sys_id", "name"))
    for row in models.Rule.objects.filter(active=True).order_by("sys_id").values():
        if row["table_id"] and row["table_id"] not in table_names:
            continue  # the table was added after the tables were read
        role_names = frozenset(roles[sys_id] for sys_id in row["roles"] if sys_id in roles)
        rule = Rule(
            id=row["sys_id"],
            operation=row["operation"],
            table=table_names[row["table_id"]] if row["table_id"] else None,
            column=row["column_name"],
            roles=role_names,
            condition=row["condition"],
            admin_overrides=row["admin_overrides"],
            # A rule whose roles were all deleted must not apply to everyone.
            is_broken=bool(row["roles"]) and not role_names,
        )
        yield rule if _is_valid(rule) else replace(rule, is_broken=True)


def _is_valid(rule: Rule) -> bool:
    try:
        # "ORDERBY…" alone would be a condition that does not restrict anything.
        return bool(rule.query.groups) or not rule.condition
    except QueryError:
        return False


def _load_views() -> dict[tuple[str, str], ViewEntries]:
    views = models.View.objects.select_related("table").prefetch_related("columns")
    return {
        (view.table.name, view.name): tuple((column.path, column.section) for column in view.columns.all())
        for view in views
    }

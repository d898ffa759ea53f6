"""Reads the catalogue from its tables into one frozen value, and keeps the newest of this process."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from accounts.models import Role
from system import process_cache
from system.encoded_query import QueryError, parse
from tableapi import models
from tableapi.access import caller_view
from tableapi.catalogue.definitions import OWN_TABLE, SYS_COLUMNS, TABLE_TABLE, Catalogue, Column, Rule, Table

TRIES = 5


class _Kept:
    """The newest catalogue that this process has read."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.catalogue: Catalogue | None = None


_kept = _Kept()


def cached_catalogue() -> Catalogue:
    """The catalogue this process knows; a statement's answer tells whether it is still the newest."""
    found = _kept.catalogue
    return found if found is not None else reload_if_changed()


def reload_if_changed() -> Catalogue:
    """The catalogue as it is in the database now."""
    version = _version()
    kept = _kept.catalogue
    if kept is not None and kept.version == version:
        return kept
    with _kept.lock:
        if _kept.catalogue is None or _kept.catalogue.version != version:
            _kept.catalogue = read()
            caller_view.forget()
        return _kept.catalogue


def forget() -> None:
    _kept.catalogue = None


# The newest one only: it is as large as the tables that were designed.
process_cache.register("catalogue", forget)


def _version() -> int:
    return models.State.objects.values_list("version", flat=True).get(pk=models.State.ROW)


def read() -> Catalogue:
    """The catalogue as this connection sees it; read until the version is the same before and after: never half of a
    change."""
    for _ in range(TRIES):
        version = _version()
        found = Catalogue(version, dict(_tables()), tuple(_rules()), _views())
        if _version() == version:
            return found
    return found


def _tables() -> Iterator[tuple[str, Table]]:
    rows: dict[str, dict[str, Any]] = {row["sys_id"]: dict(row) for row in models.Table.objects.values()}
    names = {sys_id: row["name"] for sys_id, row in rows.items()}
    own = _columns(names)
    children: dict[str | None, list[str]] = defaultdict(list)
    for sys_id, row in rows.items():
        children[row["parent_id"]].append(sys_id)
    for sys_id, row in sorted(rows.items(), key=lambda item: item[1]["name"]):
        lineage = tuple(_upwards(sys_id, rows))
        family = tuple(_downwards(sys_id, children))
        root = names[lineage[-1]]
        counting = next((each for each in lineage if rows[each]["number_prefix"]), "")
        columns = {column.name: column for column in _sys_columns(root, bool(row["is_system"]))}
        for each in reversed(lineage):
            columns |= {column.name: column for column in own[each]}
        yield (
            row["name"],
            Table(
                id=sys_id,
                name=row["name"],
                label=row["label"],
                columns=columns,
                parent=names.get(row["parent_id"]),
                is_system=row["is_system"],
                number_prefix=rows[counting]["number_prefix"] if counting else "",
                number_table=counting,
                deferred_create=row["deferred_create"],
                lineage=tuple(names[each] for each in lineage),
                family=tuple(names[each] for each in family),
            ),
        )


def _upwards(sys_id: str, rows: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    current: str | None = sys_id
    while current is not None and current not in seen:
        seen.add(current)
        yield current
        current = rows[current]["parent_id"]


def _downwards(sys_id: str, children: Mapping[str | None, list[str]]) -> Iterator[str]:
    yield sys_id
    for child in children.get(sys_id, ()):
        yield from _downwards(child, children)


def _sys_columns(root: str, is_system: bool) -> Iterator[Column]:
    for name, (kind, reference) in SYS_COLUMNS.items():
        yield Column(name, kind, root, name, label=name, reference=reference, read_only=True)
    if not is_system:
        yield Column(OWN_TABLE, "reference", root, OWN_TABLE, label="Table", reference=TABLE_TABLE, read_only=True)


def _columns(names: Mapping[str, str]) -> dict[str, list[Column]]:
    choices: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for column, value, label in models.Choice.objects.order_by("position", "sys_id").values_list(
        "column_id", "value", "label"
    ):
        choices[column].append((value, label))
    found: dict[str, list[Column]] = defaultdict(list)
    for row in models.Column.objects.order_by("sys_id").values():
        found[row["table_id"]].append(
            Column(
                name=row["name"],
                type=row["type"],
                owner=names[row["table_id"]],
                physical=row["physical_name"] or row["name"],
                id=row["sys_id"],
                label=row["label"],
                reference=names.get(row["reference_table_id"]),
                mandatory=row["mandatory"],
                is_unique=row["is_unique"],
                read_only=row["read_only"],
                default=row["default_value"],
                max_length=row["max_length"],
                is_display=row["is_display"],
                is_indexed=row["is_indexed"],
                converted_from_text=row["converted_from_text"],
                choices=tuple(choices[row["sys_id"]]),
            )
        )
    return found


def _rules() -> Iterator[Rule]:
    roles = dict(Role.objects.values_list("sys_id", "name"))
    tables = dict(models.Table.objects.values_list("sys_id", "name"))
    for row in models.Rule.objects.filter(active=True).order_by("sys_id").values():
        known = frozenset(roles[sys_id] for sys_id in row["roles"] if sys_id in roles)
        yield Rule(
            id=row["sys_id"],
            operation=row["operation"],
            table=tables[row["table_id"]] if row["table_id"] else None,
            column=row["column_name"],
            roles=known,
            condition=row["condition"],
            admin_overrides=row["admin_overrides"],
            # A rule whose roles are all gone must not become one for everybody.
            is_broken=(bool(row["roles"]) and not known) or not _is_understood(row["condition"]),
        )


def _is_understood(condition: str) -> bool:
    try:
        query = parse(condition)
    except QueryError:
        return False
    # "ORDERBY…" alone would be a condition that asks nothing.
    return bool(query.groups) or not condition


def _views() -> dict[tuple[str, str], tuple[str, ...]]:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    rows = models.ViewColumn.objects.order_by("position", "sys_id").values_list(
        "view__table__name", "view__name", "path"
    )
    for table, view in models.View.objects.values_list("table__name", "name"):
        found[table, view] = []
    for table, view, path in rows:
        found[table, view].append(path)
    return {key: tuple(paths) for key, paths in found.items()}

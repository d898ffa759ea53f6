"""The whole form of the designer: one version that was shown, several sections, one transaction."""

import hashlib
from collections.abc import Iterator
from itertools import chain
from typing import Any

from django.db import transaction
from django.http import QueryDict

from system.errors import ServiceError
from tableapi.catalogue.definitions import HIDDEN_TABLES
from tableapi.ddl import schema_editor
from tableapi.models import Choice, Column, Rule, SetRule, Table, View, ViewColumn
from tableapi.read.context import ReadContext

from .automatic_values_section import AutomaticValuesSection
from .columns_section import ColumnsSection
from .preview import preview
from .rows import RowSection
from .rules_section import RulesSection
from .section import Section
from .table_section import TableSection
from .views_section import ViewsSection

# Columns come before what uses them.
SECTIONS: tuple[type[Section], ...] = (TableSection, ColumnsSection, ViewsSection, AutomaticValuesSection, RulesSection)
STALE_MESSAGE = (
    "Another administrator changed this table while you were editing it: {names}. Nothing was saved, and your entries "
    "are still here. If you save again, they replace those changes."
)


class SaveRefused(Exception):
    """Rolls back a save; the errors are in the sections."""


class DesignForm:
    def __init__(self, table: Table, data: QueryDict | None = None) -> None:
        self.table, self.data, self.is_new = table, data, table.is_new
        self.errors: list[str] = []
        self.costs: list[str] = []
        self.shown_label = table.label
        self.sections = [section(data, table) for section in SECTIONS]
        self.versions = {} if self.is_new else record_versions(table)

    @property
    def versions_text(self) -> str:
        return " ".join(f"{sys_id}:{version}" for sys_id, (version, _) in self.versions.items())

    @property
    def has_list(self) -> bool:
        return self.table.name not in HIDDEN_TABLES

    @property
    def has_field_errors(self) -> bool:
        return self.data is not None and not self.data.get("step") and not self.is_valid()

    def is_valid(self) -> bool:
        # All errors are shown together.
        return [section.is_valid() for section in self.sections].count(False) == 0

    def save(self) -> bool:
        """Save all sections, or nothing if anything is refused, stale, or costs something that was not confirmed."""
        assert self.data is not None
        if not self.is_valid():
            return False
        self.costs = list(chain.from_iterable(section.costs() for section in self.sections))
        if self.costs and self.data.get("confirmed") != self.costs_digest:
            return False
        try:
            with schema_editor.design_lock(), transaction.atomic():
                self._check_versions(self.data.get("versions", ""))
                for section in self.sections:
                    section.save()
                    if not section.is_valid():
                        raise SaveRefused
        except SaveRefused:
            return False
        except ServiceError as error:  # for example, the table is in use for too long
            self.errors.append(f"Nothing was saved. {error.message}")
            return False
        return True

    def add_row(self, prefix: str) -> None:
        for section in self.sections:
            if isinstance(section, RowSection) and section.prefix == prefix:
                section.add_row()

    def describe_rules(self, context: ReadContext) -> None:
        next(section for section in self.sections if isinstance(section, RulesSection)).describe(context)

    def preview(self) -> dict[str, Any]:
        columns = next(section for section in self.sections if isinstance(section, ColumnsSection))
        views = next(section for section in self.sections if isinstance(section, ViewsSection))
        label = self.data.get("table-label", "") if self.data else self.table.label
        return preview(columns, views, label)

    @property
    def costs_digest(self) -> str:
        """Sent back by the button that confirms these costs."""
        return hashlib.sha256("\n".join(self.costs).encode()).hexdigest()

    def _check_versions(self, shown_text: str) -> None:
        if self.is_new:
            return
        self.versions = record_versions(self.table)
        shown = dict(part.partition(":")[::2] for part in shown_text.split())
        current = {sys_id: str(version) for sys_id, (version, _) in self.versions.items()}
        changed = [self.versions[sys_id][1] for sys_id in current if shown.get(sys_id) != current[sys_id]]
        deleted_count = len(shown.keys() - current.keys())
        if changed or deleted_count:
            names = [*changed[:5], *(["…"] if len(changed) > 5 else [])]
            names += [f"{deleted_count} deleted"] if deleted_count else []
            self.errors.append(STALE_MESSAGE.format(names=", ".join(names)))
            raise SaveRefused


def record_versions(table: Table) -> dict[str, tuple[int, str]]:
    """The version and description of each record that the page of the table shows."""
    columns, views = Column.objects.filter(table=table), View.objects.filter(table=table)
    parts: Iterator[tuple[str, object]] = (
        (kind, record)
        for kind, records in (
            ("table", Table.objects.filter(pk=table.pk)),
            ("column", columns.select_related("table")),
            ("choice", Choice.objects.filter(column__in=columns)),
            ("view", views.select_related("table")),
            ("view column", ViewColumn.objects.filter(view__in=views)),
            ("rule", Rule.objects.filter(table=table).select_related("table")),
            ("automatic value", SetRule.objects.filter(column__in=columns).select_related("column__table", "watched")),
        )
        for record in records
    )
    return {record.pk: (record.sys_version, f"{kind} {record}") for kind, record in parts}  # type: ignore[attr-defined]


def find_table(name: str) -> Table | None:
    return Table.objects.filter(name=name).first()


def new_table() -> Table:
    return Table()

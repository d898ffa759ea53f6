"""The whole form of the designer: one version that was shown, several sections, one transaction."""

import hashlib
from collections.abc import Iterator
from itertools import chain
from typing import Any

from django.db import transaction
from django.http import QueryDict
from django.urls import reverse

from system.errors import NotFound, ServiceError
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

# Not a valid name of a table.
NEW_TABLE = "new-table"
# Columns come before what uses them.
SECTIONS: tuple[type[Section], ...] = (TableSection, ColumnsSection, ViewsSection, AutomaticValuesSection, RulesSection)
STALE_MESSAGE = (
    "Another administrator changed this table while you were editing it: {names}. Nothing was saved, and your entries "
    "are still here. If you save again, they replace those changes."
)


class SaveRefused(Exception):
    """Rolls back a save; the errors are in the sections."""


class DesignForm:
    """The form of a table, or of the rules for any table if it is None."""

    def __init__(self, table: Table | None, data: QueryDict | None = None) -> None:
        self.table, self.data, self.is_new = table, data, table is not None and table.is_new
        self.errors: list[str] = []
        self.costs: list[str] = []
        self.shown_label = table.label if table else "Access rules for any table"
        self.sections = [section(data, table) for section in (SECTIONS if table else (RulesSection,))]
        self.versions = {} if self.is_new else record_versions(table)

    @property
    def versions_text(self) -> str:
        return " ".join(f"{sys_id}:{version}" for sys_id, (version, _) in self.versions.items())

    @property
    def path(self) -> str:
        return reverse("design-table", args=[self.table.name]) if self.table else reverse("design-any-table")

    @property
    def has_list(self) -> bool:
        return self.table is not None and self.table.name not in HIDDEN_TABLES

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
        return preview(columns, views)

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


def record_versions(table: Table | None) -> dict[str, tuple[int, str]]:
    """The version and description of each record that the page of the table shows."""
    columns, views = Column.objects.filter(table=table), View.objects.filter(table=table)
    parts: Iterator[tuple[str, object]] = (
        (kind, record)
        for kind, records in (
            ("table", Table.objects.filter(pk=table and table.pk)),
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


def find_table(name: str) -> Table:
    table = Table() if name == NEW_TABLE else Table.objects.filter(name=name).first()
    if table is None:
        raise NotFound("There is no such table.")
    return table

"""Admin pages of columns and their choices."""

import json
from collections.abc import Iterator
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.http import HttpRequest
from unfold.admin import TabularInline
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from system.admin_site.history_page import RelatedRecords
from tableapi.admin.design_base import AmongItsOwn, OfTable
from tableapi.catalogue.column_types import names_where
from tableapi.database import catalogue_loader
from tableapi.ddl import schema_editor
from tableapi.design import column_usages
from tableapi.models import Choice, Column, Rule, Table, validation

# The fields that only columns of some types have; the form shows them for these types.
FITTING = {
    "reference_table": names_where(lambda row: row.has_target),
    "is_unique": names_where(lambda row: row.can_be_unique),
    "is_indexed": names_where(lambda row: row.can_be_indexed),
    "is_display": names_where(lambda row: row.can_be_display),
    "default_value": names_where(lambda row: row.has_default),
    "max_length": names_where(lambda row: row.has_length),
    "choices": names_where(lambda row: row.has_choices),
}


class Choices(TabularInline):  # type: ignore[misc]  # the theme has no types
    model = Choice
    fields = ("value", "label", "position")
    extra = 0

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request, obj)

    def _may(self, request: HttpRequest, obj: Any) -> bool:
        is_ours = obj is not None and obj.table.is_system
        return not is_ours and bool(super().has_change_permission(request, obj))


LEFT = {
    column_usages.ColumnUsage.ABOUT: "which is about it",
    column_usages.ColumnUsage.ASKS: "which asks for it: where it is gone, the rule holds for no record",
    column_usages.ColumnUsage.SEARCHES: "which searches its words",
}


def _left_by(column: Column) -> Iterator[str]:
    """What stays and is no longer what it was: a rule that asks for the column fails closed."""
    catalogue = catalogue_loader.reload_if_changed()
    known = catalogue.tables[column.table.name].columns[column.name]
    found = {rule.id: how for rule, how in column_usages.by_rules(catalogue, known)}
    gone = Rule.of_column(column).values("pk")
    for rule in Rule.objects.filter(pk__in=found).exclude(pk__in=gone).select_related("table"):
        yield f"Not deleted: the access rule “{rule}”, {LEFT[found[rule.pk]]}"
    for table, name in column_usages.by_views(catalogue, known):
        yield f"Not deleted: the view “{name}” of {table}, which leaves it out from then on"


@admin.register(Column)
class ColumnAdmin(AmongItsOwn, OfTable):
    holds = "The columns of tables."
    list_display = ("name", "table", "label", "kind", "marks")
    list_filter: ClassVar[list[Any]] = ["table__is_system", "type"]
    list_select_related = ("table", "reference_table")
    search_fields = ("name", "label", "table__name")
    list_per_page = 25
    ordering = ("table__is_system", "table__name", "sys_id")
    inlines = (Choices,)
    history_parts = (RelatedRecords(Choice, "column", "Choice", "value"),)
    fields = (
        "table",
        "name",
        "label",
        "type",
        "reference_table",
        "mandatory",
        "read_only",
        "is_unique",
        "is_indexed",
        "is_display",
        "default_value",
        "max_length",
        "converted_from_text",
    )

    class Media:
        js = ("servicebase/column-form.js",)

    @admin.display(description="Type", ordering="type")
    def kind(self, column: Column) -> str:
        of = f" ({column.reference_table})" if column.reference_table else ""
        return f"{column.get_type_display()}{of}"

    @admin.display(description="Marks")
    def marks(self, column: Column) -> str:
        """In words: a column of red crosses for each says little on a desk and fills a phone."""
        names = ("is_display", "mandatory", "read_only", "is_unique", "is_indexed")
        fields = [Column._meta.get_field(name) for name in names if getattr(column, name)]
        return ", ".join(str(field.verbose_name) for field in fields)  # type: ignore[union-attr]

    def is_ours(self, obj: Column) -> bool:
        return obj.table.is_system

    def save_model(self, request: HttpRequest, obj: Column, form: Any, change: bool) -> None:
        former = obj.table.columns.filter(is_display=True).exclude(pk=obj.pk).first() if obj.is_display else None
        super().save_model(request, obj, form, change)
        if former is not None:
            messages.warning(
                request, f"Records of {obj.table} are called by {obj.name} now, no longer by {former.name}."
            )

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        column: Column = form.instance
        values = column.choices.values_list("value", flat=True)
        if not column.column_type.has_choices:
            return
        if not values:
            messages.warning(
                request, f"{column} has no choices yet. Add at least one; until then the column stays empty."
            )
        elif column.default_value and column.default_value not in values:
            messages.warning(
                request, f"{column.default_value} is none of the choices: new records come without a value."
            )

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        deleted, *rest = super().get_deleted_objects(objs, request)
        lost = [f"The values of {schema_editor.count_values(column)} records in {column}" for column in objs]
        lost += [f"The access rule “{rule}”" for column in objs for rule in Rule.of_column(column)]
        left = [sentence for column in objs for sentence in _left_by(column)]
        return [*deleted, *lost, *left], *rest

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        is_formatted = obj is not None and obj.column_type.is_html
        return [name for name in self.fields if is_formatted or name != "converted_from_text"]

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj is None or obj.column_type.has_choices else ()

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name == "table":
            options["queryset"] = Table.objects.filter(is_system=False)
        return super().formfield_for_foreignkey(db_field, request, **options)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name == "max_length":
            options |= {"min_value": 1, "error_messages": {"min_value": validation.ONLY_TEXT_HAS_LENGTH}}
        return super().formfield_for_dbfield(db_field, request, **options)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        types_by_field = json.dumps(FITTING)
        options["widgets"] = {
            "default_value": UnfoldAdminTextareaWidget(attrs={"rows": 2}),
            "type": UnfoldAdminSelectWidget(attrs={"data-types-by-field": types_by_field}),
        }
        options["help_texts"] = {
            "name": "Lowercase letters, digits and underscores. Cannot be changed later.",
            "type": "Can later be changed only between string and text, or to formatted text.",
            "reference_table": "For references and lists: the referenced table. Cannot be changed later.",
            "read_only": "Callers cannot write it.",
            "is_unique": "No two records have the same value; upper and lower case count as the same.",
            "is_indexed": "Filtering and sorting by it is quick; texts are searched by words.",
            "is_display": "It names a record. A table can have one such column.",
            "default_value": "For new records without a value.",
            "max_length": "In characters, for texts. Empty: no limit.",
            "converted_from_text": "A formatted text that callers read as plain text, as they did before.",
        }
        return super().get_form(request, obj, change, **options)

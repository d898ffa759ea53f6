"""Admin pages of columns and their choices."""

import json
from collections.abc import Iterator
from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from unfold.admin import TabularInline
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from system.admin_site.history_page import RelatedRecords
from tableapi.admin.design_base import DesignAdmin, DesignFormSet, PerTableAdmin, ProductFilter
from tableapi.catalogue.column_types import type_names_where
from tableapi.database import catalogue_loader
from tableapi.ddl import schema_editor
from tableapi.design import column_usages
from tableapi.models import Choice, Column, Rule, validation

# Fields that only some types use, with these types; the form hides them for other types.
TYPES_BY_FIELD = {
    "reference_table": type_names_where(lambda row: row.has_target),
    "is_unique": type_names_where(lambda row: row.can_be_unique),
    "is_indexed": type_names_where(lambda row: row.can_be_indexed),
    "is_display": type_names_where(lambda row: row.can_be_display),
    "default_value": type_names_where(lambda row: row.has_default),
    "max_length": type_names_where(lambda row: row.has_max_length),
    "choices": type_names_where(lambda row: row.has_choices),
}


class ChoiceInline(TabularInline):  # type: ignore[misc]  # the theme has no types
    model = Choice
    formset = DesignFormSet
    fields = ("value", "label", "position")
    extra = 0

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return (obj is None or obj.is_designed) and bool(super().has_change_permission(request, obj))

    has_add_permission = has_delete_permission = has_change_permission


def _remaining_usages(column: Column) -> Iterator[str]:
    """Describe the rules and views that stay but are affected. A rule whose condition loses a column fails closed."""
    catalogue = catalogue_loader.reload_if_changed()
    definition = catalogue.tables[column.table.name].columns[column.name]
    usages = {rule.id: usage for rule, usage in column_usages.rules_using(catalogue, definition)}
    deleted = Rule.for_column(column).values("pk")
    for rule in Rule.objects.filter(pk__in=usages).exclude(pk__in=deleted).select_related("table"):
        yield f"Not deleted: the access rule “{rule}”, {usages[rule.pk].value}"
    for table, name in column_usages.views_using(catalogue, definition):
        yield f"Not deleted: the view “{name}” of {table}, which will no longer show this column"


@admin.register(Column)
class ColumnAdmin(PerTableAdmin, DesignAdmin):
    empty_list_text = "Columns define the values that the records of a table can have."
    list_display = ("name", "table", "label", "kind", "options")
    list_filter = [("table__is_system", ProductFilter), "type"]
    list_select_related = ("table", "reference_table")
    search_fields = ("name", "label", "table__name")
    list_per_page = 25
    ordering = ("table__is_system", "table__name", "sys_id")
    inlines = (ChoiceInline,)
    history_parts = (RelatedRecords(Choice, "column", "Choice", "value"),)
    fields = (
        "table", "name", "label", "type", "reference_table", "mandatory", "read_only", "is_unique",
        "is_indexed", "is_display", "default_value", "max_length", "converted_from_text",
    )  # fmt: skip

    class Media:
        js = ("servicebase/column-form.js",)

    @admin.display(description="Type", ordering="type")
    def kind(self, column: Column) -> str:
        target = f" ({column.reference_table})" if column.reference_table else ""
        return f"{column.get_type_display()}{target}"

    @admin.display(description="Options")
    def options(self, column: Column) -> str:
        """Options as words, because a column of check marks per option would be too wide for a phone."""
        names = ("is_display", "mandatory", "read_only", "is_unique", "is_indexed")
        fields = [Column._meta.get_field(name) for name in names if getattr(column, name)]
        return ", ".join(str(field.verbose_name) for field in fields)  # type: ignore[union-attr]

    def save_model(self, request: HttpRequest, obj: Column, form: Any, change: bool) -> None:
        previous = obj.table.columns.filter(is_display=True).exclude(pk=obj.pk).first() if obj.is_display else None
        super().save_model(request, obj, form, change)
        if previous is not None:
            messages.warning(request, f"The display value of {obj.table} is now {obj.name} instead of {previous.name}.")

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        column: Column = form.instance
        values = column.choices.values_list("value", flat=True)
        if not column.column_type.has_choices:
            return
        if not values:
            messages.warning(request, f"{column} has no choices yet. Until you add one, the column stays empty.")
        elif column.default_value and column.default_value not in values:
            messages.warning(
                request, f"The default value “{column.default_value}” is not a choice. New records will have no value."
            )

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        objects, *other_results = super().get_deleted_objects(objs, request)
        deleted = [f"The values of {column} (records: {schema_editor.count_values(column):,})" for column in objs]
        deleted += [f"The access rule “{rule}”" for column in objs for rule in Rule.for_column(column)]
        remaining = [text for column in objs for text in _remaining_usages(column)]
        return [*objects, *deleted, *remaining], *other_results

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        is_html = obj is not None and obj.column_type.is_html
        return [name for name in self.fields if is_html or name != "converted_from_text"]

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj is None or obj.column_type.has_choices else ()

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name == "max_length":
            options |= {"min_value": 1, "error_messages": {"min_value": validation.MAX_LENGTH_NEEDS_TEXT}}
        return super().formfield_for_dbfield(db_field, request, **options)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        options["widgets"] = {
            "default_value": UnfoldAdminTextareaWidget(attrs={"rows": 2}),
            "type": UnfoldAdminSelectWidget(attrs={"data-types-by-field": json.dumps(TYPES_BY_FIELD)}),
        }
        options["help_texts"] = {
            "name": "Lowercase letters, digits and underscores. In a product table, it must start with x_. Cannot be "
            "changed later.",
            "type": "String and Text can later be changed to each other or to Formatted text. Other types are fixed.",
            "reference_table": "The table that the values refer to. Cannot be changed later.",
            "read_only": "Callers cannot write this column.",
            "is_unique": "No two records can have the same value. Case is ignored.",
            "is_indexed": "Speeds up filtering and sorting. Makes text searchable by word.",
            "is_display": "References to a record show this value. Only one column of a table can have this option.",
            "default_value": "The value of new records if the request does not set one. Functions: javascript:gs.now() "
            "or javascript:gs.daysAgo(-7) for dates and times, javascript:gs.getUserID() for references to users, "
            "javascript:getNextObjNumberPadded() for record numbers in strings.",
            "max_length": "Maximum number of characters, for text only. If empty, only email addresses and unique, "
            "indexed and display columns have a limit.",
            "converted_from_text": "If selected, callers still receive plain text, as before the conversion to "
            "formatted text.",
        }
        return super().get_form(request, obj, change, **options)

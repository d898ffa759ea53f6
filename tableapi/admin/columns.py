"""Admin pages of columns and their choices."""

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import TabularInline
from unfold.widgets import UnfoldAdminTextareaWidget

from tableapi import designer
from tableapi.admin.design import OfTable
from tableapi.models import Choice, Column, Table


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


@admin.register(Column)
class ColumnAdmin(OfTable):
    list_display = ("name", "table", "label", "type", "reference_table", "mandatory", "is_unique", "is_indexed")
    list_filter: ClassVar[list[Any]] = ["table__is_system", "type"]
    list_select_related = ("table", "reference_table")
    search_fields = ("name", "label", "table__name")
    list_per_page = 25
    ordering = ("table__is_system", "table__name", "sys_id")
    inlines = (Choices,)
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

    def is_ours(self, obj: Column) -> bool:
        return obj.table.is_system

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        deleted, *rest = super().get_deleted_objects(objs, request)
        lost = [f"The values of {designer.count_values(column)} records in {column}" for column in objs]
        return [*deleted, *lost], *rest

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        is_formatted = obj is not None and obj.type == Column.Type.WYSIWYG
        return [name for name in self.fields if is_formatted or name != "converted_from_text"]

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj is None or obj.type == Column.Type.CHOICE else ()

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name == "table":
            options["queryset"] = Table.objects.filter(is_system=False)
        return super().formfield_for_foreignkey(db_field, request, **options)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        options["widgets"] = {"default_value": UnfoldAdminTextareaWidget(attrs={"rows": 2})}
        options["help_texts"] = {
            "name": "Small letters, digits and _. It cannot be changed later.",
            "type": "Later a string may become a text and back, and both a formatted text; nothing else.",
            "reference_table": "For a reference and a list: whose records. Cannot be changed later.",
            "read_only": "Callers cannot write it.",
            "is_unique": "No two records have the same value; upper and lower case count as the same.",
            "is_indexed": "Filtering and sorting by it is quick; texts are searched by words.",
            "is_display": "People call a record by it. One column of a table can be it.",
            "default_value": "For records that come without a value.",
            "max_length": "Characters, for texts. Empty: no limit.",
            "converted_from_text": "A formatted text that callers read as plain text, as they did before.",
        }
        return super().get_form(request, obj, change, **options)

"""Read-only lists and the histories of what the designer changes."""

from typing import Any

from django.contrib import admin
from django.contrib.admin import BooleanFieldListFilter
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html

from system.admin_site.history_page import RelatedRecords
from system.admin_site.site import HistoryAdmin, ReadOnlyAdmin
from system.errors import NotFound
from tableapi.models import Choice, Column, SetRule, Table, View, ViewColumn


class DesignAdmin(ReadOnlyAdmin, HistoryAdmin):
    """Links to a record, also those of former forms, lead to its row on the page of its table in the designer."""

    list_per_page = 25

    def get_list_display(self, request: HttpRequest) -> Any:
        return (*super().get_list_display(request), "history_link")

    @admin.display(description="History")
    def history_link(self, record: Any) -> str:
        url = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_history", args=[record.pk])
        return format_html('<a class="sb-link" href="{}">Show</a>', url)

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        return redirect("design")

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        record = self.get_object(request, object_id)
        if record is None:
            raise NotFound
        return redirect(f"{reverse('design-table', args=[_table_of(record).name])}#record-{record.pk}")

    delete_view = change_view


def _table_of(record: Table | Column | View | SetRule) -> Table:
    if isinstance(record, Table):
        return record
    return record.column.table if isinstance(record, SetRule) else record.table


class ProductFilter(BooleanFieldListFilter):
    """Tables of the product, or those that were designed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "Table of the product"


@admin.register(Table)
class TableAdmin(DesignAdmin):
    """Only the history; the designer lists the tables."""

    history_parts = (RelatedRecords(Column, "table", "Column", "name"), RelatedRecords(View, "table", "View", "name"))
    changelist_view = DesignAdmin.add_view


@admin.register(Column)
class ColumnAdmin(DesignAdmin):
    empty_list_text = "Columns define the values that the records of a table can have."
    list_display = ("name", "table", "label", "type", "reference_table")
    list_filter = [("table__is_system", ProductFilter), "type"]
    list_select_related = ("table", "reference_table")
    search_fields = ("name", "label", "table__name")
    ordering = ("table__is_system", "table__name", "sys_id")
    history_parts = (RelatedRecords(Choice, "column", "Choice", "value"),)


@admin.register(View)
class ViewAdmin(DesignAdmin):
    empty_list_text = "Views are named lists of columns that callers request together."
    list_display = ("name", "table")
    list_select_related = ("table",)
    search_fields = ("name", "table__name")
    history_parts = (RelatedRecords(ViewColumn, "view", "Column", "path"),)


@admin.register(SetRule)
class SetOnChangeRuleAdmin(DesignAdmin):
    empty_list_text = "Rules that set one column when another changes, such as the closing time when the state changes."
    list_display = ("column", "watched", "value", "set_to", "clears")
    list_select_related = ("column__table", "watched__table")
    search_fields = ("column__name", "column__table__name")

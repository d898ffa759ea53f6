"""Admin pages of tables."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode

from tableapi.admin.design import OfTable
from tableapi.models import Table


@admin.register(Table)
class TableAdmin(OfTable):
    list_display = ("name", "label", "parent", "column_count", "whose")
    list_filter: ClassVar[list[Any]] = ["is_system"]
    list_select_related = ("parent",)
    search_fields = ("name", "label")
    ordering = ("is_system", "name")
    fields = ("name", "label", "parent", "number_prefix", "deferred_create", "its_columns")
    readonly_fields = ("its_columns",)

    def is_ours(self, obj: Table) -> bool:
        return obj.is_system

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Table]":
        found: QuerySet[Table] = super().get_queryset(request).annotate(columns_here=Count("columns"))
        return found

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields if obj is not None else [name for name in self.fields if name != "its_columns"]

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name == "parent":
            options["queryset"] = Table.objects.filter(is_system=False)
        return super().formfield_for_foreignkey(db_field, request, **options)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        options["help_texts"] = {
            "name": "Small letters, digits and _. It cannot be changed later.",
            "parent": "Its records are records of that table too, with all columns of both. Cannot be changed later.",
            "number_prefix": "Capital letters, such as TSK: every record gets a number.",
            "deferred_create": "New records are checked at once and created in the background.",
        }
        return super().get_form(request, obj, change, **options)

    @admin.display(description="Columns", ordering="columns_here")
    def column_count(self, table: Any) -> int:
        return int(table.columns_here)

    @admin.display(description="Whose", ordering="is_system")
    def whose(self, table: Table) -> str:
        return "the product's" if table.is_system else "designed"

    @admin.display(description="Columns")
    def its_columns(self, table: Any) -> str:
        there = f"{reverse('admin:tableapi_column_changelist')}?{urlencode({'table__sys_id__exact': table.pk})}"
        more = f"{reverse('admin:tableapi_column_add')}?{urlencode({'table': table.pk})}"
        seen = format_html('<a class="sb-link" href="{}">See all {}</a>', there, table.columns_here)
        if table.is_system:
            return seen
        return format_html('{} · <a class="sb-link" href="{}">Add one</a>', seen, more)

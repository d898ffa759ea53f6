"""Admin pages of tables."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode

from tableapi.admin.design_base import TABLE_FILTER, DesignAdmin, ProductFilter
from tableapi.catalogue.definitions import EXTENSIBLE_TABLES, HIDDEN_TABLES
from tableapi.ddl import schema_editor
from tableapi.models import Rule, Table
from tableapi.models.validation import check_table_deletion

NO_READ_RULE = "Only administrators can read the records, because no active read rule applies."
DELETE_RECORDS_HINT = "Delete its records on the page of the table, or through the Table API."


@admin.register(Table)
class TableAdmin(DesignAdmin):
    list_display = ("name", "label", "parent", "column_count", "origin")
    list_before_template = "admin/tableapi/table/list_note.html"
    list_filter = [("is_system", ProductFilter)]
    list_select_related = ("parent",)
    search_fields = ("name", "label")
    ordering = ("is_system", "name")
    links = ("record_link", "column_links", "view_links", "rule_links")
    fields = ("name", "label", "parent", "number_prefix", "deferred_create", *links)
    readonly_fields = links

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(own_column_count=Count("columns"))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields if obj is not None else [name for name in self.fields if name not in self.links]

    def save_model(self, request: HttpRequest, obj: Table, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        others = Table.objects.filter(number_prefix=obj.number_prefix).exclude(pk=obj.pk).exclude(number_prefix="")
        if other := others.first():
            messages.warning(
                request,
                f"{other.name} has the same number prefix, {obj.number_prefix}. Two records can get the same number.",
            )

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        options["help_texts"] = {
            "name": "Lowercase letters, digits and underscores. Cannot be changed later.",
            "parent": "The table to extend. Its columns and rules also apply to this table. Cannot be changed later.",
            "number_prefix": "Uppercase letters, such as TSK. Every new record gets a number with this prefix.",
            "deferred_create": "New records are validated immediately and created in the background.",
        }
        return super().get_form(request, obj, change, **options)

    @admin.display(description="Columns", ordering="own_column_count")
    def column_count(self, table: Any) -> int:
        return int(table.own_column_count)

    @admin.display(description="Origin", ordering="is_system")
    def origin(self, table: Table) -> str:
        return "product" if table.is_system else "designed"

    @admin.display(description="Records")
    def record_link(self, table: Table) -> str:
        if table.name in HIDDEN_TABLES:
            return "Accessible only through the records to which they belong"
        url = reverse("table-list", args=[table.name])
        return format_html('<a class="sb-link" href="{}">Show records</a>', url)

    @admin.display(description="Columns")
    def column_links(self, table: Any) -> str:
        return self._links(
            "column", table, table.own_column_count, can_add=not table.is_system or table.name in EXTENSIBLE_TABLES
        )

    @admin.display(description="Views")
    def view_links(self, table: Table) -> str:
        return self._links("view", table, table.views.count())

    @admin.display(description="Access rules")
    def rule_links(self, table: Table) -> str:
        count = table.rules.count()
        links = self._links("rule", table, count)
        return links if _has_read_rule(table) else format_html("{} · {}", links, NO_READ_RULE)

    def _links(self, model_name: str, table: Table, count: int, *, can_add: bool = True) -> str:
        list_url = f"{reverse(f'admin:tableapi_{model_name}_changelist')}?{urlencode({TABLE_FILTER: table.pk})}"
        add_url = f"{reverse(f'admin:tableapi_{model_name}_add')}?{urlencode({'table': table.pk})}"
        all_link = format_html('<a class="sb-link" href="{}">Show all ({})</a>', list_url, count) if count else "None"
        return format_html('{} · <a class="sb-link" href="{}">Add</a>', all_link, add_url) if can_add else all_link

    def delete_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """Shows the reason instead of the confirmation page if the table cannot be deleted."""
        table = self.get_object(request, object_id) if request.method == "GET" else None
        try:
            if table is not None and self.has_delete_permission(request, table):
                check_table_deletion(table)
        except ValidationError as error:
            hint = f" {DELETE_RECORDS_HINT}" if table is not None and schema_editor.has_records(table) else ""
            messages.error(request, " ".join(error.messages) + hint)
            return redirect("admin:tableapi_table_change", object_id)
        return super().delete_view(request, object_id, *args, **kwargs)


def _has_read_rule(table: Table) -> bool:
    """Whether an active read rule applies to the records. Rules for any table apply only to designed tables."""
    in_lineage = Q(table__in=table.lineage)
    applies = in_lineage if table.is_system else in_lineage | Q(table=None)
    return Rule.objects.filter(applies, operation=Rule.Operation.READ, column_name="", active=True).exists()

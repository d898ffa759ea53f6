"""Admin pages of tables."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from system.errors import NotFound
from tableapi.admin import record_list
from tableapi.admin.design_base import BY_TABLE, OfTable
from tableapi.ddl import schema_editor
from tableapi.models import Rule, Table
from tableapi.models.validation import check_table_deletion

ONLY_ADMIN = "No rule lets anybody but admin read its records."
WHERE_RECORDS_ARE = "See its records; they are deleted through the Table API."


@admin.register(Table)
class TableAdmin(OfTable):
    list_display = ("name", "label", "parent", "column_count", "owner")
    list_filter: ClassVar[list[Any]] = ["is_system"]
    list_select_related = ("parent",)
    search_fields = ("name", "label")
    ordering = ("is_system", "name")
    its = ("its_records", "its_columns", "its_views", "its_rules")
    fields = ("name", "label", "parent", "number_prefix", "deferred_create", *its)
    readonly_fields = its

    def is_ours(self, obj: Table) -> bool:
        return obj.is_system

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Table]":
        found: QuerySet[Table] = super().get_queryset(request).annotate(columns_here=Count("columns"))
        return found

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return [name for name in self.fields if name not in self.its]
        return [name for name in self.fields if name != "its_records"] if obj.is_system else self.fields

    def save_model(self, request: HttpRequest, obj: Table, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        others = Table.objects.filter(number_prefix=obj.number_prefix).exclude(pk=obj.pk).exclude(number_prefix="")
        if other := others.first():
            messages.warning(
                request,
                f"{other.name} has the number prefix {obj.number_prefix} too: a number may stand for two records.",
            )

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

    @admin.display(description="Owner", ordering="is_system")
    def owner(self, table: Table) -> str:
        return "the product" if table.is_system else "this installation"

    @admin.display(description="Records")
    def its_records(self, table: Table) -> str:
        there = reverse("admin:tableapi_table_records", args=[table.pk])
        return format_html('<a class="sb-link" href="{}">See its records</a>', there)

    @admin.display(description="Columns")
    def its_columns(self, table: Any) -> str:
        return self._its("column", table, table.columns_here, may_add=not table.is_system)

    @admin.display(description="Views")
    def its_views(self, table: Table) -> str:
        return self._its("view", table, table.views.count())

    @admin.display(description="Access rules")
    def its_rules(self, table: Table) -> str:
        count = table.rules.count()
        links = self._its("rule", table, count)
        return links if _is_read_by_rules(table) else format_html("{} · {}", links, ONLY_ADMIN)

    def _its(self, kind: str, table: Table, count: int, *, may_add: bool = True) -> str:
        there = f"{reverse(f'admin:tableapi_{kind}_changelist')}?{urlencode({BY_TABLE: table.pk})}"
        more = f"{reverse(f'admin:tableapi_{kind}_add')}?{urlencode({'table': table.pk})}"
        seen = format_html('<a class="sb-link" href="{}">See all {}</a>', there, count) if count else "None"
        return format_html('{} · <a class="sb-link" href="{}">Add one</a>', seen, more) if may_add else seen

    def get_urls(self) -> Any:
        shown = self.admin_site.admin_view(require_safe(self.records_view))
        return [path("<path:object_id>/records/", shown, name="tableapi_table_records"), *super().get_urls()]

    def records_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Its records, or the one that `record` names."""
        table = self.get_object(request, object_id)
        if not self.has_view_permission(request, table):
            raise PermissionDenied
        if table is None or table.is_system:
            raise NotFound
        user: Any = request.user
        query, sys_id = request.GET.get("query", ""), request.GET.get("record", "")
        seen = {**self.admin_site.each_context(request), "title": f"Records of {table.name}", "table": table}
        seen["unshown"] = record_list.never_shown(table)
        if sys_id:
            seen["record"] = record_list.one(user, table.name, sys_id)
        else:
            seen |= {"listed": record_list.listed(user, table.name, query, request.GET.get("page", "")), "query": query}
        return TemplateResponse(request, "admin/tableapi/table/records.html", seen)

    def delete_view(self, request: HttpRequest, object_id: str, *positional: Any, **named: Any) -> HttpResponse:
        """What the model would refuse is said in place of the question."""
        table = self.get_object(request, object_id) if request.method == "GET" else None
        try:
            if table is not None and self.has_delete_permission(request, table):
                check_table_deletion(table)
        except ValidationError as error:
            where = f" {WHERE_RECORDS_ARE}" if table is not None and schema_editor.has_records(table) else ""
            messages.error(request, " ".join(error.messages) + where)
            return redirect("admin:tableapi_table_change", object_id)
        return super().delete_view(request, object_id, *positional, **named)


def _is_read_by_rules(table: Table) -> bool:
    """By an active rule for records of its own, of a table that it extends, or, where it is designed, of any table."""
    names, each = [table.pk], table
    while each.parent is not None:
        each = each.parent
        names.append(each.pk)
    of_these = Q(table__in=names) if table.is_system else Q(table__in=names) | Q(table=None)
    return Rule.objects.filter(of_these, operation=Rule.Operation.READ, column_name="", active=True).exists()

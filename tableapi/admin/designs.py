"""Read-only lists and the histories of what the designer changes."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.contrib.postgres.expressions import ArraySubquery
from django.core.exceptions import PermissionDenied
from django.db.models import F, Func, IntegerField, OuterRef, QuerySet
from django.db.models.functions import Concat
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from unfold.contrib.filters.admin import AutocompleteSelectFilter, BooleanRadioFilter, ChoicesDropdownFilter

from accounts.admin.roles import USAGE_FINDERS
from accounts.models import Role
from system.admin_site.history_page import RelatedRecords
from system.admin_site.site import HistoryAdmin, ReadOnlyAdmin
from system.encoded_query import QueryError
from system.errors import NotFound
from tableapi.access import permissions
from tableapi.database import catalogue_loader
from tableapi.models import Choice, Column, Rule, SetRule, Table, View, ViewColumn


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
        table = _table_of(record)
        url = reverse("design-table", args=[table.name]) if table else reverse("design-any-table")
        return redirect(f"{url}#record-{record.pk}")

    delete_view = change_view


def _table_of(record: Table | Column | View | SetRule | Rule) -> Table | None:
    if isinstance(record, Table):
        return record
    return record.column.table if isinstance(record, SetRule) else record.table


class ProductFilter(BooleanRadioFilter):  # type: ignore[misc]  # the theme has no types
    """Tables of the product, or those that were designed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "table of the product"


@admin.register(Table)
class TableAdmin(DesignAdmin):
    """Only the history; the designer lists the tables."""

    history_parts = (
        RelatedRecords(Column, "table", "Column", "name"),
        RelatedRecords(View, "table", "View", "name"),
        RelatedRecords(Rule, "table", "Rule", "sys_id"),
        RelatedRecords(SetRule, "column__table", "Automatic value of", "column"),
    )
    changelist_view = DesignAdmin.add_view
    search_fields = ("name", "label")


@admin.register(Column)
class ColumnAdmin(DesignAdmin):
    empty_list_text = "Columns define the values that the records of a table can have."
    list_display = ("name", "table", "label", "type", "reference_table")
    # All of them are fields of one form, because links among them would lose the others.
    list_filter = [
        ("table", AutocompleteSelectFilter), ("table__is_system", ProductFilter), ("type", ChoicesDropdownFilter),
    ]  # fmt: skip
    list_filter_submit = True
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


@admin.register(Rule)
class RuleAdmin(DesignAdmin):
    empty_list_text = "Rules define who can create, read, write or delete records. By default, only administrators can."
    list_display = ("subject", "role_list", "checked_condition", "admin_overrides", "active")
    list_filter = ["operation", "active"]
    list_select_related = ("table",)
    search_fields = ("table__name", "column_name", "description")
    ordering = ("table__name", "column_name", "operation")

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Rule]":
        position = Func(OuterRef("roles"), F("sys_id"), function="array_position", output_field=IntegerField())
        names = Role.objects.annotate(position=position).filter(position__isnull=False).order_by("name").values("name")
        rules: QuerySet[Rule] = super().get_queryset(request).annotate(role_names=ArraySubquery(names))
        catalogue_loader.reload_if_changed()  # once, for all rows of the list
        return rules

    @admin.display(description="Subject", ordering=Concat("table__name", "column_name", "operation"))
    def subject(self, rule: Rule) -> str:
        return rule.subject

    @admin.display(description="Condition", ordering="condition")
    def checked_condition(self, rule: Rule) -> str:
        """The condition, with an error if it has become invalid, for example because a column was deleted."""
        if not rule.condition:
            return ""
        table_name = rule.table.name if rule.table else None
        try:
            permissions.check_condition(catalogue_loader.cached_catalogue(), table_name, rule.condition)
        except QueryError as error:
            return f"{rule.condition} (matches no records: {error})"
        return rule.condition

    @admin.display(description="Roles")
    def role_list(self, rule: Any) -> str:
        if rule.roles and not rule.role_names:
            return "no one (all roles were deleted)"
        return ", ".join(rule.role_names) or "any signed-in user"


@USAGE_FINDERS.register
def rule_usages(role: Role) -> Iterator[str]:
    for rule in Rule.objects.filter(roles__contains=[role.pk]).select_related("table"):
        # The rule stays: it fails closed for this role and still applies to its other roles.
        effect = "apply only to its other roles" if len(rule.roles) > 1 else "no longer apply to anyone"
        yield f"Not deleted: the access rule “{rule}”, which will {effect}"

"""Admin pages of access rules."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, Func, IntegerField, OuterRef, QuerySet
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextareaWidget

from accounts.admin.roles import RoleChoices
from accounts.models import Role
from system.admin_site import TrackedAdmin
from tableapi.models import Rule

CONDITION = (
    "An encoded query over the record, such as assigned_userDYNAMICme^active=true. Empty: it holds for every record. "
    "Sorting by a column whose rule has a condition cannot use the column's index."
)


class RuleForm(forms.ModelForm):  # type: ignore[type-arg]
    roles = RoleChoices(
        queryset=Role.objects.all(),
        required=False,
        help_text="One of them is needed. None chosen: any signed-in caller.",
    )

    class Meta:
        model = Rule
        fields = (
            "operation",
            "table",
            "column_name",
            "roles",
            "condition",
            "admin_overrides",
            "active",
            "description",
        )
        help_texts: ClassVar[dict[str, str]] = {"condition": CONDITION}
        widgets: ClassVar[dict[str, Any]] = {"condition": UnfoldAdminTextareaWidget(attrs={"rows": 3})}


@admin.register(Rule)
class RuleAdmin(TrackedAdmin):
    form = RuleForm
    list_display = ("place", "operation", "held_by", "condition", "admin_overrides", "active")
    list_filter: ClassVar[list[Any]] = ["operation", "active"]
    list_select_related = ("table",)
    search_fields = ("table__name", "column_name", "description")
    list_per_page = 25
    ordering = ("table__name", "column_name", "operation")
    fields = RuleForm.Meta.fields

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Rule]":
        place = Func(OuterRef("roles"), F("sys_id"), function="array_position", output_field=IntegerField())
        named = Role.objects.annotate(place=place).filter(place__isnull=False).order_by("name").values("name")
        found: QuerySet[Rule] = super().get_queryset(request).annotate(role_names=ArraySubquery(named))
        return found

    @admin.display(description="What", ordering="table__name")
    def place(self, rule: Rule) -> str:
        table = rule.table.name if rule.table else "any table"
        return f"{table}.{rule.column_name}" if rule.column_name else table

    @admin.display(description="Roles")
    def held_by(self, rule: Any) -> str:
        if rule.roles and not rule.role_names:
            return "nobody: its roles are gone"
        return ", ".join(rule.role_names) or "any signed-in caller"

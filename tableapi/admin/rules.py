"""Admin pages of access rules."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin, messages
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, Func, IntegerField, OuterRef, QuerySet
from django.db.models.functions import Concat
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextareaWidget

from accounts.admin.roles import USAGE_FINDERS, RoleMultipleChoiceField
from accounts.models import Role
from system.encoded_query import QueryError
from tableapi.access import permissions
from tableapi.admin.design_base import CatalogueForm, PerTableAdmin
from tableapi.database import catalogue_loader
from tableapi.design import rule_hints
from tableapi.models import Rule


class RuleForm(CatalogueForm):
    roles = RoleMultipleChoiceField(
        queryset=Role.objects.all(),
        required=False,
        help_text="The rule applies to callers with at least one of these roles. Leave empty for any signed-in user.",
    )

    class Meta:
        model = Rule
        fields = Rule.table_columns
        help_texts = {
            "table": "Leave empty for any designed table.",
            "condition": "An encoded query, such as assigned_userDYNAMICme^active=true. Leave empty to match every "
            "record. Sorting by a column whose rule has a condition cannot use the column's index.",
        }
        widgets = {"condition": UnfoldAdminTextareaWidget(attrs={"rows": 3})}


@USAGE_FINDERS.register
def rule_usages(role: Role) -> Iterator[str]:
    for rule in Rule.objects.filter(roles__contains=[role.pk]).select_related("table"):
        # The rule stays: it fails closed for this role and still applies to its other roles.
        effect = "apply only to its other roles" if len(rule.roles) > 1 else "no longer apply to anyone"
        yield f"Not deleted: the access rule “{rule}”, which will {effect}"


@admin.register(Rule)
class RuleAdmin(PerTableAdmin):
    empty_list_text = "Rules define who can create, read, write or delete records. By default, only administrators can."
    form = RuleForm
    list_display = ("subject", "role_list", "checked_condition", "admin_overrides", "active")
    list_filter = ["operation", "active"]
    list_select_related = ("table",)
    search_fields = ("table__name", "column_name", "description")
    list_per_page = 25
    ordering = ("table__name", "column_name", "operation")
    fields = RuleForm.Meta.fields

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Rule]":
        position = Func(OuterRef("roles"), F("sys_id"), function="array_position", output_field=IntegerField())
        names = Role.objects.annotate(position=position).filter(position__isnull=False).order_by("name").values("name")
        rules: QuerySet[Rule] = super().get_queryset(request).annotate(role_names=ArraySubquery(names))
        catalogue_loader.reload_if_changed()  # once, for all rows of the list
        return rules

    def save_model(self, request: HttpRequest, obj: Rule, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        hints = list(rule_hints.rule_hints(obj))
        if obj.table is not None and obj.condition:
            hints += rule_hints.condition_hints(catalogue_loader.load(), obj.table.name, obj.condition)
        for hint in hints:
            messages.warning(request, hint)

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

"""Admin pages of access rules."""

from collections.abc import Iterator
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, Func, IntegerField, OuterRef, QuerySet
from django.db.models.functions import Concat
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextareaWidget

from accounts.admin.roles import RoleChoices, register_usages
from accounts.models import Role
from system.encoded_query import QueryError
from tableapi.access import permissions
from tableapi.admin.design_base import AmongItsOwn
from tableapi.database import catalogue_loader
from tableapi.design import rule_hints
from tableapi.models import Rule

CONDITION = (
    "An encoded query over the record, such as assigned_userDYNAMICme^active=true. Empty: it holds for every record. "
    "Sorting by a column whose rule has a condition cannot use the column's index."
)


class RuleForm(forms.ModelForm):  # type: ignore[type-arg]
    roles = RoleChoices(
        queryset=Role.objects.all(),
        required=False,
        help_text="The caller needs one of these roles. Leave empty for any authenticated caller.",
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
        help_texts: ClassVar[dict[str, str]] = {"table": "Leave empty for any designed table.", "condition": CONDITION}
        widgets: ClassVar[dict[str, Any]] = {"condition": UnfoldAdminTextareaWidget(attrs={"rows": 3})}


@register_usages
def rules_of(role: Role) -> Iterator[str]:
    for rule in Rule.objects.filter(roles__contains=[role.pk]).select_related("table"):
        # The rule itself stays: it fails closed, and its other roles go on.
        whom = "its other roles only" if len(rule.roles) > 1 else "nobody"
        yield f"Not deleted: the access rule “{rule}”, which will hold for {whom}"


@admin.register(Rule)
class RuleAdmin(AmongItsOwn):
    holds = "Rules define who may create, read, write or delete records. Without rules, only administrators may."
    form = RuleForm
    list_display = ("what", "held_by", "asks", "admin_overrides", "active")
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
        catalogue_loader.reload_if_changed()  # once, for all rows of the list
        return found

    def save_model(self, request: HttpRequest, obj: Rule, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        for sentence in rule_hints.rule_hints(obj):
            messages.warning(request, sentence)
        if obj.table is not None and obj.condition:
            for sentence in rule_hints.of_condition(catalogue_loader.read(), obj.table.name, obj.condition):
                messages.warning(request, sentence)

    @admin.display(description="What", ordering=Concat("table__name", "column_name", "operation"))
    def what(self, rule: Rule) -> str:
        return rule.place

    @admin.display(description="Condition", ordering="condition")
    def asks(self, rule: Rule) -> str:
        """A column that it asks of may be gone since."""
        if not rule.condition:
            return ""
        try:
            permissions.check_condition(
                catalogue_loader.cached_catalogue(), rule.table.name if rule.table else None, rule.condition
            )
        except QueryError as error:
            return f"{rule.condition} (nobody: {error})"
        return rule.condition

    @admin.display(description="Roles")
    def held_by(self, rule: Any) -> str:
        if rule.roles and not rule.role_names:
            return "nobody: its roles are gone"
        return ", ".join(rule.role_names) or "any signed-in caller"

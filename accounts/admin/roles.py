"""Admin pages of roles."""

from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from accounts.admin.last_admin import KeepingAnAdmin
from accounts.models import Role
from accounts.roles import SHIPPED

# What names a role without being linked to it; each area says what of its own does.
FindUses = Callable[[Role], Iterable[str]]
USES: list[FindUses] = []


def used_by(find: FindUses) -> FindUses:
    """Add what the page that deletes a role names."""
    USES.append(find)
    return find


class RoleChoices(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Roles to choose, kept as the array of their ids."""

    widget = UnfoldAdminCheckboxSelectMultipleWidget

    def prepare_value(self, value: Any) -> Any:
        return list(value) if isinstance(value, list | tuple) else super().prepare_value(value)

    def clean(self, value: Any) -> Any:
        return [role.pk for role in super().clean(value)]


class RoleForm(forms.ModelForm):  # type: ignore[type-arg]
    contains = RoleChoices(
        queryset=Role.objects.all(), required=False, help_text="Holders of this role have the rights of these too."
    )

    class Meta:
        model = Role
        fields = ("name", "description", "contains", "grantable_by_sign_in")


@admin.register(Role)
class RoleAdmin(KeepingAnAdmin):
    form = RoleForm
    list_display = ("name", "description", "grantable_by_sign_in")
    search_fields = ("name", "description")
    fields = ("name", "description", "contains", "grantable_by_sign_in")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        found = super().get_readonly_fields(request, obj)
        # The product asks for these by name.
        return (*found, "name") if obj is not None and obj.name in SHIPPED else found

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_shipped = obj is not None and obj.name in SHIPPED
        return not is_shipped and bool(super().has_delete_permission(request, obj))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        deleted, count, needed, protected = super().get_deleted_objects(objs, request)
        kept = [f"{role.name} (shipped with the product)" for role in objs if role.name in SHIPPED]
        uses = [sentence for role in objs for find in USES for sentence in find(role)]
        # Said as what it is, not as a right that the administrator lacks.
        return [*deleted, *uses], count, set() if kept else needed, [*protected, *kept]

"""Admin pages of roles."""

from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminSelect2MultipleWidget

from accounts.admin.last_admin_guard import KeepingAnAdmin
from accounts.models import Role
from accounts.normalisation import bare
from accounts.roles import ADMIN, SHIPPED

# What names a role without being linked to it; each area says what of its own does.
FindUses = Callable[[Role], Iterable[str]]
USES: list[FindUses] = []


def used_by(find: FindUses) -> FindUses:
    """Add what the page that deletes a role names."""
    USES.append(find)
    return find


class RoleChoices(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Roles to choose, kept as the array of their ids; found by typing, since there may be hundreds."""

    widget = UnfoldAdminSelect2MultipleWidget(attrs={"data-width": "100%", "data-placeholder": "Type to find a role"})

    def prepare_value(self, value: Any) -> Any:
        return list(value) if isinstance(value, list | tuple) else super().prepare_value(value)

    def clean(self, value: Any) -> Any:
        return [role.pk for role in super().clean(value)]


ACTS_AS_ALL = "Holders of admin act with every role, whatever stands here."


class RoleForm(forms.ModelForm):  # type: ignore[type-arg]
    contains = RoleChoices(
        queryset=Role.objects.all(), required=False, help_text="Holders of this role have the rights of these too."
    )

    class Meta:
        model = Role
        fields = ("name", "description", "contains", "grantable_by_sign_in")

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)
        if self.instance.name == ADMIN:
            self.fields["contains"].help_text = ACTS_AS_ALL


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

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        if obj is not None and obj.name in SHIPPED:
            options["help_texts"] = {
                "name": "The product asks for this role by its name: it can be neither renamed nor deleted."
            }
        return super().get_form(request, obj, change, **options)

    def save_model(self, request: HttpRequest, obj: Role, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        for name in Role.objects.exclude(pk=obj.pk).values_list("name", flat=True):
            if bare(name) == bare(obj.name):
                messages.warning(request, f"There is also a role “{name}”: people may take the two for one.")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_shipped = obj is not None and obj.name in SHIPPED
        return not is_shipped and bool(super().has_delete_permission(request, obj))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        deleted, count, needed, protected = super().get_deleted_objects(objs, request)
        kept = [f"{role.name} (shipped with the product)" for role in objs if role.name in SHIPPED]
        uses = [sentence for role in objs for find in USES for sentence in find(role)]
        # Said as what it is, not as a right that the administrator lacks.
        return [*deleted, *uses], count, set() if kept else needed, [*protected, *kept]

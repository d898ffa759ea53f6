"""Admin pages of roles, and the protection of the last administrator."""

from collections.abc import Callable, Iterable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminSelect2MultipleWidget

from accounts.models import Role
from accounts.normalization import similarity_key
from accounts.privileges import ensure_admin_remains, has_admin
from accounts.roles import ADMIN, SHIPPED_ROLES
from system.admin_site.site import HistoryAdmin
from system.registry import Registry

# Each app registers functions that describe its uses of a role without a foreign key, for the deletion page.
USAGE_FINDERS: Registry[Callable[[Role], Iterable[str]]] = Registry()


class LastAdminGuard(HistoryAdmin):
    """Rolls back changes that would remove the last administrator. Base of the admin pages of users and roles."""

    def save_model(self, request: Any, obj: Any, form: Any, change: bool) -> None:
        # Django saves the record first and its inlines afterwards, so the check must span both steps.
        request.had_admin = has_admin()
        super().save_model(request, obj, form, change)

    def save_related(self, request: Any, form: Any, formsets: Any, change: bool) -> None:
        with ensure_admin_remains(had_admin=request.had_admin):
            super().save_related(request, form, formsets, change)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with ensure_admin_remains():
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: "models.QuerySet[Any]") -> None:
        with ensure_admin_remains():
            super().delete_queryset(request, queryset)


class RoleMultipleChoiceField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """A searchable choice of roles, stored as an array of ids."""

    widget = UnfoldAdminSelect2MultipleWidget(attrs={"data-width": "100%", "data-placeholder": "Type to find a role"})

    def prepare_value(self, value: Any) -> Any:
        return list(value) if isinstance(value, list | tuple) else super().prepare_value(value)

    def clean(self, value: Any) -> Any:
        return [role.pk for role in super().clean(value)]


ADMIN_ROLE_HELP = "Administrators have every role, regardless of this list."


class RoleForm(forms.ModelForm):  # type: ignore[type-arg]
    contains = RoleMultipleChoiceField(
        queryset=Role.objects.all(), required=False, help_text="Users with this role also have these roles."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.name == ADMIN:
            self.fields["contains"].help_text = ADMIN_ROLE_HELP


@admin.register(Role)
class RoleAdmin(LastAdminGuard):
    form = RoleForm
    list_display = ("name", "description", "grantable_by_sign_in")
    search_fields = ("name", "description")
    fields = ("name", "description", "contains", "grantable_by_sign_in")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = super().get_readonly_fields(request, obj)
        # The product refers to these by name.
        return (*names, "name") if obj is not None and obj.name in SHIPPED_ROLES else names

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        if obj is not None and obj.name in SHIPPED_ROLES:
            options["help_texts"] = {"name": "This role is part of the product and cannot be renamed or deleted."}
        return super().get_form(request, obj, change, **options)

    def save_model(self, request: HttpRequest, obj: Role, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        for name in Role.objects.exclude(pk=obj.pk).values_list("name", flat=True):
            if similarity_key(name) == similarity_key(obj.name):
                messages.warning(request, f"Another role has a similar name: “{name}”.")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_shipped = obj is not None and obj.name in SHIPPED_ROLES
        return not is_shipped and bool(super().has_delete_permission(request, obj))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        to_delete, counts, perms_needed, protected = super().get_deleted_objects(objs, request)
        shipped_roles = [f"{role.name} (part of the product)" for role in objs if role.name in SHIPPED_ROLES]
        usages = [sentence for role in objs for finder in USAGE_FINDERS for sentence in finder(role)]
        # Listed as protected, not as a missing permission.
        return [*to_delete, *usages], counts, set() if shipped_roles else perms_needed, [*protected, *shipped_roles]

"""Rolls back changes in the admin that would remove the last administrator."""

from typing import Any

from django.db import models
from django.http import HttpRequest

from accounts.privileges import ensure_admin_remains, has_admin
from system.admin_site.site import HistoryAdmin


class LastAdminGuard(HistoryAdmin):
    """Base of the admin pages that could remove the last administrator: users and roles."""

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

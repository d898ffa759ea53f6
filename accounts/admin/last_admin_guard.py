"""Undoes a change in the admin after which nobody could administer."""

from typing import Any

from django.db import models
from django.http import HttpRequest

from accounts.privileges.last_admin import is_there, keeping_an_admin
from system.admin_site.site import TrackedAdmin


class KeepingAnAdmin(TrackedAdmin):
    """Base of the pages that could take the last administrator away: those of users and of roles."""

    def save_model(self, request: Any, obj: Any, form: Any, change: bool) -> None:
        # The record is saved first, what belongs to it in a second step: asked before both, checked after both.
        request.had_admin = is_there()
        super().save_model(request, obj, form, change)

    def save_related(self, request: Any, form: Any, formsets: Any, change: bool) -> None:
        with keeping_an_admin(was_there=request.had_admin):
            super().save_related(request, form, formsets, change)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with keeping_an_admin():
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: "models.QuerySet[Any]") -> None:
        with keeping_an_admin():
            super().delete_queryset(request, queryset)

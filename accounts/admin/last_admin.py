"""Undoes a change in the admin after which nobody could administer."""

from typing import Any

from django.db import models
from django.http import HttpRequest

from accounts.last_admin import keeping_an_admin
from system.admin_site import TrackedAdmin


class KeepingAnAdmin(TrackedAdmin):
    """Base of the pages that could take the last administrator away: those of users and of roles."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        with keeping_an_admin():
            super().save_related(request, form, formsets, change)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with keeping_an_admin():
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: "models.QuerySet[Any]") -> None:
        with keeping_an_admin():
            super().delete_queryset(request, queryset)

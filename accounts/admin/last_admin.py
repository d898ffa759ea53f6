"""Undoes a change in the admin after which nobody could administer."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.last_admin import NoAdminLeft, keeping_an_admin
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

    def changeform_view(self, request: HttpRequest, *positional: Any, **named: Any) -> HttpResponse:
        return self._or_say_why(request, super().changeform_view, *positional, **named)

    def delete_view(self, request: HttpRequest, *positional: Any, **named: Any) -> HttpResponse:
        return self._or_say_why(request, super().delete_view, *positional, **named)

    def changelist_view(self, request: HttpRequest, *positional: Any, **named: Any) -> HttpResponse:
        return self._or_say_why(request, super().changelist_view, *positional, **named)

    def _or_say_why(
        self, request: HttpRequest, view: Callable[..., HttpResponse], *positional: Any, **named: Any
    ) -> HttpResponse:
        try:
            with transaction.atomic():  # what the page logged about the change goes with it
                return view(request, *positional, **named)
        except NoAdminLeft as refused:
            messages.error(request, refused.message)
            return redirect(request.get_full_path())

"""Undoes a change in the admin after which nobody could administer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib import messages
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts import roles
from accounts.models import Role, User
from system.admin_site import TrackedAdmin


class NoAdminLeft(Exception):
    """The change would leave nobody who can administer."""


@contextmanager
def keeping_an_admin() -> Iterator[None]:
    """Undo a change after which no active user holds `admin`."""
    with transaction.atomic():
        yield
        # One after the other: two changes at once would each count on the administrator that the other takes away.
        admin = Role.objects.select_for_update(no_key=True).get(name=roles.ADMIN)
        if not User.objects.filter(active=True, grants__role__in=roles.ids_that_give(admin.pk)).exists():
            raise NoAdminLeft


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
        except NoAdminLeft:
            messages.error(request, "Nothing was changed: at least one active user must hold the role admin.")
            return redirect(request.get_full_path())

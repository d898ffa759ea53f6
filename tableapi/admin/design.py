"""The base of the pages whose saving changes the database: what is refused there is said, and nothing is half done."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from system.admin_site import TrackedAdmin
from system.errors import Unavailable


class DesignAdmin(TrackedAdmin):
    """Base of the pages of the catalogue."""

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
        except ValidationError as error:
            said = " ".join(error.messages)
        except Unavailable as error:
            said = error.message
        except (models.ProtectedError, models.RestrictedError):
            said = "Something else refers to it."
        messages.error(request, f"Nothing was changed. {said}")
        return redirect(request.get_full_path())


class OfTable(DesignAdmin):
    """The same for what is the product's own when its table is."""

    def is_ours(self, obj: Any) -> bool:
        """Whether it is the product's own, so that only its label changes."""
        raise NotImplementedError

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        found = super().get_readonly_fields(request, obj)
        if obj is None:
            return found
        fixed = [name for name in self.fields if name != "label"] if self.is_ours(obj) else obj.fixed
        return (*found, *(name for name in fixed if name in self.fields and name not in found))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_ours = obj is not None and self.is_ours(obj)
        return not is_ours and bool(super().has_delete_permission(request, obj))

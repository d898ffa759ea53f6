"""The admin site and the base of its pages."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.core.exceptions import ValidationError
from django.core.paginator import InvalidPage
from django.db import models, transaction
from django.db.models.constants import LOOKUP_SEP
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import capfirst
from simple_history.admin import SimpleHistoryAdmin
from unfold.admin import ModelAdmin
from unfold.sites import UnfoldAdminSite

from system.admin_site.edit_conflicts import EditConflictMixin
from system.admin_site.history_page import Entries, describe_changes
from system.errors import AccessDenied, Conflict, Invalid, NotFound, Unavailable


class Site(UnfoldAdminSite):  # type: ignore[misc]  # the theme has no types
    """Roles decide who enters and what they see; signing in is the product's own page."""

    index_title = "Dashboard"

    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if request.user.is_authenticated:
            raise AccessDenied("Your roles do not open the administration.")
        wanted = request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index")
        return redirect(f"{reverse('login')}?{urlencode({'next': wanted})}")

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        try:
            found: HttpResponse = super().search(request, extra_context)
        except (InvalidPage, ValueError):  # the theme takes any page for one that is there
            raise NotFound from None
        return found

    def autocomplete_view(self, request: HttpRequest) -> HttpResponse:
        if "\x00" in request.GET.get("term", ""):
            raise NotFound
        found: HttpResponse = super().autocomplete_view(request)
        return found


class RecordAdmin(EditConflictMixin, ModelAdmin):  # type: ignore[misc]  # the theme has no types
    """Base of the admin pages of records: bookkeeping at the bottom, read-only."""

    BOOKKEEPING = ("sys_id", "sys_created_at", "sys_created_by", "sys_updated_at", "sys_updated_by", "sys_version")
    list_filter_submit = False
    compressed_fields = True
    warn_unsaved_form = True
    show_full_result_count = False
    # A sentence about what the list is for, said while it is empty.
    holds = ""

    def get_readonly_fields(self, request: HttpRequest, obj: models.Model | None = None) -> Any:
        return (*super().get_readonly_fields(request, obj), *self.BOOKKEEPING)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """A filter in the address would tell a secret letter by letter, one of a linked table too."""
        name = lookup.partition(LOOKUP_SEP)[0]
        is_secret = name in getattr(self.model, "secret_columns", ())
        # Django lets the key of a linked table pass; a session's is the hash of its cookie.
        is_of_others = name in {link.name for link in self.opts.related_objects}
        is_text = "\x00" not in value  # PostgreSQL has no such text
        return is_text and not is_secret and not is_of_others and bool(super().lookup_allowed(lookup, value, request))

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        found: Any = super().get_changelist_instance(request)
        found.title = capfirst(self.opts.verbose_name_plural)
        found.is_narrowed = bool(found.query or found.get_filters_params())
        if not found.is_narrowed:
            found.full_result_count = found.result_count  # else the theme offers to show all of what is whole
        return found

    def render_change_form(self, request: HttpRequest, context: Any, *positional: Any, **named: Any) -> Any:
        if context.get("original") is not None:
            context |= {"title": _page_title(context["original"]), "subtitle": None}
        return super().render_change_form(request, context, *positional, **named)

    def render_delete_form(self, request: HttpRequest, context: Any) -> Any:
        if not (context["perms_lacking"] or context["protected"]):
            context["title"] = f"Delete: {_page_title(context['object'])}"
        return super().render_delete_form(request, context)

    def get_fieldsets(self, request: HttpRequest, obj: models.Model | None = None) -> Any:
        if self.fieldsets is not None:
            found = list(self.fieldsets)
        else:
            shown = [name for name in self.get_fields(request, obj) if name not in self.BOOKKEEPING]
            found = [(None, {"fields": shown})]
        if obj is not None:
            found.append(("Record", {"fields": self.BOOKKEEPING, "classes": ["collapse"]}))
        return found


def _page_title(record: Any) -> str:
    return str(record.page_title() if hasattr(record, "page_title") else record)


class TrackedAdmin(SimpleHistoryAdmin, RecordAdmin):  # type: ignore[misc]
    """The same with the change history; an old state is shown, never restored or changed."""

    object_history_list_template = "admin/history_list.html"

    def get_history_queryset(self, request: HttpRequest, history_manager: Any, pk_name: str, object_id: str) -> Any:
        own = super().get_history_queryset(request, history_manager, pk_name, object_id)
        return Entries(own, self.history_parts, object_id)

    def set_history_delta_changes(self, request: HttpRequest, historical_records: Any, **_: Any) -> None:
        describe_changes(historical_records)

    def history_view_title(self, request: HttpRequest, obj: models.Model) -> str:
        return f"History: {_page_title(obj)}"

    def changeform_view(self, request: HttpRequest, *positional: Any, **named: Any) -> HttpResponse:
        return self._or_say_why(request, super().changeform_view, *positional, **named)

    def delete_view(self, request: HttpRequest, *positional: Any, **named: Any) -> HttpResponse:
        return self._or_say_why(request, super().delete_view, *positional, **named)

    def changelist_view(self, request: HttpRequest, *positional: Any, **named: Any) -> HttpResponse:
        return self._or_say_why(request, super().changelist_view, *positional, **named)

    def _or_say_why(
        self, request: HttpRequest, view: Callable[..., HttpResponse], *positional: Any, **named: Any
    ) -> HttpResponse:
        """What a model refuses while it is saved or deleted is said on the page, and nothing is half done."""
        try:
            with transaction.atomic():  # what the page logged about the change goes with it
                return view(request, *positional, **named)
        except ValidationError as error:
            said = " ".join(error.messages)
        except (Conflict, Invalid, Unavailable) as error:
            said = error.message
        except (models.ProtectedError, models.RestrictedError):
            said = "Something else refers to it."
        messages.error(request, f"Nothing was changed. {said}")
        return redirect(request.get_full_path())

    def history_form_view(
        self, request: HttpRequest, object_id: str, version_id: str, extra_context: Any = None
    ) -> HttpResponse:
        # Without its button the page would still save what is posted to it, past all other checks.
        if request.method not in ("GET", "HEAD"):
            raise AccessDenied("An old state is shown, never restored.")
        if not version_id.isascii() or not version_id.isdigit():
            raise NotFound
        response: HttpResponse = super().history_form_view(request, object_id, version_id, extra_context)
        return response


class ReadOnlyAdmin(RecordAdmin):
    """Pages of what only the product writes."""

    refuses_later_changes = False

    def has_add_permission(self, request: HttpRequest, *_: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

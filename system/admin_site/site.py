"""The admin site and the base classes of its pages."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import InvalidPage
from django.db import models, transaction
from django.db.models.constants import LOOKUP_SEP
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import formats
from django.utils.http import urlencode
from django.utils.text import capfirst
from django.utils.timezone import localtime
from simple_history.admin import SimpleHistoryAdmin
from unfold.admin import ModelAdmin
from unfold.sites import UnfoldAdminSite

from system.admin_site.edit_conflicts import EditConflictMixin
from system.admin_site.history_page import DisplayNames, HistoryEntries, describe_changes, values_of
from system.errors import AccessDenied, Conflict, InvalidInput, NotFound, Unavailable
from system.records.record import Record


def theme_of_reader(request: HttpRequest) -> str:
    """The theme's callback for light or dark."""
    theme = str(getattr(request.user, "theme", "system"))
    return "auto" if theme == "system" else theme


class Site(UnfoldAdminSite):  # type: ignore[misc]  # the theme has no types
    """The admin site: roles control access, and users sign in on the product's sign-in page."""

    index_title = "Dashboard"

    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if request.user.is_authenticated:
            raise AccessDenied("None of your roles gives access to the administration site.")
        next_url = request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index")
        return redirect(f"{reverse('login')}?{urlencode({'next': next_url})}")

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        try:
            return super().search(request, extra_context)
        except (InvalidPage, ValueError):  # the theme does not check the page number
            raise NotFound from None

    def autocomplete_view(self, request: HttpRequest) -> Any:
        if "\x00" in request.GET.get("term", ""):
            raise NotFound
        return super().autocomplete_view(request)


class RecordAdmin(EditConflictMixin, ModelAdmin):  # type: ignore[misc]  # the theme has no types
    """Base class of the admin pages of records, with the bookkeeping columns at the bottom, read-only."""

    BOOKKEEPING = ("sys_id", "sys_created_at", "sys_created_by", "sys_updated_at", "sys_updated_by", "sys_version")
    warn_unsaved_form = True
    show_full_result_count = False
    empty_list_text = ""

    def get_readonly_fields(self, request: HttpRequest, obj: models.Model | None = None) -> Any:
        return (*super().get_readonly_fields(request, obj), *self.BOOKKEEPING)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Refuse filters that could reveal secrets letter by letter, including those of related tables."""
        name = lookup.partition(LOOKUP_SEP)[0]
        is_secret = name in getattr(self.model, "secret_columns", ())
        # Django allows filters on the key of a related table; a session's key is the hash of its cookie.
        is_reverse = name in {relation.name for relation in self.opts.related_objects}
        has_nul = "\x00" in value  # PostgreSQL cannot store this character
        return not (is_secret or is_reverse or has_nul) and bool(super().lookup_allowed(lookup, value, request))

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changelist: Any = super().get_changelist_instance(request)
        changelist.title = capfirst(self.opts.verbose_name_plural)
        changelist.is_filtered = bool(changelist.query or changelist.get_filters_params())
        if not changelist.is_filtered:
            changelist.full_result_count = changelist.result_count  # otherwise the theme offers to show all rows
        return changelist

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        record = context.get("original")
        title = _page_title(record) if record is not None else f"Create {self.opts.verbose_name}"
        context |= {"title": title, "subtitle": None}
        return super().render_change_form(request, context, *args, **kwargs)

    def render_delete_form(self, request: HttpRequest, context: Any) -> Any:
        if not (context["perms_lacking"] or context["protected"]):
            context["title"] = f"Delete {_page_title(context['object'])}"
        return super().render_delete_form(request, context)

    def get_fieldsets(self, request: HttpRequest, obj: models.Model | None = None) -> Any:
        if self.fieldsets is not None:
            fieldsets = list(self.fieldsets)
        else:
            names = [name for name in self.get_fields(request, obj) if name not in self.BOOKKEEPING]
            fieldsets = [(None, {"fields": names})]
        if isinstance(obj, Record):
            fieldsets.append(("Record", {"fields": self.BOOKKEEPING, "classes": ["collapse"]}))
        return fieldsets


def _page_title(record: Any) -> str:
    return str(record.page_title() if hasattr(record, "page_title") else record)


class HistoryAdmin(SimpleHistoryAdmin, RecordAdmin):  # type: ignore[misc]
    """A `RecordAdmin` with the change history. Earlier versions can be viewed, but not restored or changed."""

    object_history_list_template = "admin/history_list.html"

    def get_history_queryset(self, request: HttpRequest, history_manager: Any, pk_name: str, object_id: str) -> Any:
        own_entries = super().get_history_queryset(request, history_manager, pk_name, object_id)
        return HistoryEntries(own_entries, self.history_parts, object_id)

    def set_history_delta_changes(self, request: HttpRequest, historical_records: Any, **_: Any) -> None:
        describe_changes(historical_records)

    def history_view_title(self, request: HttpRequest, obj: models.Model) -> str:
        return f"History of {_page_title(obj)}"

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return self._run_view_with_error_messages(request, super().changeform_view, *args, **kwargs)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return self._run_view_with_error_messages(request, super().delete_view, *args, **kwargs)

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return self._run_view_with_error_messages(request, super().changelist_view, *args, **kwargs)

    def _run_view_with_error_messages(
        self, request: HttpRequest, view: Callable[..., HttpResponse], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show an error of the model as a message, and roll back the whole change."""
        try:
            with transaction.atomic():  # also rolls back the log entry of the change
                return view(request, *args, **kwargs)
        except ValidationError as error:
            reason = " ".join(error.messages)
        except (Conflict, InvalidInput, Unavailable) as error:
            reason = error.message
        except (models.ProtectedError, models.RestrictedError):
            reason = "Other records reference this record."
        messages.error(request, f"Nothing was changed. {reason}")
        return redirect(request.get_full_path())

    def history_form_view(
        self, request: HttpRequest, object_id: str, version_id: str, extra_context: Any = None
    ) -> Any:
        """Replaces the library's page, a form that nobody can save."""
        if request.method not in ("GET", "HEAD"):
            raise AccessDenied("Earlier versions cannot be restored.")
        is_id = version_id.isascii() and version_id.isdigit() and len(version_id) < 19 and "\x00" not in object_id
        entry = self.model.history.filter(sys_id=object_id, history_id=version_id).first() if is_id else None
        if entry is None:
            raise NotFound
        if not self.has_view_or_change_permission(request, entry.instance):
            raise PermissionDenied
        describe_changes([entry])
        (name,) = DisplayNames(self.model).of([object_id])
        context = {
            **self.admin_site.each_context(request),
            "title": f"{name} on {formats.localize(localtime(entry.history_date))}",
            "opts": self.opts,
            "object": self.model._default_manager.filter(pk=object_id).first(),
            "entry": entry,
            "values": values_of(entry),
            "history_url": reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_history", args=(object_id,)),
        }
        return render(request, "admin/history_version.html", context)


class ReadOnlyAdmin(RecordAdmin):
    """Base class of the admin pages of records that only the product writes."""

    checks_edit_conflicts = False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_add_permission = has_delete_permission = has_change_permission

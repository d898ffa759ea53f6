"""Admin pages of form views."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from unfold.admin import TabularInline

from system.admin_site.history_page import RelatedRecords
from tableapi.admin.design_base import DesignFormSet, PerTableAdmin
from tableapi.design import catalogue_checks, saving
from tableapi.models import View, ViewColumn


class PathForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean(self) -> dict[str, Any]:
        """Checks the path first, so that an invalid path is not reported as a duplicate as well."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if path := cleaned.get("path"):
            try:
                catalogue_checks.check_path_in_view(self.instance, path)
            except ValidationError as error:
                self.add_error(None, error)
        return cleaned


class PathFormSet(DesignFormSet):
    def clean(self) -> None:
        """Checks the paths of a new view, which the forms cannot look up. Each invalid path is reported at its form,
        too many joins at the last form."""
        super().clean()
        if not self.instance.is_new or self.instance.table_id is None:
            return
        table = self.instance.table
        forms_to_save = [form for form in self.forms if form.is_valid() and form not in self.deleted_forms]
        paths = [(form, form.cleaned_data["path"]) for form in forms_to_save if form.cleaned_data.get("path")]
        for form, path in paths:
            self._report(form, partial(catalogue_checks.check_path, table, path))
        if paths and all(form.is_valid() for form, _ in paths):
            self._report(paths[-1][0], partial(catalogue_checks.check_joins, table, tuple(path for _, path in paths)))

    def _report(self, form: Any, check: Callable[[], None]) -> None:
        try:
            check()
        except ValidationError as error:
            form.add_error(None, error)


class ViewColumnInline(TabularInline):  # type: ignore[misc]  # the theme has no types
    model = ViewColumn
    form = PathForm
    formset = PathFormSet
    fields = ("path", "position")
    extra = 0
    verbose_name = "column"
    verbose_name_plural = (
        "columns, lowest position first (use dots to follow references, such as assigned_user.company.name)"
    )


@admin.register(View)
class ViewAdmin(PerTableAdmin):
    empty_list_text = "Views are named lists of columns that callers request together."
    list_display = ("name", "table")
    list_select_related = ("table",)
    list_filter = ()
    search_fields = ("name", "table__name")
    fields = ("table", "name")
    inlines = (ViewColumnInline,)
    history_parts = (RelatedRecords(ViewColumn, "view", "Column", "path"),)

    def save_model(self, request: HttpRequest, obj: View, form: Any, change: bool) -> None:
        saving.save_view(obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = super().get_readonly_fields(request, obj)
        return (*names, *obj.fixed_fields) if obj is not None else names

"""Admin pages of form views."""

from typing import Any

from django import forms
from django.contrib import admin
from unfold.admin import TabularInline

from system.admin_site.history_page import RelatedRecords
from tableapi.admin.design_base import DesignFormSet, PerTableAdmin, add_errors
from tableapi.design import catalogue_checks
from tableapi.models import View, ViewColumn


class PathForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean(self) -> dict[str, Any]:
        """Checks the path first, because an invalid path should not also be reported as a duplicate."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if path := cleaned.get("path"):
            add_errors(self, catalogue_checks.check_path_in_view, self.instance, path)
        return cleaned


class PathFormSet(DesignFormSet):
    def clean(self) -> None:
        """Checks the paths of a view that is not saved yet. Invalid paths are reported on their own form, too many
        joins on the last form."""
        super().clean()
        if not self.instance.is_new or self.instance.table_id is None:
            return
        table = self.instance.table
        forms_to_save = [form for form in self.forms if form.is_valid() and form not in self.deleted_forms]
        paths = [(form, form.cleaned_data["path"]) for form in forms_to_save if form.cleaned_data.get("path")]
        for form, path in paths:
            add_errors(form, catalogue_checks.check_path, table, path)
        if paths and all(form.is_valid() for form, _ in paths):
            add_errors(paths[-1][0], catalogue_checks.check_joins, table, tuple(path for _, path in paths))


class ViewColumnInline(TabularInline):  # type: ignore[misc]  # the theme has no types
    model = ViewColumn
    form = PathForm
    formset = PathFormSet
    fields = ("path", "section", "position")
    extra = 0
    verbose_name = "column"
    verbose_name_plural = (
        "columns, lowest position first (use dots to follow references, such as assigned_user.company.name; forms show "
        "columns with a section under that heading)"
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

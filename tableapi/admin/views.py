"""Admin pages of form views."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest
from unfold.admin import TabularInline

from system.admin_site.history_page import RelatedRecords
from tableapi.admin.design_base import AmongItsOwn
from tableapi.design import catalogue_checks
from tableapi.models import View, ViewColumn


class Paths(BaseInlineFormSet):  # type: ignore[type-arg]
    def clean(self) -> None:
        """Of a new view, which its columns cannot ask yet: a wrong path is said beside it, and then that all together
        lead too far beside the last."""
        super().clean()
        if not self.instance.is_new or self.instance.table_id is None:
            return
        table = self.instance.table
        kept = [form for form in self.forms if form.is_valid() and form not in self.deleted_forms]
        named = [(form, form.cleaned_data["path"]) for form in kept if form.cleaned_data.get("path")]
        for form, path in named:
            self._say(form, partial(catalogue_checks.check_path, table, path))
        if named and all(form.is_valid() for form, _ in named):
            self._say(named[-1][0], partial(catalogue_checks.check_joins, table, tuple(path for _, path in named)))

    def _say(self, form: Any, check: Callable[[], None]) -> None:
        try:
            check()
        except ValidationError as error:
            form.add_error(None, error)


class ViewColumns(TabularInline):  # type: ignore[misc]  # the theme has no types
    model = ViewColumn
    formset = Paths
    fields = ("path", "position")
    extra = 0
    verbose_name = "column"
    verbose_name_plural = (
        "columns (use dots for related fields, for example assigned_user.company.name; lower positions come first)"
    )


@admin.register(View)
class ViewAdmin(AmongItsOwn):
    holds = "Views are named lists of columns that callers request together."
    list_display = ("name", "table")
    list_select_related = ("table",)
    list_filter: ClassVar[list[Any]] = []
    search_fields = ("name", "table__name")
    fields = ("table", "name")
    inlines = (ViewColumns,)
    history_parts = (RelatedRecords(ViewColumn, "view", "Column", "path"),)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        found = super().get_readonly_fields(request, obj)
        return (*found, *obj.fixed) if obj is not None else found

"""Admin pages of form views."""

from typing import Any, ClassVar

from django.contrib import admin
from unfold.admin import TabularInline

from system.admin_site import TrackedAdmin
from tableapi.models import View, ViewColumn


class ViewColumns(TabularInline):  # type: ignore[misc]  # the theme has no types
    model = ViewColumn
    fields = ("path", "position")
    extra = 0
    verbose_name = "column"
    verbose_name_plural = "columns, such as assigned_user.company.name"


@admin.register(View)
class ViewAdmin(TrackedAdmin):
    list_display = ("name", "table")
    list_select_related = ("table",)
    list_filter: ClassVar[list[Any]] = []
    search_fields = ("name", "table__name")
    fields = ("table", "name")
    inlines = (ViewColumns,)

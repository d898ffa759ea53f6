"""Admin pages of set-on-change rules."""

from django.contrib import admin
from unfold.widgets import UnfoldAdminTextareaWidget

from tableapi.admin.design_base import CatalogueAdmin, CatalogueForm
from tableapi.models import SetRule


class SetOnChangeRuleForm(CatalogueForm):
    class Meta:
        model = SetRule
        fields = SetRule.table_columns
        widgets = dict.fromkeys(("value", "set_to"), UnfoldAdminTextareaWidget(attrs={"rows": 2}))


@admin.register(SetRule)
class SetOnChangeRuleAdmin(CatalogueAdmin):
    form = SetOnChangeRuleForm
    empty_list_text = "Rules that set one column when another changes, such as the closing time when the state changes."
    list_display = ("column", "watched", "value", "set_to", "clears")
    list_select_related = ("column__table", "watched__table")
    search_fields = ("column__name", "column__table__name")
    fields = SetRule.table_columns
    autocomplete_fields = ("column", "watched")

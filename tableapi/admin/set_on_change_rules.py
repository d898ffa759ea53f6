"""Admin pages of set-on-change rules."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextareaWidget

from system.admin_site.site import HistoryAdmin
from tableapi.design import catalogue_checks, saving
from tableapi.models import SetRule


class SetOnChangeRuleForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = SetRule
        fields = SetRule.table_columns
        widgets = dict.fromkeys(("value", "set_to"), UnfoldAdminTextareaWidget(attrs={"rows": 2}))

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # not in the stubs
        try:
            if not self.errors:
                catalogue_checks.check_set_on_change_rule(self.instance)
        except ValidationError as error:
            self.add_error(None, error)


@admin.register(SetRule)
class SetOnChangeRuleAdmin(HistoryAdmin):
    form = SetOnChangeRuleForm
    empty_list_text = "A set-on-change rule sets a column when another one changes, such as the time of closing."
    list_display = ("column", "watched", "value", "set_to", "clears")
    list_select_related = ("column__table", "watched__table")
    search_fields = ("column__name", "column__table__name")
    fields = SetRule.table_columns
    autocomplete_fields = ("column", "watched")

    def save_model(self, request: HttpRequest, obj: SetRule, form: Any, change: bool) -> None:
        saving.save_set_on_change_rule(obj)

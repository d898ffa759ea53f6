"""Base classes for the admin page of rules."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from system.admin_site.site import HistoryAdmin
from system.records import savers
from tableapi.design import saving

TABLE_FILTER = "table__sys_id__exact"


class CatalogueForm(forms.ModelForm):  # type: ignore[type-arg]
    """Also runs the checks against the catalogue."""

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # not in the stubs
        try:
            saving.check_against_catalogue(self.instance)
        except ValidationError as error:
            self.add_error(None, error)


class PerTableAdmin(HistoryAdmin):
    """For records of a table, saved as the Table API does. Adding one from a list filtered by table prefills the table
    and returns to that list."""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        savers.saver_of(type(obj)).save(obj)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        initial: dict[str, Any] = super().get_changeform_initial_data(request)
        table_id = QueryDict(request.GET.get("_changelist_filters", "")).get(TABLE_FILTER)
        return {"table": table_id, **initial} if table_id else initial

    def response_post_save_add(self, request: HttpRequest, obj: Any) -> Any:
        if obj.table_id is None:
            return super().response_post_save_add(request, obj)
        url = reverse(f"admin:tableapi_{self.opts.model_name}_changelist")
        return redirect(f"{url}?{urlencode({TABLE_FILTER: obj.table_id})}")

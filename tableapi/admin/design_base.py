"""The base of the pages whose saving changes the database: what is refused there is said, and nothing is half done."""

from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from system.admin_site.site import TrackedAdmin

BY_TABLE = "table__sys_id__exact"


class AmongItsOwn(TrackedAdmin):
    """The page of what one of many tables has: one is added beside the others of its table, and leads back to them."""

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        found: dict[str, Any] = super().get_changeform_initial_data(request)
        shown = QueryDict(request.GET.get("_changelist_filters", "")).get(BY_TABLE)
        return {"table": shown, **found} if shown else found

    def response_post_save_add(self, request: HttpRequest, obj: Any) -> HttpResponse:
        if obj.table_id is None:
            found: HttpResponse = super().response_post_save_add(request, obj)
            return found
        there = reverse(f"admin:tableapi_{self.opts.model_name}_changelist")
        return redirect(f"{there}?{urlencode({BY_TABLE: obj.table_id})}")


class OfTable(TrackedAdmin):
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

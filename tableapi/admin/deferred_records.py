"""Admin page of records that wait to be created, or could not be."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from system.admin_site.site import ReadOnlyAdmin
from system.records.history import name_of
from tableapi.models import DeferredRecord


@admin.register(DeferredRecord)
class DeferredRecordAdmin(ReadOnlyAdmin):
    """Without the values, because access rules may hide them from users who can open this page."""

    holds = "Records that are created in the background, until they are created or if that failed."

    list_display = ("created_at", "table", "record_id", "state", "attempts", "error")
    list_filter = ["state"]
    search_fields = ("table", "record_id")
    fields = ("table", "record_id", "sender", "state", "attempts", "error", "created_at", "next_at")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return [(None, {"fields": self.fields})]  # it has no `sys_*` fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields

    @admin.display(description="Sent by")
    def sender(self, deferred: DeferredRecord) -> str:
        return name_of(deferred.caller) or "the system"

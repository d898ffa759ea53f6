"""Admin page of deferred records that are waiting to be created or could not be created."""

from django.contrib import admin

from system.admin_site.site import ReadOnlyAdmin
from system.records.history import login_of
from tableapi.models import DeferredRecord


@admin.register(DeferredRecord)
class DeferredRecordAdmin(ReadOnlyAdmin):
    """Does not show the values, because access rules may hide them from users who can open this page."""

    empty_list_text = "Records that are waiting to be created in the background, or could not be created."

    list_display = ("created_at", "table", "record_id", "state", "attempts", "error")
    list_filter = ["state"]
    search_fields = ("table", "record_id")
    fields = ("table", "record_id", "sender", "state", "attempts", "error", "created_at", "next_at")

    @admin.display(description="Sent by")
    def sender(self, deferred_record: DeferredRecord) -> str:
        return login_of(deferred_record.caller) or "the system"

"""Admin pages of the system app."""

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.urls import reverse
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from system.admin_site import dashboard
from system.admin_site.site import HistoryAdmin, ReadOnlyAdmin
from system.models import DeletionLogEntry, Property, UserViewUse
from system.monitoring import health
from system.records.history import login_of
from system.registry import Registry

dashboard.register_links(
    "System",
    90,
    dashboard.Link("Properties", "tune", "system.Property"),
    dashboard.Link("Deleted records", "delete_history", "system.DeletionLogEntry"),
    dashboard.Link("Uses of Who sees what", "visibility", "system.UserViewUse"),
)

# The action of entries in Django's log that tell who looked at the records that another user sees.
USER_VIEW = 10

# Functions that return warnings about the effects of a changed property; each app registers its own.
PROPERTY_WARNINGS: Registry[Callable[[Property], Iterable[str]]] = Registry()


@admin.register(Property)
class PropertyAdmin(HistoryAdmin):
    list_display = ("name", "value", "default_value", "sys_updated_at")
    search_fields = ("name", "description")
    readonly_fields = ("name", "type", "description", "default_value")
    fields = ("name", "description", "type", "default_value", "value")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        """Use a select for a boolean, otherwise a single-line text input."""
        form = super().get_form(request, obj, change, **options)
        value = form.base_fields.get("value")
        if value is not None and obj is not None:
            choices = [("", f"default ({obj.default_value})"), ("true", "true"), ("false", "false")]
            is_boolean = obj.type == "boolean"
            value.widget = UnfoldAdminSelectWidget(choices=choices) if is_boolean else UnfoldAdminTextInputWidget()
            value.help_text = "" if is_boolean else "Leave empty to use the default."
        return form

    def save_model(self, request: HttpRequest, obj: Property, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if "value" in form.changed_data:
            for warning in (warning for find_warnings in PROPERTY_WARNINGS for warning in find_warnings(obj)):
                messages.warning(request, warning)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_add_permission = has_delete_permission


@admin.register(DeletionLogEntry)
class DeletionLogAdmin(ReadOnlyAdmin):
    empty_list_text = "Deleted records are listed here, with their content and the user who deleted them."
    list_display = ("sys_created_at", "table", "display_value", "record_id", "deleted_by_name")
    list_filter = ["table"]
    search_fields = ("display_value", "record_id")
    fields = ("table", "record_id", "display_value", "deleted_by_name", "payload")

    @admin.display(description="Deleted by")
    def deleted_by_name(self, entry: DeletionLogEntry) -> str:
        return login_of(entry.deleted_by) or "the system"


@admin.register(UserViewUse)
class UserViewUseAdmin(ReadOnlyAdmin):
    empty_list_text = "Each use of the page “Who sees what” is listed here."
    list_display = ("action_time", "user", "seen_user", "seen_records")
    list_select_related = ("user",)
    search_fields = ("user__login", "object_repr", "change_message")
    fields = list_display

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).filter(action_flag=USER_VIEW)

    @admin.display(description="Seen user", ordering="object_repr")
    def seen_user(self, entry: UserViewUse) -> str:
        return entry.object_repr

    @admin.display(description="Table and record", ordering="change_message")
    def seen_records(self, entry: UserViewUse) -> str:
        return entry.change_message


@dashboard.register_tile(order=90)
def background_tile(request: HttpRequest) -> dashboard.Tile | None:
    if not request.user.is_superuser:
        return None
    states = {"broker": health.broker_state(), **health.heartbeat_states()}
    silent_names = ", ".join(name for name, state in states.items() if state != "ok")
    return dashboard.Tile(
        title="Background work",
        figure="Running" if not silent_names else "Needs attention",
        description="All background services are running." if not silent_names else f"Not responding: {silent_names}.",
        url=reverse("admin:django_celery_beat_periodictask_changelist"),
        icon="settings_heart",
        needs_attention=bool(silent_names),
    )


@dashboard.register_tile(order=91)
def deletions_tile(request: HttpRequest) -> dashboard.Tile | None:
    if not request.user.is_superuser:
        return None
    count = DeletionLogEntry.objects.count()
    url = reverse("admin:system_deletionlogentry_changelist")
    return dashboard.Tile(
        "Deleted records", str(count), "Shows which records were deleted, and by whom.", url, "delete_history"
    )

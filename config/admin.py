"""Admin page of the periodic tasks."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule
from unfold.admin import ModelAdmin

from system.admin_site import dashboard

for model in (ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule):
    admin.site.unregister(model)

dashboard.register_links("System", 90, dashboard.Link("Periodic tasks", "schedule", "django_celery_beat.PeriodicTask"))


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(ModelAdmin):  # type: ignore[misc]  # the theme has no types
    """The product's schedules, which administrators can view and pause."""

    list_display = fields = ("name", "interval", "enabled", "last_run_at", "total_run_count")
    readonly_fields = ("name", "interval", "last_run_at", "total_run_count")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_add_permission = has_delete_permission

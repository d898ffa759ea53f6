"""Admin page of the periodic tasks."""

from typing import Any

from django.contrib import admin
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule

from system.admin_site import dashboard
from system.admin_site.site import ReadOnlyAdmin, RecordAdmin

for model in (ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule):
    admin.site.unregister(model)

PeriodicTask._meta.app_config.verbose_name = "System"
dashboard.register_links("System", 90, dashboard.Link("Periodic tasks", "schedule", "django_celery_beat.PeriodicTask"))


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(ReadOnlyAdmin):
    """The product's schedules, which administrators can view and pause."""

    has_change_permission = RecordAdmin.has_change_permission
    list_display = fields = ("name", "schedule", "enabled", "last_run", "runs")
    readonly_fields = ("name", "schedule", "last_run", "runs")
    schedule = admin.display(description="Interval", ordering="interval")(lambda _, task: task.interval)
    last_run = admin.display(description="Last run", ordering="last_run_at")(lambda _, task: task.last_run_at)
    runs = admin.display(description="Runs", ordering="total_run_count")(lambda _, task: task.total_run_count)

    def get_form(self, *args: Any, **options: Any) -> Any:
        help_texts = {"name": "", "enabled": "Clear this to pause the task."}
        return super().get_form(*args, **options, help_texts=help_texts)

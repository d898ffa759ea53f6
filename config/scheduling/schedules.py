"""The schedules of beat, stored in the database so that administrators can see and pause them."""

from django_celery_beat.models import IntervalSchedule, PeriodicTask

# Displayed name, task, and the interval in its largest unit, so that the admin shows "every day".
SCHEDULES = (
    ("Record the heartbeat of the worker", "system.tasks.beat_of_worker", 10, "seconds"),
    ("Count changes and queued documents for the dashboard", "system.tasks.store_hourly_counts", 5, "minutes"),
    ("Create and drop partitions of the change log", "system.tasks.update_change_partitions", 1, "days"),
    ("Build indexes of designed tables", "tableapi.tasks.build_indexes", 1, "minutes"),
    ("Create deferred records", "tableapi.tasks.create_deferred", 10, "seconds"),
    ("Continue imports", "tableapi.tasks.run_imports", 10, "seconds"),
    ("Delete old imports", "tableapi.tasks.forget_imports", 1, "hours"),
    ("Notify users of changes", "tableapi.tasks.notify_of_changes", 10, "seconds"),
    ("Send notifications by email", "tableapi.tasks.send_notification_emails", 30, "seconds"),
    ("Send changes to webhooks", "tableapi.tasks.deliver_webhooks", 5, "seconds"),
    ("Delete old notifications and webhook deliveries", "tableapi.tasks.forget_notifications", 1, "days"),
    ("Delete expired responses to idempotent requests", "tableapi.tasks.forget_answers", 1, "hours"),
    ("Refresh the identity provider's endpoints and certificates", "sso.tasks.refresh_daily", 1, "days"),
    ("Delete old entries of the sign-in log", "sso.tasks.forget_old_sign_ins", 1, "hours"),
    ("Delete ended identity provider sessions", "sso.tasks.forget_ended_sessions", 1, "hours"),
    ("Start processing queued documents and purging deleted data", "collections_app.tasks.sweep", 5, "seconds"),
    ("Re-embed collections whose embedding model has changed", "collections_app.tasks.fill_new_spaces", 10, "seconds"),
    ("Refresh web pages and watched folders of collections", "collections_app.tasks.refresh_sources", 10, "seconds"),
    ("Build vector indexes of large collections", "collections_app.tasks.tend_vector_indexes", 1, "minutes"),
    ("Evaluate search quality after a change of settings", "collections_app.tasks.evaluate", 30, "seconds"),
    ("Delete expired sessions, access keys and counters", "accounts.tasks.forget_expired", 10, "minutes"),
)


def update_schedules() -> None:
    """Create missing schedules and delete those that were removed from the product; a paused one stays paused."""
    for name, task, every, period in SCHEDULES:
        interval, _ = IntervalSchedule.objects.get_or_create(every=every, period=period)
        # By the task, because the displayed name may change.
        row = PeriodicTask.objects.filter(task=task).first() or PeriodicTask(task=task)
        row.name, row.interval = name, interval
        row.expire_seconds = max(int(interval.schedule.run_every.total_seconds()), 30)
        row.save()
    PeriodicTask.objects.exclude(task__in=[task for _, task, _, _ in SCHEDULES]).filter(
        task__regex=r"^(system|accounts|sso|tableapi|collections_app|celery)\."
    ).delete()

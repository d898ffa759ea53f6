"""The schedules of beat, stored in the database so that administrators can see and pause them."""

from django_celery_beat.models import IntervalSchedule, PeriodicTask

# Displayed name, task, seconds.
SCHEDULES = (
    ("Record the heartbeat of the worker", "system.tasks.beat_of_worker", 10),
    ("Create and drop partitions of the change log", "system.tasks.update_change_partitions", 86400),
    ("Build indexes of designed tables", "tableapi.tasks.build_indexes", 60),
    ("Create deferred records", "tableapi.tasks.create_deferred", 10),
    ("Notify users of changes", "tableapi.tasks.notify_of_changes", 10),
    ("Send notifications by email", "tableapi.tasks.send_notification_emails", 30),
    ("Delete old notifications", "tableapi.tasks.forget_notifications", 86400),
    ("Delete expired responses to idempotent requests", "tableapi.tasks.forget_answers", 3600),
    ("Refresh the identity provider's endpoints and certificates", "sso.tasks.refresh_daily", 86400),
    ("Delete old entries of the sign-in log", "sso.tasks.forget_old_sign_ins", 3600),
    ("Delete ended sessions with identity providers", "sso.tasks.forget_ended_sessions", 3600),
    ("Find queued documents and deleted data to purge", "collections_app.tasks.sweep", 5),
    ("Re-embed collections whose embedding model has changed", "collections_app.tasks.fill_new_spaces", 10),
    ("Build vector indexes of large collections", "collections_app.tasks.tend_vector_indexes", 60),
    ("Delete expired sessions, access keys and counters", "accounts.tasks.forget_expired", 600),
)

UNITS = (
    (86400, IntervalSchedule.DAYS),
    (3600, IntervalSchedule.HOURS),
    (60, IntervalSchedule.MINUTES),
    (1, IntervalSchedule.SECONDS),
)


def interval_of(seconds: int) -> tuple[int, str]:
    """The largest unit, so that the admin shows "every day" instead of "every 86400 seconds".

    >>> interval_of(86400), interval_of(600), interval_of(90)
    ((1, 'days'), (10, 'minutes'), (90, 'seconds'))
    """
    return next((seconds // length, str(unit)) for length, unit in UNITS if seconds % length == 0)


def update_schedules() -> None:
    """Create missing schedules and delete those that were removed from the product; a paused one stays paused."""
    for name, task, seconds in SCHEDULES:
        every, period = interval_of(seconds)
        interval, _ = IntervalSchedule.objects.get_or_create(every=every, period=period)
        # By the task, because the displayed name may change.
        row = PeriodicTask.objects.filter(task=task).first() or PeriodicTask(task=task)
        row.name, row.interval, row.expire_seconds = name, interval, max(seconds, 30)
        row.save()
    PeriodicTask.objects.exclude(task__in=[task for _, task, _ in SCHEDULES]).filter(
        task__regex=r"^(system|accounts|sso|tableapi|collections_app)\."
    ).delete()

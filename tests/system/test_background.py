"""Background work: the request id of a task, the heartbeat, schedules, and expiry."""

from datetime import timedelta
from typing import Any

import pytest
import structlog
from celery.signals import before_task_publish
from django.test import Client
from django.utils import timezone

from accounts.models import AccessKey, FailedAttempts, Session, User
from accounts.tasks import forget_expired
from config.celery import app
from config.scheduling import schedules
from system.models import Heartbeat
from system.tasks import beat_of_worker

pytestmark = pytest.mark.django_db


def test_task_has_the_id_of_the_request_that_sent_it():
    sent_headers: list[dict[str, Any]] = []

    def record_headers(headers: dict[str, Any], **_: Any) -> None:
        sent_headers.append(dict(headers))

    before_task_publish.connect(record_headers)
    try:
        with structlog.contextvars.bound_contextvars(request_id="abc-123"):
            beat_of_worker.delay()
    finally:
        before_task_publish.disconnect(record_headers)
        app.control.purge()

    assert "abc-123" in str(sent_headers)


def test_heartbeat_is_written():
    beat_of_worker()
    first_heartbeat_at = Heartbeat.objects.get(name="worker").at
    beat_of_worker()

    assert Heartbeat.objects.get(name="worker").at > first_heartbeat_at


def test_only_expired_rows_are_deleted(bob: User):
    expiry_in_past, expiry_in_future = timezone.now() - timedelta(hours=1), timezone.now() + timedelta(hours=1)
    for number, (kind, expires_at) in enumerate(
        [("login", expiry_in_past), ("login", expiry_in_future), ("named", expiry_in_past), ("named", None)]
    ):
        key = AccessKey(user=bob, name=str(number), kind=kind, expires_at=expires_at)
        key.generate_secret()
        key.save()
    Session.objects.create(session_key="old", session_data="", expire_date=expiry_in_past)
    Session.objects.create(session_key="new", session_data="", expire_date=expiry_in_future)
    FailedAttempts.objects.create(key="old", started_at=expiry_in_past, count=3)
    FailedAttempts.objects.create(key="new", started_at=timezone.now(), count=3)

    forget_expired()

    assert sorted(AccessKey.objects.values_list("name", flat=True)) == ["1", "2", "3"]
    assert list(Session.objects.values_list("session_key", flat=True)) == ["new"]
    assert list(FailedAttempts.objects.values_list("key", flat=True)) == ["new"]


def test_every_schedule_refers_to_an_existing_task():
    app.loader.import_default_modules()
    assert {task for _, task, *_ in schedules.SCHEDULES} <= set(app.tasks)

    from django_celery_beat.models import PeriodicTask

    schedules.update_schedules()
    PeriodicTask.objects.update(enabled=False)
    PeriodicTask.objects.filter(task="sso.tasks.refresh_daily").update(name="Its name in an earlier version")
    schedules.update_schedules()
    periodic_tasks = PeriodicTask.objects.filter(name__in=[name for name, *_ in schedules.SCHEDULES])
    assert len(periodic_tasks) == len(schedules.SCHEDULES)
    assert not any(periodic_task.enabled for periodic_task in periodic_tasks)  # a paused task stays paused
    intervals = {name: timedelta(**{period: every}) for name, _, every, period in schedules.SCHEDULES}
    assert {periodic_task.name: periodic_task.schedule.run_every for periodic_task in periodic_tasks} == intervals


def test_schedule_page_shows_readable_intervals(as_alice: Client):
    from django_celery_beat.models import PeriodicTask

    schedules.update_schedules()
    page = as_alice.get("/admin/django_celery_beat/periodictask/").content.decode()

    assert all(
        name in page for name in ("every day", "every hour", "every 10 minutes", "every minute", "every 5 seconds")
    )
    assert "<h1>Periodic tasks</h1>" in page and "Last run" in page
    assert "Periodic Tasks" not in page and "Run Count" not in page
    task = PeriodicTask.objects.get(task="sso.tasks.refresh_daily")
    form = as_alice.get(f"/admin/django_celery_beat/periodictask/{task.pk}/change/").content.decode()
    assert "Clear this to pause the task." in form and "Short Description" not in form and "Set to False" not in form
    assert "86400" not in page and "3600" not in page


def test_messages_are_json_and_acknowledged_late():
    assert app.conf.accept_content == ["json"]
    assert (app.conf.task_acks_late, app.conf.task_reject_on_worker_lost) == (True, True)
    assert app.conf.broker_transport_options["visibility_timeout"] > app.conf.task_time_limit

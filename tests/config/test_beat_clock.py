"""Schedules do not pause if the clock of beat is set back, or if that of the former leader was ahead."""

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from config.celery import app
from config.scheduling import schedules
from config.scheduling.leader_scheduler import LeaderScheduler
from tests.support.clocks import set_database_clock_back

pytestmark = pytest.mark.django_db(transaction=True)

INTERVALS_S = {name: timedelta(**{period: every}).total_seconds() for name, _, every, period in schedules.SCHEDULES}


@pytest.fixture
def schedule_rows(transactional_db: Any) -> Any:
    """The stored schedules; each has just run."""
    schedules.update_schedules()
    PeriodicTask.objects.update(last_run_at=timezone.now())
    return PeriodicTask.objects.filter(name__in=INTERVALS_S)


@pytest.fixture
def beat(schedule_rows: Any, monkeypatch: Any) -> Iterator[LeaderScheduler]:
    scheduler = LeaderScheduler(app=app)
    monkeypatch.setattr(scheduler, "apply_entry", lambda *_, **__: None)
    yield scheduler
    scheduler.close()


def scheduled_tasks(beat: Any) -> list[Any]:
    """The time, priority and entry of each task."""
    return beat._heap


def waiting_times_s(beat: LeaderScheduler) -> dict[str, float]:
    """The seconds until each task runs."""
    for _ in range(2):
        beat.tick()
    return {event[2].name: event[0] - time.time() for event in scheduled_tasks(beat) if event[2].name in INTERVALS_S}


def delayed_tasks(beat: LeaderScheduler) -> set[str]:
    waits_s = waiting_times_s(beat)
    assert waits_s.keys() == INTERVALS_S.keys()
    return {name for name, wait_s in waits_s.items() if wait_s > INTERVALS_S[name] + 1}


def test_only_tasks_of_the_product_are_scheduled(beat: LeaderScheduler):
    beat.tick()
    assert not PeriodicTask.objects.filter(task__startswith="celery.").exists()
    PeriodicTask.objects.create(
        task="celery.backend_cleanup", name="of an earlier version", interval=PeriodicTask.objects.all()[0].interval
    )
    schedules.update_schedules()
    assert not PeriodicTask.objects.filter(task__startswith="celery.").exists()


def test_task_waits_for_its_interval(beat: LeaderScheduler):
    assert delayed_tasks(beat) == set()


def test_new_leader_ignores_the_clock_of_the_former_leader(schedule_rows: Any, beat: LeaderScheduler):
    set_database_clock_back(schedule_rows, "last_run_at")
    assert delayed_tasks(beat) == set()


def test_clock_set_back_delays_no_task(beat: LeaderScheduler):
    waiting_times_s(beat)
    # The times from before the clock was set back are an hour ahead.
    scheduled_tasks(beat)[:] = [type(event)(event[0] + 3600, *event[1:]) for event in scheduled_tasks(beat)]
    for entry in beat.schedule.values():
        entry.last_run_at = entry.model.last_run_at = entry.model.last_run_at + timedelta(hours=1)
    assert delayed_tasks(beat) == set()

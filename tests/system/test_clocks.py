"""Heartbeats of hosts whose clocks differ, and heartbeats after the database clock was set back."""

import pytest

from system.models import Heartbeat
from system.monitoring.health import heartbeat_states
from tests.support.clocks import let_time_pass, set_database_clock_back, shifted_host_clock

pytestmark = pytest.mark.django_db


def worker_state() -> str:
    return heartbeat_states()["worker"]


@pytest.mark.parametrize("hours", [-1, 1], ids=["behind", "ahead"])
def test_heartbeat_is_valid_for_35_seconds_regardless_of_the_host_clock(hours: int):
    with shifted_host_clock(hours):
        Heartbeat.record("worker")
    assert worker_state() == "ok"
    let_time_pass(Heartbeat.objects.all(), "at", seconds=36)
    assert worker_state() == "silent"


@pytest.mark.parametrize("hours", [-1, 1], ids=["behind", "ahead"])
def test_heartbeat_is_read_by_a_host_with_another_clock(hours: int):
    Heartbeat.record("worker")
    with shifted_host_clock(hours):
        assert worker_state() == "ok"


def test_dead_worker_is_silent_after_the_clock_was_set_back():
    Heartbeat.record("worker")
    set_database_clock_back(Heartbeat.objects.all(), "at")
    assert worker_state() == "silent"
    Heartbeat.record("worker")
    assert worker_state() == "ok"

"""The same code on several hosts: one component each, with a shared PostgreSQL and Valkey."""

import json
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.config.shared_servers import ENCRYPTION_KEY, SIGNING_KEY, ComponentStarter, SharedServers
from tests.config.stack import Stack, environment, eventually, free_port, manage

pytestmark = pytest.mark.stack

EVERY_SECOND_SCRIPT = """
from django_celery_beat.models import IntervalSchedule, PeriodicTask
interval, _ = IntervalSchedule.objects.get_or_create(every=1, period="seconds")
PeriodicTask.objects.create(name="tick", task="system.tasks.beat_of_worker", interval=interval)
"""


def message_origins(servers: SharedServers) -> list[str]:
    """The origin of each scheduled message in the queue. No worker is running, so all messages stay there."""
    with redis.Redis.from_url(servers.valkey.url) as broker:
        messages: list[Any] = broker.lrange("servicebase", 0, -1)
    headers = [json.loads(message)["headers"] for message in messages]
    return [header["origin"] for header in headers if header["task"] == "system.tasks.beat_of_worker"]


def origin_of(host: Stack) -> str:
    return f"gen{host.child(' beat ').pid}@"


@pytest.mark.parametrize("missing_variable", ["DATABASE_URL", "REDIS_URL"])
def test_single_component_requires_both_server_addresses(missing_variable: str, tmp_path: Path):
    variables = {"DATABASE_URL": "postgresql://db.example.com/x", "REDIS_URL": "redis://broker.example.com"}
    del variables[missing_variable]

    refusal = manage("up", "--only", "worker", env=environment(tmp_path, free_port(), **variables))

    assert refusal.returncode == 1
    assert refusal.stderr.startswith("servicebase: --only requires DATABASE_URL and REDIS_URL")
    assert len(refusal.stderr.splitlines()) == 1


@pytest.mark.parametrize("missing_variable", ["SECRET_KEY", "SVC_SECRET_KEYS"])
def test_single_component_requires_shared_keys(missing_variable: str, tmp_path: Path):
    variables = {
        "DATABASE_URL": "postgresql://db.example.com/x", "REDIS_URL": "redis://broker.example.com",
        "SECRET_KEY": SIGNING_KEY, "SVC_SECRET_KEYS": ENCRYPTION_KEY,
    }  # fmt: skip
    del variables[missing_variable]

    refusal = manage("up", "--only", "worker", env=environment(tmp_path, free_port(), **variables))

    assert refusal.returncode == 1
    assert refusal.stderr.startswith("servicebase: --only requires SECRET_KEY and SVC_SECRET_KEYS")
    assert len(refusal.stderr.splitlines()) == 1


def test_second_beat_takes_over_and_tasks_run_once(servers: SharedServers, start_component: ComponentStarter):  # X18
    leader = start_component("beat")
    leader.wait_for("beat_leads")
    standby = start_component("beat")
    standby.wait_for("beat_follows")
    assert manage("shell", "-c", EVERY_SECOND_SCRIPT, env=leader.env).returncode == 0
    eventually(lambda: len(message_origins(servers)) >= 5)

    assert {origin.partition("@")[0] + "@" for origin in message_origins(servers)} == {origin_of(leader)}

    leader.kill_all()

    standby.wait_for("beat_leads", timeout_s=10)
    eventually(lambda: any(origin.startswith(origin_of(standby)) for origin in message_origins(servers)), timeout_s=10)


def test_production_log_is_one_json_object_per_line(servers: SharedServers, tmp_path: Path):
    host = Stack(tmp_path, **servers.environ, SVC_ENV="production", SVC_BASE_URL="https://service.example.com")
    try:
        host.start("--only", "beat").wait_for("beat_(leads|follows)")
        line = next(line for line in host.lines if "beat_" in line)
        assert json.loads(line)["event"] in ("beat_leads", "beat_follows")
        assert host.stop() == 0
    finally:
        host.end()

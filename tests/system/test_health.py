"""/healthz, /readyz, /metrics."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.authentication import access_keys
from accounts.models import Role, User, UserRole
from system.models import Heartbeat
from system.monitoring import health


@pytest.fixture(autouse=True)
def disabled_health_cache(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(health, "READINESS", health.Readiness())


def test_healthz_uses_no_database(client: Client, django_assert_num_queries, db):  # X04
    with django_assert_num_queries(0):
        response = client.get("/healthz")

    assert (response.status_code, response.content) == (200, b"ok\n")


def test_service_is_ready_if_database_migrations_and_vector_are_ready(client: Client, db):
    body = client.get("/readyz").json()

    assert body["status"] == "ready"
    assert (body["database"], body["migrations"], body["vector"]) == ("ok", "ok", "ok")


@pytest.mark.parametrize("version", [(0, 8, 0), ()], ids=["too old", "not installed"])
def test_service_is_not_ready_without_a_new_enough_vector(client: Client, db, monkeypatch, version):
    monkeypatch.setattr(health, "vector_version", lambda: version)
    response = client.get("/readyz")

    assert response.status_code == 503
    assert response.json()["vector"] == "missing"


def test_service_is_not_ready_with_pending_migrations(client: Client, db, monkeypatch):
    monkeypatch.setattr(health, "pending_migration_count", lambda: 1)
    response = client.get("/readyz")

    assert (response.status_code, response.json()["migrations"]) == (503, "pending")


def test_service_is_not_ready_without_a_database(client: Client, db, monkeypatch):
    def fail_to_connect() -> None:
        raise ConnectionError

    monkeypatch.setattr(health, "pending_migration_count", fail_to_connect)
    response = client.get("/readyz")

    assert (response.status_code, response.json()["database"]) == (503, "away")


def test_broker_and_background_state_is_reported_but_not_required(client: Client, db, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    response = client.get("/readyz")

    assert response.status_code == 200
    body = response.json()
    assert (body["broker"], body["worker"], body["beat"]) == ("away", "silent", "silent")


def test_heartbeat_expires(client: Client, db):
    Heartbeat.record("worker")
    Heartbeat.objects.create(name="beat", at=timezone.now() - timedelta(minutes=2))
    body = client.get("/readyz").json()

    assert (body["worker"], body["beat"]) == ("ok", "silent")


def test_readyz_checks_at_most_once_a_second(client: Client, db, django_assert_num_queries, monkeypatch):  # X04
    client.get("/readyz")
    with django_assert_num_queries(0):
        for _ in range(20):
            client.get("/readyz")


def test_service_is_not_ready_while_draining(client: Client, db, settings):
    settings.DATA_FOLDER.draining_file.touch()
    try:
        response = client.get("/readyz")
    finally:
        settings.DATA_FOLDER.draining_file.unlink()

    assert (response.status_code, response.json()["status"]) == (503, "draining")


def test_metrics_require_the_monitoring_role(client: Client, alice: User, bob: User):
    headers = {"Authorization": f"Bearer {access_keys.create_key(bob, 'prometheus', expires_at=None)}"}
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers=headers).status_code == 403
    UserRole.objects.create(user=bob, role=Role.objects.get(name="monitoring"))
    response = client.get("/metrics", headers=headers)

    assert response.status_code == 200
    assert "django_http_responses_total_by_status_view_method_total" in response.content.decode()


def test_vector_extension_is_installed(db):
    with connection.cursor() as cursor:
        cursor.execute("SELECT '[1,2]'::vector <-> '[1,3]'::vector")
        assert cursor.fetchone() == (1.0,)

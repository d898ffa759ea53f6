"""The probes /healthz and /readyz."""

import threading
import time
from datetime import timedelta
from typing import Any

import redis
from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.version import get_version_tuple
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from system.models import Heartbeat
from system.plain_sql import fetch_rows

MIN_VECTOR_VERSION = (0, 8, 4)
CACHE_TTL_S = 1.0
UNKNOWN_HEARTBEATS = {"worker": "unknown", "beat": "unknown"}
# Heartbeats are written every ten seconds; three missed ones are a fault.
SILENT_AFTER = timedelta(seconds=35)


@csrf_exempt  # so that another method returns 405 and not the error for a missing CSRF token
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Shows that this process responds. Nothing else is checked, so the probe causes no load."""
    return HttpResponse("ok\n", content_type="text/plain")


def vector_version() -> tuple[int, ...]:
    rows = fetch_rows("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    return get_version_tuple(rows[0][0]) if rows else ()


def pending_migration_count() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


class Readiness:
    """The report of /readyz, updated at most once per second."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.updated_at = 0.0
        self.states: dict[str, Any] = {}
        self.is_migrated = False

    def report(self) -> dict[str, Any]:
        with self.lock:
            if time.monotonic() - self.updated_at > CACHE_TTL_S or not self.states:
                states = self._required_states()
                # The other states are only reported. Heartbeats are skipped without a database, because connecting
                # to an unreachable one takes 2 s, and probes have a timeout.
                heartbeats = heartbeat_states() if states["database"] == "ok" else UNKNOWN_HEARTBEATS
                self.states = {**states, "broker": broker_state(), **heartbeats}
                self.updated_at = time.monotonic()
            return self.states

    def _required_states(self) -> dict[str, Any]:
        """The states that must be ok, because every request needs them; otherwise the probe returns 503."""
        try:
            if not self.is_migrated:  # stays true, because the code of a running process does not change
                self.is_migrated = pending_migration_count() == 0
            has_vector = vector_version() >= MIN_VECTOR_VERSION
        except Exception:
            self.is_migrated = False
            return {"database": "away", "migrations": "unknown", "vector": "unknown"}
        return {
            "database": "ok",
            "migrations": "ok" if self.is_migrated else "pending",
            "vector": "ok" if has_vector else "missing",
        }


def broker_state() -> str:
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1) as client:
            client.ping()
    except (redis.RedisError, OSError):
        return "away"
    return "ok"


def heartbeat_states() -> dict[str, str]:
    try:
        # By the database's clock, as host clocks may differ. After it was set back, heartbeats can be in the future.
        recent_heartbeats = Heartbeat.objects.filter(at__range=(Now() - SILENT_AFTER, Now() + SILENT_AFTER))
        names = set(recent_heartbeats.values_list("name", flat=True))
    except Exception:
        return UNKNOWN_HEARTBEATS
    return {name: "ok" if name in names else "silent" for name in UNKNOWN_HEARTBEATS}


READINESS = Readiness()
REQUIRED_STATES = ("database", "migrations", "vector")


@csrf_exempt
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Whether a load balancer may send requests to this process."""
    report = READINESS.report()
    is_draining = settings.DATA_FOLDER.draining_file.exists()
    is_ready = all(report[name] == "ok" for name in REQUIRED_STATES) and not is_draining
    state = "draining" if is_draining else "ready" if is_ready else "not ready"
    return JsonResponse({"status": state, **report}, status=200 if is_ready else 503)

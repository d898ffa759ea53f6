"""Records when a background process last did its work."""

from django.db import DatabaseError, InterfaceError
from django.db.models.functions import Now

from system.models import Heartbeat


def beat(name: str) -> None:
    Heartbeat.objects.update_or_create(name=name, defaults={"at": Now()})


def record_beat_heartbeat() -> bool:
    """Record beat's heartbeat; returns whether it could be written."""
    try:
        beat("beat")
    except (DatabaseError, InterfaceError):
        return False
    return True

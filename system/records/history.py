"""The change history of configuration: who changed what and when, never a secret."""

from typing import Any

from django.contrib.auth import get_user_model
from django.db import models
from simple_history.models import HistoricalRecords

from system.records import acting_user as actor


def acting_user(instance: Any, **_: Any) -> str | None:
    return actor.current()


def name_of(sys_id: str | None) -> str | None:
    """The login, or the bare id when its user is gone."""
    found = get_user_model()._default_manager.filter(pk=sys_id).first() if sys_id else None
    return found.get_username() if found else sys_id


def user_of(historical: Any) -> str | None:
    return name_of(historical.history_user_id)


def take_user(historical: Any, user: Any) -> None:
    # The admin gives the user itself, everything else the id.
    historical.history_user_id = getattr(user, "pk", user)


# Every entry has its own time and user; a record's columns of the same would only repeat them.
BOOKKEEPING = ("sys_created_at", "sys_created_by", "sys_updated_at", "sys_updated_by", "sys_version")


class History(HistoricalRecords):  # type: ignore[misc]  # has no types
    """A save that changes nothing of what is kept leaves no entry, unless the record says what else it changed."""

    def create_historical_record(self, instance: Any, history_type: str, using: Any = None) -> None:
        instance.has_entry = history_type != "~" or bool(instance.unkept_change) or not self._is_as_before(instance)
        if instance.has_entry:
            super().create_historical_record(instance, history_type, using=using)

    def get_change_reason_for_object(self, instance: Any, history_type: str, using: Any) -> str | None:
        return (instance.unkept_change or None) if history_type == "~" else None

    def _is_as_before(self, instance: Any) -> bool:
        """The row is locked by its save, so nobody adds an entry meanwhile."""
        entries = getattr(type(instance), self.manager_name).filter(sys_id=instance.pk)
        last = entries.order_by("-history_date", "-history_id").first()
        kept = [each.attname for each in self.fields_included(instance)]
        return last is not None and all(getattr(last, name) == getattr(instance, name) for name in kept)


def tracked(without: tuple[str, ...] = ()) -> History:
    """Put this on a model as `history`; `without` names its secrets and what is not configuration."""
    return History(
        excluded_fields=[*BOOKKEEPING, *without],
        history_user_id_field=models.CharField(max_length=32, null=True, blank=True),
        history_user_getter=user_of,
        history_user_setter=take_user,
        get_user=acting_user,
    )

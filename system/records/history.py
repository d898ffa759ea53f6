"""The change history of configuration: who changed what and when, without secrets."""

from typing import Any

from django.contrib.auth import get_user_model
from django.db import models
from simple_history.models import HistoricalRecords

from system.records import acting_user


def login_of(sys_id: str | None) -> str | None:
    """The login, or the id if the user was deleted."""
    user = get_user_model()._default_manager.filter(pk=sys_id).first() if sys_id else None
    return user.get_username() if user else sys_id


def set_history_user(entry: Any, user: Any) -> None:
    # The admin passes the user, everything else its id.
    entry.history_user_id = getattr(user, "pk", user)


# Every entry has its own time and user, so these columns would only repeat them.
BOOKKEEPING = ("sys_created_at", "sys_created_by", "sys_updated_at", "sys_updated_by", "sys_version")


class History(HistoricalRecords):  # type: ignore[misc]  # has no types
    """Writes no entry for a save without tracked changes, unless the record describes an untracked one."""

    def create_historical_record(self, instance: Any, history_type: str, using: Any = None) -> None:
        instance.has_history_entry = (
            history_type != "~" or bool(instance.untracked_change_text) or not self._is_unchanged(instance)
        )
        if instance.has_history_entry:
            super().create_historical_record(instance, history_type, using=using)

    def get_change_reason_for_object(self, instance: Any, history_type: str, using: Any) -> str | None:
        return (instance.untracked_change_text or None) if history_type == "~" else None

    def _is_unchanged(self, instance: Any) -> bool:
        """Compare with the last entry. The save holds the lock of the row, so no other entry can be added."""
        entries = getattr(type(instance), self.manager_name).filter(sys_id=instance.pk)
        last_entry = entries.order_by("-history_date", "-history_id").first()
        columns = [field.attname for field in self.fields_included(instance)]
        return last_entry is not None and all(getattr(last_entry, name) == getattr(instance, name) for name in columns)


def history_field(omit: tuple[str, ...] = ()) -> History:
    """The field `history` of a model; `omit` names its secrets and columns that are not configuration."""
    return History(
        excluded_fields=[*BOOKKEEPING, *omit],
        history_user_id_field=models.CharField(max_length=32, null=True, blank=True),
        history_user_getter=lambda entry: login_of(entry.history_user_id),
        history_user_setter=set_history_user,
        get_user=lambda **_: acting_user.current(),
    )

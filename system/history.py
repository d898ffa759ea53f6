"""In charge of the change history of configuration: who changed what, when; never a secret."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth import get_user_model
from django.db import models
from simple_history.models import HistoricalRecords

from system import actor


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


def tracked(without: tuple[str, ...] = ()) -> HistoricalRecords:
    """Put this on a model as `history`; `without` names its secrets and what is not configuration."""
    return HistoricalRecords(
        excluded_fields=[*BOOKKEEPING, *without],
        history_user_id_field=models.CharField(max_length=32, null=True, blank=True),
        history_user_getter=user_of,
        history_user_setter=take_user,
        get_user=acting_user,
    )


@contextmanager
def no_entry(record: Any) -> Iterator[None]:
    """What is saved meanwhile leaves none."""
    record.skip_history_when_saving = True
    try:
        yield
    finally:
        del record.skip_history_when_saving


@contextmanager
def entry_of(record: Any, before: Any, *, said: str = "") -> Iterator[bool]:
    """Around a save: its entry says this too, and there is none where it would be empty. Tells whether there is one."""
    kept = type(record).history.model.tracked_fields
    is_other = before is None or any(getattr(before, each.attname) != getattr(record, each.attname) for each in kept)
    if not (is_other or said):
        with no_entry(record):
            yield False
        return
    record._change_reason = said or None
    try:
        yield True
    finally:
        record._change_reason = None

"""Lets callers follow a record in order to be notified of its changes."""

from django.db import transaction

from tableapi.catalogue.definitions import Catalogue
from tableapi.models import Follower
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller

from .records import OpenRecord, open_record


@on_current_catalogue
def read_following(catalogue: Catalogue, caller: Caller, table: str, sys_id: str) -> dict[str, bool]:
    return {"following": is_following(open_record(catalogue, caller, table, sys_id))}


def is_following(record: OpenRecord) -> bool:
    """Whether the caller who opened the record follows it."""
    return Follower.objects.filter(**record.key_columns, user_id=record.context.caller.user_id).exists()


@on_current_catalogue
def follow(catalogue: Catalogue, caller: Caller, table: str, sys_id: str) -> dict[str, bool]:
    with transaction.atomic():
        record = open_record(catalogue, caller, table, sys_id, lock=True)
        Follower.objects.bulk_create([Follower(**record.key_columns, user_id=caller.user_id)], ignore_conflicts=True)
    return {"following": True}


@on_current_catalogue
def unfollow(catalogue: Catalogue, caller: Caller, table: str, sys_id: str) -> dict[str, bool]:
    record = open_record(catalogue, caller, table, sys_id)
    Follower.objects.filter(**record.key_columns, user_id=caller.user_id).delete()
    return {"following": False}

"""The Record Deletion Log: each deletion writes an entry in the same transaction."""

from typing import Any

from django.db.models import Model

from system.models import DeletionLogEntry
from system.records import acting_user
from system.records.record import Record


def write(table: str, record_id: str, display_value: str, payload: dict[str, Any], emptied_references: int = 0) -> None:
    DeletionLogEntry.objects.create(
        table=table,
        record_id=record_id,
        display_value=display_value[:255],
        payload=payload,
        emptied_references=emptied_references,
        deleted_by=acting_user.current(),
    )


def on_delete(sender: type[Model], instance: Model, **_: Any) -> None:
    """Called for each deleted record, including bulk deletions in the admin and cascades."""
    if isinstance(instance, Record):
        instance.log_deletion()
        if instance.leaves_deletion_log_entry():
            write(
                instance._meta.db_table, instance.sys_id, str(instance), instance.payload(), instance.emptied_references
            )

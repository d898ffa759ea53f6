"""The tables that all apps share: properties, the Record Deletion Log, preparation, heartbeats and hourly counts."""

from django.contrib.admin.models import LogEntry
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Now

from system import property_definitions
from system.records.history import history_field
from system.records.record import Record


class Property(Record):
    """A system property; there is a row for each defined property."""

    table_columns = ("name", "value", "type", "description", "default_value")

    name = models.CharField(max_length=255, unique=True, editable=False)
    value = models.TextField(blank=True, default="")
    type = models.CharField(max_length=20, editable=False)
    description = models.TextField(editable=False)
    default_value = models.TextField(blank=True, default="", editable=False)
    history = history_field()

    class Meta(Record.Meta):
        db_table = "sys_property"
        verbose_name = "system property"
        verbose_name_plural = "system properties"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        definition = property_definitions.DEFINITIONS.get(self.name)
        if definition is None:
            message = "There is no property with this name."
            # The form of a property that is no longer defined has no field for its name.
            raise ValidationError({"name": message} if self.is_new else message)
        try:
            self.value = definition.normalize(self.value)
        except ValueError as error:
            raise ValidationError({"value": str(error)}) from None

    def save(self, *args: object, **options: object) -> None:
        super().save(*args, **options)
        property_definitions.VALUE_CACHE.clear()

    def delete(self, *args: object, **options: object) -> tuple[int, dict[str, int]]:
        if self.name in property_definitions.DEFINITIONS:
            raise ValidationError("System properties cannot be deleted. Clear the value instead.")
        return super().delete(*args, **options)


class DeletionLogEntry(Record):
    """A deleted record: its content and who deleted it."""

    table_columns = ("table", "record_id", "display_value", "payload", "deleted_by")
    display_column = "display_value"
    references = {"deleted_by": "user"}

    table = models.CharField(max_length=63, editable=False)
    record_id = models.CharField(max_length=32, db_collation="C", editable=False)
    display_value = models.CharField(max_length=255, blank=True, editable=False)
    payload = models.JSONField(default=dict, editable=False)
    deleted_by = models.CharField(max_length=32, db_collation="C", null=True, editable=False)
    # The number of references in other records that the deletion emptied.
    emptied_references = models.PositiveIntegerField(default=0, db_default=0, editable=False)

    class Meta(Record.Meta):
        db_table = "sys_deletion_log"
        verbose_name = "deleted record"
        verbose_name_plural = "deleted records"
        ordering = ["-sys_id"]
        indexes = [models.Index(fields=["table", "record_id"], name="deletion_log_record")]

    def leaves_deletion_log_entry(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{self.table} {self.display_value or self.record_id}"

    def page_title(self) -> str:
        return f"Deleted record {self.display_value or self.record_id} of {self.table}"


class Change(models.Model):  # noqa: DJ008  (no page shows these rows by their text)
    """A write to a record. The table is partitioned by time; `tableapi.sql.change_rows` describes its values."""

    id = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField()
    # The id of a designed table, or the name of a product table.
    table_key = models.CharField(max_length=63)
    record_id = models.CharField(max_length=32)
    version = models.IntegerField()
    # `create`, `update`, `delete`, or `clear` for a reference to a deleted record.
    operation = models.CharField(max_length=6)
    changed_by = models.CharField(max_length=32, null=True)
    old_values = models.JSONField()
    new_values = models.JSONField()

    class Meta:
        db_table = "sys_change"
        managed = False


class HourlyCount(models.Model):  # noqa: DJ008
    """What happened in an hour, for the charts of the dashboard; see `system.background.hourly_counts`."""

    pk = models.CompositePrimaryKey("hour", "kind")
    hour = models.DateTimeField()
    kind = models.CharField(max_length=20, db_collation="C")
    count = models.BigIntegerField()

    class Meta:
        db_table = "system_hourly_count"


class Preparation(models.Model):  # noqa: DJ008
    """The stamp of the last preparation of the database, see `config.maintenance.preparation`; at most one row."""

    stamp = models.CharField(primary_key=True, max_length=64)

    class Meta:
        db_table = "system_preparation"


class Heartbeat(models.Model):  # noqa: DJ008
    """The time when a background process last did its work. A process that hangs has no new heartbeats."""

    name = models.CharField(primary_key=True, max_length=20)
    at = models.DateTimeField()

    class Meta:
        db_table = "system_heartbeat"

    @classmethod
    def record(cls, name: str) -> None:
        cls.objects.update_or_create(name=name, defaults={"at": Now()})


class UserViewUse(LogEntry):
    """A use of the page "Who sees what", as an entry of Django's log of actions: `user` saw a table, or a record of it
    (`change_message`), as the user `object_repr` sees it."""

    class Meta:
        proxy = True
        verbose_name = "use of Who sees what"
        verbose_name_plural = "uses of Who sees what"

"""The base model of records: an id from the database, the `sys_*` columns, and the deletion log."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.db.models import Func
from django.utils import timezone
from django.utils.text import capfirst

from system.records import acting_user, change_log


class NewSysId(Func):
    """10 digits of Unix seconds and 8 of a cycling sequence, so that ids sort by creation time."""

    function = "public.svc_new_sys_id"
    output_field = models.CharField()


def user_reference() -> Any:
    """The id of a user, without foreign key or index, so that it remains when the user is deleted."""
    return models.CharField(max_length=32, db_collation="C", null=True, blank=True, editable=False)


def json_value(field: Any, source: Any) -> Any:
    """The value of a field as JSON takes it; `source` has it as an attribute."""
    value = field.value_from_object(source)
    is_json_value = value is None or isinstance(value, bool | int | float | str)
    return value if is_json_value or isinstance(field, ArrayField) else field.value_to_string(source)


class Record(models.Model):
    """Base of the product's own tables.

    The database creates the key, so `pk` is truthy before the record is saved. Use `is_new`, never `if pk`.
    """

    # Columns that the Table API returns; all others are internal.
    table_columns: ClassVar[tuple[str, ...]] = ()
    # Never written to the deletion log, history, logs or exports.
    secret_columns: ClassVar[frozenset[str]] = frozenset()
    # Secret columns that can be decrypted and that `manage.py reencrypt` encrypts again. The others are hashes.
    encrypted_columns: ClassVar[frozenset[str]] = frozenset()
    # Columns that the history contains and the history page does not show.
    internal_columns: ClassVar[frozenset[str]] = frozenset()
    # The column with the name of a record, if it is not `name`, and the tables of id columns without foreign key.
    display_column: ClassVar[str] = ""
    references: ClassVar[dict[str, str]] = {}

    # Created by the database, for writers through the ORM and SQL alike.
    sys_id = models.CharField(
        "id", primary_key=True, max_length=32, db_collation="C", db_default=NewSysId(), editable=False
    )
    sys_created_at = models.DateTimeField("created", default=timezone.now, editable=False)
    sys_created_by = user_reference()
    sys_updated_at = models.DateTimeField("updated", default=timezone.now, editable=False)
    sys_updated_by = user_reference()
    sys_version = models.PositiveIntegerField("version", default=0, editable=False)

    class Meta:
        abstract = True
        ordering = ["sys_id"]

    @property
    def is_new(self) -> bool:
        return self._state.adding

    def save(self, *positional: Any, **options: Any) -> None:
        """Save the record with its history and hooks in one transaction, set the `sys_*` columns, log the change."""
        with transaction.atomic(using=options.get("using")):
            is_new = self.is_new
            stored_values = self._set_bookkeeping_columns(options)
            super().save(*positional, **options)
            if self.table_columns:
                old = {} if is_new else self._logged_values(SimpleNamespace(**stored_values))
                new = self._logged_values(self)
                writer, self.custom_columns_writer = self.custom_columns_writer, None
                custom = writer(self) if writer else ({}, {})
                change_log.write("create" if is_new else "update", self, old, new, custom)

    def _set_bookkeeping_columns(self, options: dict[str, Any]) -> dict[str, Any]:
        """Returns the stored values of a record that is logged or of which some columns are saved."""
        update_fields = options.get("update_fields")
        stamp: dict[str, Any] = {"sys_updated_at": timezone.now(), "sys_updated_by": acting_user.current()}
        if self.is_new:
            stamp |= {"sys_created_at": stamp["sys_updated_at"], "sys_created_by": acting_user.current()}
            stored_values: dict[str, Any] = {}
        else:
            # Locked, so that concurrent writers never assign the same version.
            # Without ordering, because PostgreSQL does not lock across an outer join.
            locked_rows = type(self)._base_manager.select_for_update().order_by().filter(pk=self.pk)
            needs_values = update_fields is not None or self.table_columns
            rows: Any = locked_rows.values() if needs_values else locked_rows.values("sys_version")
            stored_values = next(iter(rows), {})
            stamp["sys_version"] = stored_values.get("sys_version", self.sys_version) + 1
            if update_fields is not None:
                self._restore_other_columns(stored_values, frozenset(update_fields))
        for name, value in stamp.items():
            setattr(self, name, value)
        if update_fields is not None:
            options["update_fields"] = {*update_fields, *stamp}
        return stored_values

    def _logged_values(self, source: Any) -> dict[str, Any]:
        """Of the columns that the Table API shows, by the name of the database column."""
        names = frozenset(self.table_columns) - self.secret_columns
        fields = [
            field for field in self._meta.concrete_fields if field.name in names and hasattr(source, field.attname)
        ]
        return {str(field.column): json_value(field, source) for field in fields}

    def log_deletion(self) -> None:
        """Called after the record was deleted, in the same transaction."""
        if self.table_columns:
            change_log.write("delete", self, self._logged_values(self), {}, (self.logged_custom_values, {}))

    def _restore_other_columns(self, stored_values: Mapping[str, Any], update_fields: frozenset[str]) -> None:
        """Set columns that are not saved to their stored values, so that the history does not contain unsaved ones."""
        for field in self._meta.concrete_fields:
            if field.attname in stored_values and not update_fields & {field.name, field.attname}:
                setattr(self, field.attname, stored_values[field.attname])

    @classmethod
    def lock_for_change(cls) -> None:
        """Called before a record of this table is locked to be changed, in the same transaction.

        For tables where saving one record changes others: two writers that lock their own record first would deadlock.
        """

    def delete(self, *positional: Any, **options: Any) -> tuple[int, dict[str, int]]:
        with transaction.atomic(using=options.get("using")):
            return super().delete(*positional, **options)

    def leaves_deletion_log_entry(self) -> bool:
        """Whether the deletion is written to the Record Deletion Log."""
        return True

    # Writes columns that an administrator added to the table, when the record is saved; returns their values before
    # and after it.
    custom_columns_writer: "Callable[[Record], tuple[dict[str, Any], dict[str, Any]]] | None" = None
    # Their values when the record is deleted: for the change log by the id of the column, for the deletion log by name.
    logged_custom_values: Mapping[str, Any] = {}
    custom_values: Mapping[str, Any] = {}
    # References of other records that the deletion of this one empties.
    emptied_references = 0
    # Description of a change that the history does not contain, for example of a secret.
    untracked_change_text = ""
    # Whether the last save wrote a history entry.
    has_entry = False

    def page_title(self) -> str:
        """The title of the record's page: its kind and name."""
        return f"{capfirst(self._meta.verbose_name)} {self}"

    def payload(self) -> dict[str, Any]:
        """The stored values for JSON, without secrets; for the deletion log."""
        fields = [field for field in self._meta.concrete_fields if field.name not in self.secret_columns]
        return {**{field.attname: json_value(field, self) for field in fields}, **self.custom_values}

    def refreshed(self) -> Self:
        """This record with its current values in the database."""
        self.refresh_from_db()
        return self

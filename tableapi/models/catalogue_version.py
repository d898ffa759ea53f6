"""The version of the catalogue, which every change to a table, column, view, rule or role increments."""

from typing import Any, ClassVar, NoReturn, Self

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Func

from system.records.record import Record
from tableapi.catalogue.value_readers import UNSTORABLE_CHARACTER
from tableapi.ddl import schema_editor


class NextVersion(Func):
    """Uses a sequence, so a rolled-back version is never reused for another catalogue."""

    template = "nextval('public.tableapi_version')"
    output_field = models.BigIntegerField()


class State(models.Model):
    """A single row. A process with an older version reloads the catalogue."""

    ROW_ID = 1

    id = models.PositiveSmallIntegerField(primary_key=True, default=ROW_ID)
    version = models.BigIntegerField(default=1)
    # The level of shipped tables created so far. Those that an administrator deletes are not created again.
    shipped_level = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "tableapi_state"

    @classmethod
    def locked_row(cls) -> "State":
        row, _ = cls.objects.select_for_update().get_or_create(pk=cls.ROW_ID, defaults={"version": NextVersion()})
        return row

    @classmethod
    def increment_version(cls) -> None:
        # The design lock comes before the row lock; otherwise, two administrators could deadlock.
        with schema_editor.design_lock():
            if not cls.objects.filter(pk=cls.ROW_ID).update(version=NextVersion()):
                cls.objects.create(pk=cls.ROW_ID, version=NextVersion())


def unique(name: str, message: str, *fields: str) -> models.UniqueConstraint:
    return models.UniqueConstraint(fields=fields, name=name, violation_error_message=message)


class CatalogueRecord(Record):
    """Base of the catalogue's records. `tableapi.design.saving` saves them and changes the database accordingly."""

    class Meta(Record.Meta):
        abstract = True

    @classmethod
    def lock_for_change(cls) -> None:
        schema_editor.lock_designs()

    # Attributes that cannot be changed after creation.
    fixed_fields: ClassVar[tuple[str, ...]] = ()

    def save(self, *args: Any, **options: Any) -> NoReturn:
        """Disabled, because it would skip checks and not change the tables in the database."""
        raise RuntimeError(f"{type(self).__name__}.save() is disabled. Use its function in tableapi.design.saving.")

    def save_row(self) -> None:
        """Save the row alone. Only `tableapi.design.saving` calls this."""
        super().save()

    def stored_record(self) -> Self | None:
        """The record as stored in the database, or None for a new one."""
        return None if self.is_new else type(self)._base_manager.filter(pk=self.pk).first()

    def full_clean(self, *args: Any, **options: Any) -> None:
        self.check_characters()
        super().full_clean(*args, **options)

    def check_characters(self) -> None:
        """Called before the other checks, because they query the database with these values."""
        for field in self._meta.concrete_fields:
            value = getattr(self, field.attname)
            if isinstance(value, str) and UNSTORABLE_CHARACTER.search(value):
                raise ValidationError({field.name: "Remove the characters that cannot be stored, such as NUL."})

    def clean(self) -> None:
        super().clean()
        previous = self.stored_record()
        for name in self.fixed_fields if previous is not None else ():
            field: Any = self._meta.get_field(name)
            if getattr(self, field.attname) != getattr(previous, field.attname):
                message = f"{str(field.verbose_name).capitalize()} cannot be changed after creation."
                raise ValidationError({name: message})

"""The version of the catalogue, raised by every change of a table, column, view, rule or role."""

from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Func

from system.records.record import Record
from tableapi.ddl import schema_editor


class NextVersion(Func):
    """From a sequence: a number that was rolled back never comes again with another catalogue."""

    template = "nextval('public.tableapi_version')"
    output_field = models.BigIntegerField()


class State(models.Model):
    """One row; a process that works on an older version reads the catalogue anew."""

    ROW = 1

    id = models.PositiveSmallIntegerField(primary_key=True, default=ROW)
    version = models.BigIntegerField(default=1)
    # What `shipped` has made so far: what an administrator deleted of it stays deleted.
    shipped_level = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "tableapi_state"

    def __str__(self) -> str:
        return f"version {self.version}"

    @classmethod
    def row(cls) -> "State":
        """The one row, locked."""
        if not cls.objects.filter(pk=cls.ROW).exists():
            cls.objects.create(pk=cls.ROW, version=NextVersion())
        return cls.objects.select_for_update().get(pk=cls.ROW)

    @classmethod
    def raise_version(cls) -> None:
        # Always in this order; two designers would wait for each other if one had the row and one the lock.
        with schema_editor.locked():
            if not cls.objects.filter(pk=cls.ROW).update(version=NextVersion()):
                cls.objects.create(pk=cls.ROW, version=NextVersion())


def is_storable(value: Any) -> bool:
    """PostgreSQL keeps neither a NUL nor half a surrogate pair."""
    return not isinstance(value, str) or not any(each == "\x00" or "\ud800" <= each <= "\udfff" for each in value)


class CatalogueRecord(Record):
    """Base of the catalogue's records: checked by whichever way they are saved, one designer after the other."""

    class Meta(Record.Meta):
        abstract = True

    # What never changes once the record is there.
    fixed: ClassVar[tuple[str, ...]] = ()

    def save(self, *positional: Any, **options: Any) -> None:
        """Save and do in the database what it says, in one transaction."""
        with schema_editor.locked():
            before = None if self.is_new else type(self)._base_manager.filter(pk=self.pk).first()
            self.full_clean(exclude={"sys_id"})
            super().save(*positional, **options)
            self.apply(before)

    def full_clean(self, *positional: Any, **options: Any) -> None:
        # Before everything else: the other checks ask the database with these values.
        for field in self._meta.concrete_fields:
            if not is_storable(getattr(self, field.attname)):
                raise ValidationError({field.name: "This contains a character that cannot be stored."})
        super().full_clean(*positional, **options)

    def clean(self) -> None:
        super().clean()
        before = None if self.is_new else type(self)._base_manager.filter(pk=self.pk).first()
        for name in self.fixed if before is not None else ():
            field: Any = self._meta.get_field(name)
            if getattr(self, field.attname) != getattr(before, field.attname):
                said = f"{str(field.verbose_name).capitalize()} cannot be changed later."
                raise ValidationError({name: said})

    def apply(self, before: Any) -> None:
        """Do in the database what was saved; `before` is the record as it was, None when it is new."""

"""The base model of records: an id from the database, the `sys_*` columns, an entry when deleted."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.db.models import Func
from django.utils import timezone
from django.utils.text import capfirst

from system.records import acting_user


class NewSysId(Func):
    """10 digits of Unix seconds, 8 of a cycling sequence: sorting by it is sorting by time of creation."""

    function = "public.svc_new_sys_id"
    output_field = models.CharField()


def user_reference() -> Any:
    """The id of a user without foreign key or index: it stays when the user goes."""
    return models.CharField(max_length=32, db_collation="C", null=True, blank=True, editable=False)


class Record(models.Model):
    """Base of the product's own tables.

    A record whose key the database makes has a `pk` that is true before it is saved: ask `is_new`, never `if pk`.
    """

    # Columns that the Table API shows; everything else stays inside.
    table_columns: ClassVar[tuple[str, ...]] = ()
    # Never in deletion log, history, log or export.
    secret_columns: ClassVar[frozenset[str]] = frozenset()
    # Those of them that are read back: `manage.py reencrypt` brings them under a new key. The others are hashes.
    encrypted_columns: ClassVar[frozenset[str]] = frozenset()
    # What the history keeps and people are not told: it is the product's own.
    untold_columns: ClassVar[frozenset[str]] = frozenset()
    # What people call a record by, where it is no column `name`; which columns of ids, without foreign key, hold whose.
    display_column: ClassVar[str] = ""
    references: ClassVar[dict[str, str]] = {}

    # Made by the database, so that every writer, ORM or SQL, gets one.
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
        ordering: ClassVar[list[str]] = ["sys_id"]

    @property
    def is_new(self) -> bool:
        return self._state.adding

    def save(self, *positional: Any, **options: Any) -> None:
        """Save with its history and hooks in one transaction; `sys_*` columns are the server's."""
        with transaction.atomic(using=options.get("using")):
            self._stamp(options)
            super().save(*positional, **options)

    def _stamp(self, options: dict[str, Any]) -> None:
        named = options.get("update_fields")
        stamped: dict[str, Any] = {"sys_updated_at": timezone.now(), "sys_updated_by": acting_user.current()}
        if self.is_new:
            stamped |= {"sys_created_at": stamped["sys_updated_at"], "sys_created_by": acting_user.current()}
        else:
            # Locked, so that two writers at once never give one version twice.
            # Unordered: by a linked table, which may be missing, PostgreSQL refuses to lock.
            locked = type(self)._base_manager.select_for_update().order_by().filter(pk=self.pk)
            asked: Any = locked.values("sys_version") if named is None else locked.values()
            stored: dict[str, Any] = next(iter(asked), {})
            stamped["sys_version"] = stored.get("sys_version", self.sys_version) + 1
            if named is not None:
                self._leave_as_stored(stored, frozenset(named))
        for name, value in stamped.items():
            setattr(self, name, value)
        if named is not None:
            options["update_fields"] = {*named, *stamped}

    def _leave_as_stored(self, stored: Mapping[str, Any], named: frozenset[str]) -> None:
        """What is not saved stands as it is stored, so that the history does not tell what this object says of it."""
        for each in self._meta.concrete_fields:
            if each.attname in stored and not named & {each.name, each.attname}:
                setattr(self, each.attname, stored[each.attname])

    @classmethod
    def take_turn(cls) -> None:
        """Who locks a record of this table to change it calls this first, in the same transaction.

        For tables where saving one record changes others: each locking its own first, two would wait for each other.
        """

    def delete(self, *positional: Any, **options: Any) -> tuple[int, dict[str, int]]:
        with transaction.atomic(using=options.get("using")):
            return super().delete(*positional, **options)

    def leaves_log_entry(self) -> bool:
        """Whether its deletion is written to the Record Deletion Log."""
        return True

    def shown_as(self) -> str:
        """What people call this record."""
        return str(self)

    # What a change did that the history does not keep, such as to a secret: a sentence for its entry.
    unkept_change = ""
    # Whether the last save left an entry, of what is tracked.
    has_entry = False

    def page_title(self) -> str:
        """The same with its kind, above its page."""
        return f"{capfirst(self._meta.verbose_name)} {self}"

    def payload(self) -> dict[str, Any]:
        """The stored values as JSON takes them, without secrets; for the deletion log."""
        found: dict[str, Any] = {}
        for column in self._meta.concrete_fields:
            if column.name in self.secret_columns:
                continue
            value = column.value_from_object(self)
            is_plain = value is None or isinstance(value, bool | int | float | str)
            is_list = isinstance(column, ArrayField)
            found[column.attname] = value if is_plain or is_list else column.value_to_string(self)
        return found

    @classmethod
    def table_name(cls) -> str:
        return cls._meta.db_table

    def refreshed(self) -> Self:
        """This record as the database holds it now."""
        self.refresh_from_db()
        return self

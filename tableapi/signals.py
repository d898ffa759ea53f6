"""What follows when the catalogue changes: a new version, and what a deletion means in the database."""

from typing import Any

from django.apps import apps
from django.db.models import QuerySet
from django.db.models.signals import post_delete, post_save, pre_delete

from accounts.models import Role
from system.records.record import Record
from tableapi.database import catalogue_loader
from tableapi.ddl import schema_editor
from tableapi.design import catalogue_checks
from tableapi.models import Choice, Column, Rule, State, Table, View, ViewColumn, validation
from tableapi.models.catalogue_version import CatalogueRecord
from tableapi.write import references


def raise_version(sender: Any, **_: Any) -> None:
    State.raise_version()


def release_references(sender: type[Record], instance: Record, origin: Any = None, **_: Any) -> None:
    """Whoever deletes a record of the product's own: lists lose its id, and a mandatory reference keeps it."""
    if issubclass(sender, CatalogueRecord) and not is_of(sender, origin):
        return  # it goes with its table, whose columns may be dropped by now
    catalogue = catalogue_loader.reload_if_changed()
    table = catalogue.tables.get(sender.table_name())
    if table is not None and table.is_system:
        references.release(catalogue, table, instance.sys_id)


def drop_table(sender: Any, instance: Table, **_: Any) -> None:
    """Also in bulk. As it is stored, whatever was changed of the instance since."""
    with schema_editor.locked():
        stored = Table.objects.get(pk=instance.pk)
        validation.check_table_can_go(stored)
        if not stored.is_system:
            schema_editor.drop_table(stored)


def drop_column(sender: Any, instance: Column, origin: Any = None, **_: Any) -> None:
    if is_of(Table, origin):
        return  # it goes with its table
    with schema_editor.locked():
        stored = Column.objects.select_related("table").get(pk=instance.pk)
        validation.check_column_can_go(stored)
        Rule.of_column(stored).delete()
        if not stored.table.is_system:
            schema_editor.drop_column(stored)


def keep_choice(sender: Any, instance: Choice, origin: Any = None, **_: Any) -> None:
    stored = Choice.objects.select_related("column__table").get(pk=instance.pk)
    validation.check_choice_can_go(stored, with_column=is_of(Column, origin) or is_of(Table, origin))


def is_of(model: Any, origin: Any) -> bool:
    """Whether the deletion began with records of this model: one of them, or many."""
    return isinstance(origin, model) or (isinstance(origin, QuerySet) and origin.model is model)


def connect() -> None:
    validation.catalogue_checks = catalogue_checks
    for shown in apps.get_models():
        if issubclass(shown, Record) and shown.table_columns:
            pre_delete.connect(release_references, sender=shown)
    pre_delete.connect(drop_table, sender=Table)
    pre_delete.connect(drop_column, sender=Column)
    pre_delete.connect(keep_choice, sender=Choice)
    for model in (Table, Column, Choice, View, ViewColumn, Rule, Role):
        post_save.connect(raise_version, sender=model)
        post_delete.connect(raise_version, sender=model)

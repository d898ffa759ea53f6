"""Signal receivers that increment the catalogue version and apply deletions to the database."""

from typing import Any

from django.db.models import SET_NULL, QuerySet
from django.db.models.signals import post_delete, post_save, pre_delete

from accounts.models import Role
from system.models import DeletionLogEntry
from system.records.record import Record
from tableapi.attached import records as attached_records
from tableapi.database import catalogue_loader
from tableapi.ddl import schema_editor
from tableapi.models import Choice, Column, Rule, SetRule, State, Table, View, ViewColumn, validation
from tableapi.models.catalogue_version import CatalogueRecord
from tableapi.write import custom_columns, product_records, references


def increment_version(sender: Any, **_: Any) -> None:
    State.increment_version()


def clear_references(sender: type[Record], instance: Record, origin: Any = None, **_: Any) -> None:
    """Clear the references to a system record before it is deleted; mandatory references prevent the deletion."""
    if issubclass(sender, CatalogueRecord) and not is_origin(sender, origin):
        return  # deleted with its table, whose columns may already be dropped
    catalogue = catalogue_loader.reload_if_changed()
    table = catalogue.tables.get(sender._meta.db_table)
    if table is not None and table.is_system:
        instance.custom_values = custom_columns.payload(table, instance.sys_id)
        instance.logged_custom_values = custom_columns.logged_values(table, instance.sys_id)
        all_ids = [record.pk for record in origin] if isinstance(origin, QuerySet) else []
        relations = [relation for relation in sender._meta.related_objects if relation.on_delete is SET_NULL]
        columns = {(relation.related_model._meta.db_table, relation.field.column) for relation in relations}
        instance.emptied_references = references.clear_references(catalogue, table, instance.sys_id, all_ids, columns)


def keep_attached_rows(sender: Any, instance: DeletionLogEntry, **_: Any) -> None:
    catalogue = catalogue_loader.cached_catalogue()
    table = catalogue.tables.get(instance.table)
    if table is not None:
        attached_records.keep_attached_rows(catalogue, table, instance.record_id, instance.sys_id)


def drop_table(sender: Any, instance: Table, **_: Any) -> None:
    """Drop the table in the database. Reads the stored row, because the instance may have unsaved changes."""
    with schema_editor.design_lock():
        stored = Table.objects.get(pk=instance.pk)
        validation.check_table_deletion(stored)
        if not stored.is_system:
            schema_editor.drop_table(stored)
            attached_records.delete_attached_rows(stored.pk)


def drop_column(sender: Any, instance: Column, origin: Any = None, **_: Any) -> None:
    if is_origin(Table, origin):
        return  # deleted with its table
    with schema_editor.design_lock():
        stored = Column.objects.select_related("table").get(pk=instance.pk)
        validation.check_column_deletion(stored)
        Rule.for_column(stored).delete()
        if stored.is_designed:
            schema_editor.drop_column(stored)


def check_choice_deletion(sender: Any, instance: Choice, origin: Any = None, **_: Any) -> None:
    stored = Choice.objects.select_related("column__table").get(pk=instance.pk)
    validation.check_choice_deletion(stored, with_column=is_origin(Column, origin) or is_origin(Table, origin))


def is_origin(model: Any, origin: Any) -> bool:
    """Whether the deletion was started on a record or queryset of this model."""
    return isinstance(origin, model) or (isinstance(origin, QuerySet) and origin.model is model)


def connect_signals() -> None:
    for model in product_records.models_with_columns():
        pre_delete.connect(clear_references, sender=model)
    post_save.connect(keep_attached_rows, sender=DeletionLogEntry)
    pre_delete.connect(drop_table, sender=Table)
    pre_delete.connect(drop_column, sender=Column)
    pre_delete.connect(check_choice_deletion, sender=Choice)
    for model in (Table, Column, Choice, View, ViewColumn, Rule, SetRule, Role):
        post_save.connect(increment_version, sender=model)
        post_delete.connect(increment_version, sender=model)

"""Restores a deleted record from its entry in the Record Deletion Log, with its comments and attachments."""

from html import escape
from typing import Any

from django.db import transaction

from system.errors import AccessDenied, BadRequest, Conflict, InvalidInput, NotFound
from system.models import DeletionLogEntry
from tableapi.access.permissions import CATALOGUE_TABLES
from tableapi.catalogue import html
from tableapi.catalogue.definitions import OWN_TABLE_COLUMN, Catalogue, Column, Table
from tableapi.database import statement_runner
from tableapi.models import Attachment, Comment
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller
from tableapi.values import column_values
from tableapi.write import designed_records, product_records, references

# Set when the record is created again.
UNRESTORED_COLUMNS = frozenset({"sys_id", "sys_updated_at", "sys_updated_by", OWN_TABLE_COLUMN})


@on_current_catalogue
def restore(catalogue: Catalogue, caller: Caller, deletion_id: str) -> dict[str, Any]:
    if not caller.context(catalogue).view.permissions.is_admin:
        raise AccessDenied("Only administrators can restore records.")
    entry = DeletionLogEntry.objects.filter(pk=deletion_id).first()
    statement_runner.check_version(caller.context(catalogue).inputs())
    if entry is None:
        raise NotFound("There is no such entry in the Record Deletion Log.")
    table = catalogue.tables.get(entry.table)
    if table is None:
        raise Conflict(f'The table "{entry.table}" no longer exists.')
    if table.name in CATALOGUE_TABLES or (table.is_system and not product_records.can_be_created_by_clients(table)):
        raise BadRequest("Records of this table cannot be restored.")
    with transaction.atomic():
        # The root table contains the ids of all tables that extend it.
        if references.existing_ids(catalogue.tables[table.lineage[-1]], [entry.record_id]):
            raise designed_records.Duplicate("sys_id")
        lost_columns = _restore_record(catalogue, table, entry)
        # If the record was restored and deleted again, they belong to the latest entry.
        deletions = DeletionLogEntry.objects.filter(pk__gte=entry.pk, table=entry.table, record_id=entry.record_id)
        for model in (Comment, Attachment):
            kept_rows = model.objects.filter(deletion_id__in=deletions.values("pk"), record_id=entry.record_id)
            kept_rows.update(deletion_id=None)
    return {
        "sys_id": entry.record_id,
        "table": table.name,
        # References from other records, which the deletion emptied.
        "emptied_references": entry.emptied_references,
        # Columns whose value could not be restored completely.
        "lost_references": lost_columns,
    }


def _restore_record(catalogue: Catalogue, table: Table, entry: DeletionLogEntry) -> list[str]:
    values: dict[Column, Any] = {}
    lost_columns = []
    for name, value in entry.payload.items():
        column = table.columns.get(name)
        if column is None or value is None or name in UNRESTORED_COLUMNS or (table.is_system and not column.is_custom):
            continue
        if not column.is_readable:
            continue  # now a password or secret column
        try:
            values[column], is_complete = _restored_value(catalogue, column, value)
        except InvalidInput:
            is_complete = False
        lost_columns += [name] * (not is_complete)
    if table.is_system:
        lost_columns += product_records.restore(table, entry.record_id, entry.payload, values)
    else:
        designed_records.insert(catalogue, table, values, entry.record_id)
    return sorted(lost_columns)


def _restored_value(catalogue: Catalogue, column: Column, value: Any) -> tuple[Any, bool]:
    """The value to store, and whether it is complete."""
    if column.name == "sys_version":
        return int(value) + 1, True
    if column.converted_from_text and html.sanitize_html(value) != value:
        value = escape(value, quote=False)  # a text from before the conversion
    try:
        restored = column_values.parse(column, value)
    except InvalidInput:
        # A text or choice that has become invalid can stay, as in other records.
        is_text = column.column_type.has_choices or (column.column_type.is_text and not column.column_type.is_html)
        if is_text and isinstance(value, str):
            return value, True
        raise
    if not column.column_type.has_target:
        return restored, True
    existing = references.existing_references(catalogue, column, restored) if restored else restored
    return existing or None, existing == restored

"""Deletes a record: lock, permission, references, deletion log, delete."""

from django.db import transaction

from system import deletion_log
from system.errors import AccessDenied
from tableapi.catalogue.definitions import DELETE, OWN_TABLE_COLUMN

from . import current_record, designed_records, product_records, references
from .write_request import WriteRequest


def delete(change: WriteRequest, sys_id: str) -> None:
    """Delete the record and write its entry in the Record Deletion Log, in one transaction."""
    try:
        with transaction.atomic():
            _delete(change, sys_id)
    except references.StillReferenced as error:
        raise references.error_for_caller(change.context, error, sys_id) from None


def _delete(change: WriteRequest, sys_id: str) -> None:
    catalogue, table = change.context.view.catalogue, change.table
    table_column = table.columns.get(OWN_TABLE_COLUMN)
    current = current_record.lock_current_record(change, sys_id, DELETE, (table_column,) if table_column else ())
    if not current.is_allowed:
        raise AccessDenied("You have no access to delete the records.")
    if table_column is None:  # a product table
        product_records.delete(table, sys_id)  # also clears references, as the administration does
        return
    record_table = catalogue.tables_by_id.get(current.columns[table_column].value, table)
    if record_table is not table:
        designed_records.lock(record_table, sys_id)
    emptied_count = references.clear_references(catalogue, record_table, sys_id)
    values = designed_records.payload(record_table, sys_id)
    display_column = record_table.display_column
    name = values.get(display_column.name) if display_column else None
    deletion_log.write(record_table.name, sys_id, str(name or sys_id), values, emptied_count)
    designed_records.delete(record_table, sys_id)

"""Opens the record that attached rows belong to, and keeps these rows when the record is deleted."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from django.db import DEFAULT_DB_ALIAS
from django.db.models import QuerySet

from system.database_statements import run_named_sql
from tableapi.access.caller_view import record_not_found
from tableapi.catalogue.definitions import WRITE, Catalogue, Table
from tableapi.changes.logged_values import table_key
from tableapi.models import Attachment, Comment, Follower, Notification
from tableapi.query.parameters import OutputOptions, RawParameters
from tableapi.read.context import Caller, ReadContext
from tableapi.read.entry_pages import Entry, EntryPage, page_of
from tableapi.read.pipeline import RECORD_ID
from tableapi.write import current_record, permission_queries
from tableapi.write.write_request import WriteRequest

Row = TypeVar("Row", Comment, Attachment)

KEEP_SQL = """
    WITH comments AS (UPDATE public.sys_comment SET deletion_id = %(deletion_id)s
                      WHERE record_id = %(record_id)s AND table_key = %(table_key)s AND deletion_id IS NULL),
      attachments AS (UPDATE public.sys_attachment SET deletion_id = %(deletion_id)s
                      WHERE record_id = %(record_id)s AND table_key = %(table_key)s AND deletion_id IS NULL),
    notifications AS (DELETE FROM public.sys_notification
                      WHERE record_id = %(record_id)s AND table_key = %(table_key)s)
    DELETE FROM public.sys_follower WHERE record_id = %(record_id)s AND table_key = %(table_key)s
"""


def root_key(catalogue: Catalogue, table: Table) -> str:
    """The `table_key` of attached rows: that of the root table, because record ids are unique in its family."""
    return table_key(catalogue.tables[table.lineage[-1]])


@dataclass(frozen=True)
class OpenRecord:
    context: ReadContext
    table: Table
    sys_id: str

    @property
    def key_columns(self) -> dict[str, str]:
        """The columns by which attached rows refer to this record, with their values."""
        return {"table_key": root_key(self.context.view.catalogue, self.table), "record_id": self.sys_id}

    def rows(self, model: type[Row]) -> "QuerySet[Row]":
        return model.objects.filter(**self.key_columns, deletion_id=None)

    def row(self, model: type[Row], sys_id: str, *, lock: bool = False) -> Row:
        rows = self.rows(model).select_for_update() if lock else self.rows(model)
        row = rows.order_by().filter(pk=sys_id).first()
        if row is None:
            raise record_not_found()
        return row

    def page(self, model: type[Row], raw: RawParameters, to_entry: Callable[[Row], Entry]) -> EntryPage:
        def read_entries(before: str | None, limit: int) -> Iterator[tuple[str, Entry]]:
            rows = self.rows(model).order_by("-pk")
            for row in (rows.filter(pk__lt=before) if before else rows)[:limit]:
                yield row.pk, to_entry(row)

        identity = [f"{model._meta.model_name}s", *self.key_columns.values(), self.context.caller.user_id]
        return page_of(raw, identity, read_entries)


def open_record(
    catalogue: Catalogue, caller: Caller, table_name: str, sys_id: str, *, lock: bool = False
) -> OpenRecord:
    """Open a record that the caller can read, or raise 404. `lock` prevents its deletion until the transaction ends."""
    context = caller.context(catalogue)
    view, table = context.view, context.view.open_table(table_name)
    if not RECORD_ID.fullmatch(sys_id) or not view.can_read(table):
        raise record_not_found()
    statement = view.cached(
        ("readable", table.name, lock),
        lambda: permission_queries.count_readable_statement(view.permissions, ((table, lock),)),
    )
    ((count,),) = context.fetch(statement, ids0=[sys_id])
    if not count:
        raise record_not_found()
    return OpenRecord(context, table, sys_id)


def open_writable_record(catalogue: Catalogue, caller: Caller, table_name: str, sys_id: str) -> OpenRecord:
    """Open and lock a record for writing. Raises 404 if the caller cannot read it, 403 if they cannot write it."""
    context = caller.context(catalogue)
    table = context.view.open_table(table_name)
    change = WriteRequest(body={}, output=OutputOptions(), context=context, table=table)
    if not current_record.lock_current_record(change, sys_id, WRITE, ()).is_allowed:
        raise current_record.write_denied_error([])
    return OpenRecord(context, table, sys_id)


def delete_attached_rows(table_id: str) -> None:
    """Delete the attached rows of a dropped table, including those kept for restoring its records."""
    for model in (Comment, Attachment, Follower, Notification):
        model._base_manager.filter(table_key=table_id)._raw_delete(DEFAULT_DB_ALIAS)


def keep_attached_rows(catalogue: Catalogue, table: Table, record_id: str, deletion_id: str) -> None:
    """Keep the comments and attachments of a deleted record, unreadable, as long as its entry in the deletion log."""
    values = {"table_key": root_key(catalogue, table), "record_id": record_id, "deletion_id": deletion_id}
    run_named_sql(KEEP_SQL, values)

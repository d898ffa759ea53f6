"""Changes tables in the database, one change at a time and without blocking callers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.db.utils import Error, IntegrityError, OperationalError
from psycopg import errors, sql

from system.background.task_dispatch import wake_worker
from system.errors import Unavailable
from system.plain_sql import fetch_rows
from tableapi.catalogue.definitions import plain_text_column_name
from tableapi.ddl import physical_names

if TYPE_CHECKING:
    from tableapi.models import Column, Table

DESIGN_LOCK_ID = 7_301_010
# The percentage of a page that new records fill, in tables whose records change often.
FILLFACTOR_PERCENT = 85
# Every later SELECT waits behind a waiting ALTER (measured: 5.1 s), so an attempt times out early and is repeated.
LOCK_TIMEOUT_MS = 2_000
MAX_ATTEMPTS = 4
RETRY_PAUSE_S = 0.1

# Writes wait while the values are compared (measured: 1.3 s for a million records).
MAX_RECORDS_FOR_UNIQUE_INDEX = 1_000_000
TOO_LARGE_FOR_UNIQUE = (
    "The table has more than {:,} records, and no record could be written while their values are compared. Create a "
    "table with a unique column, then import the records into it."
)

# Sent as one message to save round trips to the database.
WITH_LOCK_TIMEOUT = sql.SQL("""
    SELECT set_config('servicebase.lock_timeout', current_setting('lock_timeout'), true);
    SET LOCAL lock_timeout = {};
    {};
    SELECT set_config('lock_timeout', current_setting('servicebase.lock_timeout'), true)
""")

_holds_design_lock: ContextVar[bool] = ContextVar("holds_design_lock", default=False)
_is_product_change: ContextVar[bool] = ContextVar("is_product_change", default=False)


@contextmanager
def allow_product_changes() -> Iterator[None]:
    """Allow changes to product tables and the use of reserved names. Only the product itself uses this."""
    token = _is_product_change.set(True)
    try:
        yield
    finally:
        _is_product_change.reset(token)


def is_product_change() -> bool:
    return _is_product_change.get()


def lock_designs() -> None:
    """Lock table designs until the transaction ends. Call this before any record of the catalogue is locked."""
    if not _holds_design_lock.get():
        _run_with_retries(sql.SQL("SELECT pg_advisory_xact_lock({})").format(DESIGN_LOCK_ID))


@contextmanager
def design_lock() -> Iterator[None]:
    """A transaction that holds the lock on table designs until it ends."""
    if _holds_design_lock.get():
        yield
        return
    with transaction.atomic():
        lock_designs()
        token = _holds_design_lock.set(True)
        try:
            yield
        finally:
            _holds_design_lock.reset(token)


def execute(*statements: sql.Composable) -> None:
    with design_lock():
        for statement in statements:
            _run_with_retries(statement)


def _run_with_retries(statement: sql.Composable) -> None:
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(WITH_LOCK_TIMEOUT.format(LOCK_TIMEOUT_MS, statement))
            return
        except Error as error:
            cause = error.__cause__
            if isinstance(cause, errors.ProgramLimitExceeded | errors.TooManyColumns):
                raise ValidationError(
                    "The table has too many columns, or values that are too long to index."
                ) from error
            if isinstance(cause, errors.InsufficientPrivilege):
                raise ValidationError(
                    "The service cannot change this table, because it belongs to another database role."
                ) from error
            if isinstance(cause, errors.QueryCanceled):
                raise Unavailable("The change took too long. Try again when the load is lower.") from error
            if not isinstance(cause, errors.LockNotAvailable | errors.DeadlockDetected):
                raise
            if attempt == MAX_ATTEMPTS:
                raise Unavailable(
                    "The table is in use, or another design change is in progress. Nothing was changed. Try again "
                    "shortly."
                ) from error
        time.sleep(RETRY_PAUSE_S * attempt)


def has_records(table: Table) -> bool:
    ((exists,),) = fetch_rows(sql.SQL("SELECT EXISTS (SELECT FROM {})").format(qualified_name(table)))
    return bool(exists)


def has_more_records(table: Table, count: int) -> bool:
    query = sql.SQL("SELECT EXISTS (SELECT FROM {} OFFSET %s)").format(qualified_name(table))
    ((has_more,),) = fetch_rows(query, [count])
    return bool(has_more)


def count_records(table: Table) -> int:
    ((count,),) = fetch_rows(sql.SQL("SELECT count(*) FROM {}").format(qualified_name(table)))
    return int(count)


def count_values(column: Column, value: str | None = None) -> int:
    """The records that have a value in the column, or this value."""
    name = sql.Identifier(column.database_name)
    condition = sql.SQL("" if value is None else " WHERE {} = %s").format(name)
    query = sql.SQL("SELECT count({}) FROM {}").format(name, _storage_table(column))
    ((count,),) = fetch_rows(query + condition, None if value is None else [value])
    return int(count)


def has_longer_text(column: Column, maximum: int) -> bool:
    """Whether any text is longer than `maximum`, measured as plain text. The length in bytes is compared first, because
    it is known without decompression. Returns False if the table is too large to scan in a request."""
    text_sql: sql.Composable = sql.Identifier(column.database_name)
    if column.column_type.is_html:
        text_sql = sql.SQL("coalesce({}, {})").format(sql.Identifier(plain_text_column_name(column.pk)), text_sql)
    query = sql.SQL("SELECT EXISTS (SELECT 1 FROM {} WHERE octet_length({text}) > %s AND length({text}) > %s)")
    try:
        with transaction.atomic():
            ((is_longer,),) = fetch_rows(query.format(_storage_table(column), text=text_sql), [maximum, maximum])
            return bool(is_longer)
    except OperationalError as error:
        if not isinstance(error.__cause__, errors.QueryCanceled):
            raise
        return False


def qualified_name(table: Table) -> sql.Identifier:
    return sql.Identifier("public" if table.is_system else physical_names.RECORDS_SCHEMA, table.name)


def _storage_table(column: Column) -> sql.Identifier:
    """The database table that stores the column; custom columns are stored apart from their product table."""
    return sql.Identifier(physical_names.RECORDS_SCHEMA if column.is_designed else "public", column.table.name)


ROOT_DDL = sql.SQL("""
    CREATE TABLE {table} (
        sys_id {id} PRIMARY KEY DEFAULT public.svc_new_sys_id() CHECK (sys_id ~ '^[0-9a-z]{{1,32}}$'),
        sys_created_at timestamptz NOT NULL DEFAULT now(),
        sys_created_by {id},
        sys_updated_at timestamptz NOT NULL DEFAULT now(),
        sys_updated_by {id},
        sys_version integer NOT NULL DEFAULT 0,
        sys_db_table_id {id} NOT NULL DEFAULT {table_id}
    )
""")
CHILD_DDL = sql.SQL("CREATE TABLE {table} (sys_id {id} PRIMARY KEY REFERENCES {parent} (sys_id) ON DELETE CASCADE)")


def create_table(table: Table) -> None:
    if table.parent is None:
        execute(
            ROOT_DDL.format(table=qualified_name(table), id=physical_names.ID_TYPE, table_id=table.pk),
            *_time_indexes(table),
        )
        return
    _create_child_table(qualified_name(table), qualified_name(table.parent))
    root = table.lineage[-1]
    create_or_queue_indexes([physical_names.family_index(root.pk, root.name)], root)


def _create_child_table(table: sql.Composable, parent: sql.Identifier) -> None:
    execute(CHILD_DDL.format(table=table, id=physical_names.ID_TYPE, parent=parent))


def enable_hot_updates(table: Table) -> None:
    """Enable heap-only tuple (HOT) updates, which write no index entries. They need free space
    in the page, and no column of a B-tree index may change. `sys_updated_at` always changes, so it gets a BRIN index,
    which serves filters but not sorting.
    """
    name, table_name = sql.Identifier(f"D{table.pk}"), qualified_name(table)
    execute(
        sql.SQL("ALTER TABLE {} SET (fillfactor = {})").format(table_name, FILLFACTOR_PERCENT),
        physical_names.drop_index_sql(physical_names.RECORDS_SCHEMA, f"D{table.pk}"),
        sql.SQL("CREATE INDEX {} ON {} USING brin (sys_updated_at) WITH (pages_per_range = 32, autosummarize)").format(
            name, table_name
        ),
    )


def _time_indexes(table: Table) -> Iterator[sql.Composable]:
    for letter, column in (("C", "sys_created_at"), ("D", "sys_updated_at")):
        yield sql.SQL("CREATE INDEX {} ON {} ({}, sys_id)").format(
            sql.Identifier(f"{letter}{table.pk}"), qualified_name(table), sql.Identifier(column)
        )


def create_sequence(table: Table) -> None:
    execute(sql.SQL("CREATE SEQUENCE IF NOT EXISTS {}").format(_sequence(table)))


def _sequence(table: Table) -> sql.Identifier:
    return sql.Identifier(physical_names.RECORDS_SCHEMA, physical_names.sequence_name(table.pk))


def drop_table(table: Table) -> None:
    """Drop the table if it is empty. Raises ValidationError if a concurrent request has created a record."""
    execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(qualified_name(table)))
    if has_records(table):
        raise ValidationError(f"{table.name} has records. Delete those records first.")
    execute(
        sql.SQL("DROP TABLE {}").format(qualified_name(table)),
        sql.SQL("DROP SEQUENCE IF EXISTS {}").format(_sequence(table)),
    )


def add_columns(table: Table, columns: Sequence[Column]) -> None:
    clauses = [clause for column in columns for clause in _add_column_clauses(column)]
    storage_table = _storage_table(columns[0])
    if table.is_system:
        _create_child_table(sql.SQL("IF NOT EXISTS {}").format(storage_table), qualified_name(table))
    execute(sql.SQL("ALTER TABLE {} {}").format(storage_table, sql.SQL(", ").join(clauses)))
    for column in columns:
        if column.is_unique:
            create_unique_index(column)
    create_or_queue_indexes(
        [index for column in columns for index in physical_names.column_indexes(column, table.name)], table
    )


def _add_column_clauses(column: Column) -> Iterator[sql.Composable]:
    add = sql.SQL("ADD COLUMN {} {}")
    clause = add.format(sql.Identifier(column.database_name), sql.SQL(column.column_type.definition))
    if column.column_type.is_reference and column.reference_table is not None:
        # The new column is empty in every record, so PostgreSQL does not scan the table.
        clause += sql.SQL(" CONSTRAINT {} REFERENCES {} (sys_id) ON DELETE SET NULL").format(
            sql.Identifier(f"F{column.pk}"), qualified_name(column.reference_table)
        )
    yield clause
    if column.column_type.is_html:
        yield add.format(sql.Identifier(plain_text_column_name(column.pk)), sql.SQL("text"))


def change_column(column: Column, previous: Column) -> None:
    """Apply the differences to the database. Type changes never rewrite records."""
    table = column.table
    required_indexes = list(physical_names.column_indexes(column, table.name))
    previous_indexes = list(physical_names.column_indexes(previous, table.name))
    if column.type != previous.type:
        if column.column_type.is_html:
            text = sql.SQL("ALTER TABLE {} ADD COLUMN {} text")
            execute(text.format(_storage_table(column), sql.Identifier(plain_text_column_name(column.pk))))
        # The new indexes have the same names but other expressions, and the old ones would reject long texts.
        execute(*(index.drop_sql() for index in previous_indexes))
        previous_indexes = []
    if column.is_unique and not previous.is_unique:
        create_unique_index(column)
    if previous.is_unique and not column.is_unique:
        execute(physical_names.unique_index(previous, table.name).drop_sql())
    old_names, new_names = {index.name for index in previous_indexes}, {index.name for index in required_indexes}
    missing_indexes = [index for index in required_indexes if index.name not in old_names]
    create_or_queue_indexes(missing_indexes, table, has_surplus=bool(old_names - new_names))


def drop_column(column: Column) -> None:
    names = [column.database_name, *([plain_text_column_name(column.pk)] if column.column_type.is_html else [])]
    parts = [sql.SQL("DROP COLUMN IF EXISTS {}").format(sql.Identifier(name)) for name in names]
    execute(sql.SQL("ALTER TABLE IF EXISTS {} {}").format(_storage_table(column), sql.SQL(", ").join(parts)))


def create_unique_index(column: Column) -> None:
    """Refused for large tables, because writes would wait for longer than callers do."""
    if has_more_records(column.table, MAX_RECORDS_FOR_UNIQUE_INDEX):
        raise ValidationError({"is_unique": TOO_LARGE_FOR_UNIQUE.format(MAX_RECORDS_FOR_UNIQUE_INDEX)})
    try:
        execute(physical_names.unique_index(column, column.table.name).create_sql())
    except IntegrityError as error:
        if not isinstance(error.__cause__, errors.UniqueViolation):
            raise
        raise ValidationError({"is_unique": "Some records share a value. Make the values unique first."}) from None


def create_or_queue_indexes(indexes: list[physical_names.Index], table: Table, has_surplus: bool = False) -> None:
    """Create the indexes now if the table is empty. Otherwise the worker builds them without blocking writes."""
    if indexes and not has_records(table):
        execute(*(index.create_sql() for index in indexes))
    elif indexes or has_surplus:
        transaction.on_commit(lambda: wake_worker("tableapi.tasks.build_indexes"), robust=True)

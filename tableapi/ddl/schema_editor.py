"""Changes tables in the database: one change at a time, without blocking callers."""

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

from system.background.task_dispatch import wake
from system.errors import Unavailable
from tableapi.catalogue.definitions import plain_name
from tableapi.ddl import physical_names

if TYPE_CHECKING:
    from tableapi.models import Column, Table

LOCK = 7_301_010
# A waiting ALTER makes every later SELECT wait behind it (measured: 5.1 s), so it gives up soon and comes again.
LOCK_TIMEOUT_MS = 2_000
TRIES = 4
PAUSE_S = 0.1

# In one message, because each costs a way to the database.
GUARDED = sql.SQL("""
    SELECT set_config('servicebase.former', current_setting('lock_timeout'), true);
    SET LOCAL lock_timeout = {};
    {};
    SELECT set_config('lock_timeout', current_setting('servicebase.former'), true)
""")

_locked: ContextVar[bool] = ContextVar("locked", default=False)
_by_product: ContextVar[bool] = ContextVar("by_product", default=False)


@contextmanager
def as_product() -> Iterator[None]:
    """The product's own hand: it may touch its own tables and names."""
    token = _by_product.set(True)
    try:
        yield
    finally:
        _by_product.reset(token)


def is_product() -> bool:
    return _by_product.get()


@contextmanager
def locked() -> Iterator[None]:
    """A transaction in which nobody else designs; the lock lasts until its end."""
    if _locked.get():
        yield
        return
    with transaction.atomic():
        _patiently(sql.SQL("SELECT pg_advisory_xact_lock({})").format(LOCK))
        token = _locked.set(True)
        try:
            yield
        finally:
            _locked.reset(token)


def run(*statements: sql.Composable) -> None:
    with locked():
        for statement in statements:
            _patiently(statement)


def _patiently(statement: sql.Composable) -> None:
    for attempt in range(1, TRIES + 1):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(GUARDED.format(LOCK_TIMEOUT_MS, statement))
            return
        except Error as error:
            cause = error.__cause__
            if isinstance(cause, errors.ProgramLimitExceeded | errors.TooManyColumns):
                raise ValidationError("The database cannot hold this: too many columns, or values too long.") from error
            if isinstance(cause, errors.InsufficientPrivilege):
                raise ValidationError(
                    "The service's role in the database may not change this table; its owner may."
                ) from error
            if isinstance(cause, errors.QueryCanceled):
                raise Unavailable("This takes too long now; try again when less is going on.") from error
            if not isinstance(cause, errors.LockNotAvailable | errors.DeadlockDetected):
                raise
            if attempt == TRIES:
                raise Unavailable("The table is in use; nothing was changed. Try again shortly.") from error
        time.sleep(PAUSE_S * attempt)


def has_records(table: Table) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT EXISTS (SELECT FROM {})").format(place(table)))
        return bool(cursor.fetchone()[0])


def count_values(column: Column) -> int:
    """How many records have a value in the column."""
    name = sql.Identifier(column.physical)
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT count({}) FROM {}").format(name, place(column.table)))
        return int(cursor.fetchone()[0])


def has_longer_text(column: Column, most: int) -> bool:
    """Whether a record holds a text of more characters, of a formatted one its words. Bytes are asked first: they are
    known without unpacking. A table that is too large to be looked through in a request counts as having none."""
    words: sql.Composable = sql.Identifier(column.physical)
    if column.column_type.is_html:
        words = sql.SQL("coalesce({}, {})").format(sql.Identifier(plain_name(column.pk)), words)
    found = sql.SQL("SELECT EXISTS (SELECT 1 FROM {} WHERE octet_length({words}) > %s AND length({words}) > %s)")
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(found.format(place(column.table), words=words), [most, most])
            return bool(cursor.fetchone()[0])
    except OperationalError as error:
        if not isinstance(error.__cause__, errors.QueryCanceled):
            raise
        return False


def place(table: Table) -> sql.Identifier:
    return sql.Identifier("public" if table.is_system else physical_names.SCHEMA, table.name)


ROOT = sql.SQL("""
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
CHILD = sql.SQL("CREATE TABLE {table} (sys_id {id} PRIMARY KEY REFERENCES {parent} (sys_id) ON DELETE CASCADE)")


def make_table(table: Table) -> None:
    if table.parent is None:
        run(ROOT.format(table=place(table), id=physical_names.ID, table_id=table.pk), *_index_by_time(table))
        return
    run(CHILD.format(table=place(table), id=physical_names.ID, parent=place(table.parent)))
    root = table.root
    make_or_send([physical_names.family_index(root.pk, root.name)], root)


def _index_by_time(table: Table) -> Iterator[sql.Composable]:
    for letter, column in (("C", "sys_created_at"), ("D", "sys_updated_at")):
        yield sql.SQL("CREATE INDEX {} ON {} ({}, sys_id)").format(
            sql.Identifier(f"{letter}{table.pk}"), place(table), sql.Identifier(column)
        )


def make_sequence(table: Table) -> None:
    run(sql.SQL("CREATE SEQUENCE IF NOT EXISTS {}").format(_sequence(table)))


def _sequence(table: Table) -> sql.Identifier:
    return sql.Identifier(physical_names.SCHEMA, physical_names.sequence(table.pk))


def drop_table(table: Table) -> None:
    """Drop an empty one; a record that somebody writes meanwhile makes it stay."""
    run(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(place(table)))
    if has_records(table):
        raise ValidationError(f"{table.name} has records; delete these first.")
    run(
        sql.SQL("DROP TABLE {}").format(place(table)),
        sql.SQL("DROP SEQUENCE IF EXISTS {}").format(_sequence(table)),
    )


def make_columns(table: Table, columns: Sequence[Column]) -> None:
    parts = [part for column in columns for part in _parts(column)]
    run(sql.SQL("ALTER TABLE {} {}").format(place(table), sql.SQL(", ").join(parts)))
    for column in columns:
        if column.is_unique:
            make_unique(column)
    make_or_send([index for column in columns for index in physical_names.wanted_indexes(column, table.name)], table)


def _parts(column: Column) -> Iterator[sql.Composable]:
    add = sql.SQL("ADD COLUMN {} {}")
    kept = add.format(sql.Identifier(column.physical), sql.SQL(column.column_type.definition))
    if column.column_type.is_reference and column.reference_table is not None:
        # Empty in every record that is there, so nothing is looked through.
        kept += sql.SQL(" CONSTRAINT {} REFERENCES {} (sys_id) ON DELETE SET NULL").format(
            sql.Identifier(f"F{column.pk}"), place(column.reference_table)
        )
    yield kept
    if column.column_type.is_html:
        yield add.format(sql.Identifier(plain_name(column.pk)), sql.SQL("text"))


def change_column(column: Column, before: Column) -> None:
    """Do what changed; the type changes only in ways in which no record is written anew."""
    table = column.table
    wanted = list(physical_names.wanted_indexes(column, table.name))
    former = [] if column.type != before.type else list(physical_names.wanted_indexes(before, table.name))
    if column.type != before.type:
        if column.column_type.is_html:
            text = sql.SQL("ALTER TABLE {} ADD COLUMN {} text")
            run(text.format(place(table), sql.Identifier(plain_name(column.pk))))
        # They hold other values now, under the same name; and the old one would refuse a long text.
        run(*(index.drop() for index in physical_names.wanted_indexes(before, table.name)))
    if column.is_unique and not before.is_unique:
        make_unique(column)
    if before.is_unique and not column.is_unique:
        run(physical_names.unique_index(before, table.name).drop())
    had, has = {index.name for index in former}, {index.name for index in wanted}
    make_or_send([index for index in wanted if index.name not in had], table, is_surplus=bool(had - has))


def drop_column(column: Column) -> None:
    names = [column.physical, plain_name(column.pk)] if column.column_type.is_html else [column.physical]
    parts = [sql.SQL("DROP COLUMN IF EXISTS {}").format(sql.Identifier(name)) for name in names]
    run(sql.SQL("ALTER TABLE IF EXISTS {} {}").format(place(column.table), sql.SQL(", ").join(parts)))


def make_unique(column: Column) -> None:
    try:
        run(physical_names.unique_index(column, column.table.name).create())
    except IntegrityError as error:
        if not isinstance(error.__cause__, errors.UniqueViolation):
            raise
        raise ValidationError({"is_unique": "Some records have the same value; make them differ first."}) from None


def make_or_send(wanted: list[physical_names.Index], table: Table, is_surplus: bool = False) -> None:
    """In an empty table an index costs nothing; in a full one the worker builds it while records are written."""
    if wanted and not has_records(table):
        run(*(index.create() for index in wanted))
    elif wanted or is_surplus:
        transaction.on_commit(lambda: wake("tableapi.tasks.build_indexes"), robust=True)

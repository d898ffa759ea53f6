"""Re-encrypts every stored secret with the newest key, so that an old key can be removed.

    columns of models ──┐
    deferred records    ├──▶ readable? not the newest key? ──▶ encrypted again, unless changed concurrently
    designed columns  ──┘

Encrypted columns are declared by `encrypted_columns` of a model or by the type of a designed column.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from psycopg import sql

from system import encryption
from system.plain_sql import fetch_rows, run_statement
from tableapi.catalogue.column_type import Storage
from tableapi.catalogue.column_types import names_where
from tableapi.models import Column, DeferredRecord

BATCH_SIZE = 500
ENCRYPTED_TYPES = names_where(lambda row: row.storage is Storage.ENCRYPTED)
NEXT_SECRETS_SQL = sql.SQL(
    "SELECT {key}, {column} FROM {table} WHERE {column} <> '' AND {key} > %s ORDER BY {key} LIMIT %s"
)
REPLACE_SECRET_SQL = sql.SQL("UPDATE {table} SET {column} = %s WHERE {key} = %s AND {column} = %s")

Rows = list[tuple[Any, str]]


@dataclass(frozen=True)
class SecretLocation:
    """A column with secrets: how to read the secrets after a key, and how to replace one."""

    name: str
    first: Any
    after: Callable[[Any], Rows]
    replace: Callable[[Any, str, str], None]


@dataclass(frozen=True)
class ReencryptionResult:
    """How many secrets a location has, how many were encrypted again, and which could not be decrypted."""

    name: str
    count: int
    reencrypted: int
    unreadable: tuple[str, ...]


def reencrypt_all() -> Iterator[ReencryptionResult]:
    # In this order: deferred records that are created in the meantime are found in their table.
    for locations in (model_locations, deferred_locations, designed_locations):
        for location in locations():
            yield reencrypt(location)


def reencrypt(location: SecretLocation) -> ReencryptionResult:
    count, reencrypted, unreadable, last = 0, 0, [], location.first
    while rows := location.after(last):
        for key, stored in rows:
            try:
                if not encryption.uses_newest_key(stored):
                    location.replace(key, stored, encryption.rotate(stored))
                    reencrypted += 1
            except encryption.DecryptionFailed:
                unreadable.append(str(key))
        count, last = count + len(rows), rows[-1][0]
    return ReencryptionResult(location.name, count, reencrypted, tuple(unreadable))


def model_locations() -> Iterator[SecretLocation]:
    for model in apps.get_models():
        for column in sorted(getattr(model, "encrypted_columns", ())):
            yield _column_location("public", model._meta.db_table, model._meta.pk.attname, column)


def designed_locations() -> Iterator[SecretLocation]:
    secret = Column.objects.filter(type__in=ENCRYPTED_TYPES, table__is_system=False)
    for column in secret.select_related("table").order_by("table__name", "name"):
        yield _column_location("records", column.table.name, "sys_id", column.name)


def _column_location(schema: str, table: str, key: str, column: str) -> SecretLocation:
    """Without hooks, versions and history, because the secret itself does not change."""
    names = {"table": sql.Identifier(schema, table), "key": sql.Identifier(key), "column": sql.Identifier(column)}

    def after(last: Any) -> Rows:
        return fetch_rows(NEXT_SECRETS_SQL.format(**names), [last, BATCH_SIZE])

    def replace(key: Any, old: str, new: str) -> None:
        run_statement(REPLACE_SECRET_SQL.format(**names), [new, key, old])

    return SecretLocation(f"{table}.{column}", "", after, replace)


def deferred_locations() -> Iterator[SecretLocation]:
    """Deferred records hold their values in the form in which they will be stored."""
    tables: dict[str, set[str]] = {}
    for column in Column.objects.filter(type__in=ENCRYPTED_TYPES, table__is_system=False).select_related("table"):
        tables_with_column = (column.table, *column.table.descendants)
        tables.setdefault(column.name, set()).update(table.name for table in tables_with_column)
    for name, table_names in sorted(tables.items()):
        yield _deferred_location(name, table_names)


def _deferred_location(column: str, tables: set[str]) -> SecretLocation:
    deferred = DeferredRecord.objects.filter(table__in=tables, values__has_key=column).order_by("pk")

    def after(last: Any) -> Rows:
        return [(row.pk, row.values[column]) for row in deferred.filter(pk__gt=last)[:BATCH_SIZE]]

    def replace(key: Any, old: str, new: str) -> None:
        for row in DeferredRecord.objects.filter(pk=key):
            if row.values.get(column) == old:
                unchanged = DeferredRecord.objects.filter(pk=key, values=row.values)
                unchanged.update(values={**row.values, column: new})

    return SecretLocation(f"deferred records, {column}", 0, after, replace)

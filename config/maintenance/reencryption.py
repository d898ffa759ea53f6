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
from tableapi.catalogue.column_type import StorageFormat
from tableapi.catalogue.column_types import type_names_where
from tableapi.models import Column, DeferredRecord

BATCH_SIZE = 500
ENCRYPTED_TYPES = type_names_where(lambda row: row.storage is StorageFormat.ENCRYPTED)
NEXT_SECRETS_SQL = sql.SQL(
    "SELECT {key}, {column} FROM {table} WHERE {column} <> '' AND {key} > %s ORDER BY {key} LIMIT %s"
)
REPLACE_SECRET_SQL = sql.SQL("UPDATE {table} SET {column} = %s WHERE {key} = %s AND {column} = %s")

Rows = list[tuple[Any, str]]


@dataclass(frozen=True)
class SecretLocation:
    """A column with secrets, and functions that read the rows after a primary key and replace a secret."""

    name: str
    first_key: Any
    rows_after: Callable[[Any], Rows]
    replace: Callable[[Any, str, str], None]


@dataclass(frozen=True)
class ReencryptionResult:
    """The number of secrets in a location, how many were re-encrypted, and which could not be decrypted."""

    name: str
    secret_count: int
    reencrypted_count: int
    failed_keys: tuple[str, ...]


def reencrypt_all() -> Iterator[ReencryptionResult]:
    # Tables come last, because deferred records may become records of their table in the meantime.
    for locations in (model_locations, deferred_locations, designed_locations):
        for location in locations():
            yield reencrypt(location)


def reencrypt(location: SecretLocation) -> ReencryptionResult:
    secret_count, reencrypted_count, failed_keys, last_key = 0, 0, [], location.first_key
    while rows := location.rows_after(last_key):
        for key, ciphertext in rows:
            try:
                if not encryption.uses_newest_key(ciphertext):
                    location.replace(key, ciphertext, encryption.rotate(ciphertext))
                    reencrypted_count += 1
            except encryption.DecryptionFailed:
                failed_keys.append(str(key))
        secret_count, last_key = secret_count + len(rows), rows[-1][0]
    return ReencryptionResult(location.name, secret_count, reencrypted_count, tuple(failed_keys))


def model_locations() -> Iterator[SecretLocation]:
    for model in apps.get_models():
        for column in sorted(getattr(model, "encrypted_columns", ())):
            yield _column_location("public", model._meta.db_table, model._meta.pk.attname, column)


def designed_locations() -> Iterator[SecretLocation]:
    secret_columns = Column.objects.filter(type__in=ENCRYPTED_TYPES, table__is_system=False)
    for column in secret_columns.select_related("table").order_by("table__name", "name"):
        yield _column_location("records", column.table.name, "sys_id", column.name)


def _column_location(schema: str, table: str, key: str, column: str) -> SecretLocation:
    """Secrets are replaced without hooks, versions and history, because only their encryption changes."""
    names = {"table": sql.Identifier(schema, table), "key": sql.Identifier(key), "column": sql.Identifier(column)}

    def rows_after(last_key: Any) -> Rows:
        return fetch_rows(NEXT_SECRETS_SQL.format(**names), [last_key, BATCH_SIZE])

    def replace(key: Any, old: str, new: str) -> None:
        run_statement(REPLACE_SECRET_SQL.format(**names), [new, key, old])

    return SecretLocation(f"{table}.{column}", "", rows_after, replace)


def deferred_locations() -> Iterator[SecretLocation]:
    """The secrets in deferred records, whose values already have the form in which they will be stored."""
    tables_by_column: dict[str, set[str]] = {}
    for column in Column.objects.filter(type__in=ENCRYPTED_TYPES, table__is_system=False).select_related("table"):
        tables_with_column = (column.table, *column.table.descendants)
        tables_by_column.setdefault(column.name, set()).update(table.name for table in tables_with_column)
    for name, table_names in sorted(tables_by_column.items()):
        yield _deferred_location(name, table_names)


def _deferred_location(column: str, table_names: set[str]) -> SecretLocation:
    deferred_records = DeferredRecord.objects.filter(table__in=table_names, values__has_key=column).order_by("pk")

    def rows_after(last_key: Any) -> Rows:
        return [(row.pk, row.values[column]) for row in deferred_records.filter(pk__gt=last_key)[:BATCH_SIZE]]

    def replace(key: Any, old: str, new: str) -> None:
        for row in DeferredRecord.objects.filter(pk=key):
            if row.values.get(column) == old:
                unchanged_records = DeferredRecord.objects.filter(pk=key, values=row.values)
                unchanged_records.update(values={**row.values, column: new})

    return SecretLocation(f"deferred records, {column}", 0, rows_after, replace)

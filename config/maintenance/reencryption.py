"""Re-encrypts every stored secret with the newest key, so that an old key can be removed.

    columns of models ──┐
    records to come     ├──▶ readable? newest already? ──▶ written anew, unless somebody changed it meanwhile
    designed columns  ──┘

What a column holds is said where the column is: `encrypted_columns` of a model, the type of a designed column.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connection, models
from psycopg import sql

from system import encryption
from tableapi.catalogue.column_type import Storage
from tableapi.catalogue.column_types import names_where
from tableapi.models import Column, DeferredRecord

AT_ONCE = 500
ENCRYPTED_TYPES = names_where(lambda row: row.storage is Storage.ENCRYPTED)
NEXT = sql.SQL(
    "SELECT sys_id, {column} FROM records.{table} WHERE {column} <> '' AND sys_id > %s ORDER BY sys_id LIMIT %s"
)
REPLACE = sql.SQL("UPDATE records.{table} SET {column} = %s WHERE sys_id = %s AND {column} = %s")

Rows = list[tuple[Any, str]]


@dataclass(frozen=True)
class Place:
    """Where secrets are stored: how to read those after a key, and how to put another in the place of one."""

    name: str
    first: Any
    after: Callable[[Any], Rows]
    replace: Callable[[Any, str, str], None]


@dataclass(frozen=True)
class Outcome:
    """How many secrets a place holds, how many of them were written anew, and which could not be read."""

    name: str
    found: int
    renewed: int
    unreadable: tuple[str, ...]


def everything() -> Iterator[Outcome]:
    """Bring all of them under the newest key, one place after the other."""
    for places in (of_models, of_deferred, of_designed):  # what is created meanwhile is met in its table
        for place in places():
            yield bring_up_to_date(place)


def bring_up_to_date(place: Place) -> Outcome:
    found, renewed, unreadable, last = 0, 0, [], place.first
    while rows := place.after(last):
        for key, stored in rows:
            try:
                if not encryption.is_newest(stored):
                    place.replace(key, stored, encryption.rotate(stored))
                    renewed += 1
            except encryption.Undecipherable:
                unreadable.append(str(key))
        found, last = found + len(rows), rows[-1][0]
    return Outcome(place.name, found, renewed, tuple(unreadable))


def of_models() -> Iterator[Place]:
    for model in apps.get_models():
        for column in sorted(getattr(model, "encrypted_columns", ())):
            yield _of_model(model, column)


def _of_model(model: type[models.Model], column: str) -> Place:
    """Past hooks, versions and history: the secret is the same as before."""
    stored = model._base_manager.exclude(**{column: ""}).order_by("pk")

    def after(last: Any) -> Rows:
        return list(stored.filter(pk__gt=last).values_list("pk", column)[:AT_ONCE])

    def replace(key: Any, old: str, new: str) -> None:
        model._base_manager.filter(pk=key, **{column: old}).update(**{column: new})

    return Place(f"{model._meta.db_table}.{column}", "", after, replace)


def of_designed() -> Iterator[Place]:
    secret = Column.objects.filter(type__in=ENCRYPTED_TYPES, table__is_system=False)
    for column in secret.select_related("table").order_by("table__name", "name"):
        yield _of_designed(column.table.name, column.name)


def _of_designed(table: str, column: str) -> Place:
    names = {"table": sql.Identifier(table), "column": sql.Identifier(column)}

    def after(last: Any) -> Rows:
        with connection.cursor() as cursor:
            cursor.execute(NEXT.format(**names), [last, AT_ONCE])
            return list(cursor.fetchall())

    def replace(key: Any, old: str, new: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(REPLACE.format(**names), [new, key, old])

    return Place(f"{table}.{column}", "", after, replace)


def of_deferred() -> Iterator[Place]:
    """Records that were accepted and are not created yet hold their values as the database will take them."""
    tables: dict[str, set[str]] = {}
    for column in Column.objects.filter(type__in=ENCRYPTED_TYPES, table__is_system=False).select_related("table"):
        having = (column.table, *column.table.descendants)
        tables.setdefault(column.name, set()).update(table.name for table in having)
    for name, tables_with_it in sorted(tables.items()):
        yield _of_deferred(name, tables_with_it)


def _of_deferred(column: str, tables: set[str]) -> Place:
    waiting = DeferredRecord.objects.filter(table__in=tables, values__has_key=column).order_by("pk")

    def after(last: Any) -> Rows:
        return [(row.pk, row.values[column]) for row in waiting.filter(pk__gt=last)[:AT_ONCE]]

    def replace(key: Any, old: str, new: str) -> None:
        for row in DeferredRecord.objects.filter(pk=key):
            if row.values.get(column) == old:
                same = DeferredRecord.objects.filter(pk=key, values=row.values)
                same.update(values={**row.values, column: new})

    return Place(f"records to come, {column}", 0, after, replace)

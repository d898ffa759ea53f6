"""Runs statements: the only room that reads records from the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    DataError,
    NotSupportedError,
    ProgrammingError,
    connections,
    transaction,
)

from system.errors import ServiceError, Unavailable
from tableapi.catalogue.definitions import Catalogue
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import Inputs

from . import catalogue_loader

Answer = TypeVar("Answer")
Row = tuple[Any, ...]
Bytes = tuple[bytes | None, ...]

REPLICA = "replica"
TRIES = 3


class CatalogueChanged(Exception):
    """The catalogue was changed after this process read it: what was worked out may be wrong, and is thrown away."""


@contextmanager
def cursor(
    alias: str = DEFAULT_DB_ALIAS, kind: type[psycopg.Cursor[Row]] = psycopg.Cursor
) -> Iterator[psycopg.Cursor[Row]]:
    """A cursor that binds on the server, so that statements are prepared; Django's own writes values into the text."""
    connection = connections[alias]
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    with connection.wrap_database_errors, kind(connection.connection) as found:
        yield found


def fetch(statement: Statement, inputs: Inputs, alias: str = DEFAULT_DB_ALIAS) -> list[Row]:
    with _run(statement, inputs, alias) as found:
        return found.fetchall()


def fetch_bytes(statement: Statement, inputs: Inputs, alias: str = DEFAULT_DB_ALIAS) -> list[Bytes]:
    """Values as the database wrote them: its JSON goes into the answer neither parsed nor decoded, in memory once."""
    with _run(statement, inputs, alias) as found:
        result = found.pgresult
        assert result is not None  # a SELECT has one
        columns = range(result.nfields)
        return [tuple([result.get_value(row, column) for column in columns]) for row in range(result.ntuples)]


@contextmanager
def _run(statement: Statement, inputs: Inputs, alias: str) -> Iterator[psycopg.Cursor[Row]]:
    # Raw: the driver reads longer statements anew for placeholders each time; ours have PostgreSQL's own.
    with cursor(alias, psycopg.RawCursor) as found:
        found.execute(statement.encoded(inputs.version), statement.values(inputs))
        yield found


def without_version(rows: list[Row], catalogue: Catalogue) -> list[Row]:
    """The rows of a statement whose first column is the catalogue's version, without it."""
    told = rows[0][0]
    if told is None or int(told) != catalogue.version:
        raise CatalogueChanged
    return [row[1:] for row in rows]


def with_current_catalogue(work: Callable[[Catalogue], Answer], *, writes: bool = False) -> Answer:
    """Work on one frozen catalogue; again, when it turns out that it was changed before the request came.

    A statement tells the version it ran under. Where none ran to its end, the version is asked: a column that is
    unknown here may be there by now.
    """
    catalogue = catalogue_loader.cached_catalogue()
    for _ in range(TRIES):
        try:
            if not writes:
                return work(catalogue)
            with transaction.atomic():
                return work(catalogue)
        except CatalogueChanged:
            catalogue = catalogue_loader.reload_if_changed()
        except (ServiceError, ProgrammingError, NotSupportedError, DatabaseError) as error:
            if not _may_be_stale(error):
                raise
            newest = catalogue_loader.reload_if_changed()
            if newest.version == catalogue.version:
                raise
            catalogue = newest
    raise Unavailable


def _may_be_stale(error: Exception) -> bool:
    if isinstance(error, ServiceError):
        return error.status < 500
    # A table or column is gone or of another type, or the plan of a prepared statement is.
    return isinstance(error, ProgrammingError | NotSupportedError | DataError)

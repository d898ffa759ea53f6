"""Runs statements: the only module that reads records from the database."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection
from psycopg import sql

from system import database_statements
from tableapi.catalogue.definitions import Catalogue
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import Inputs

Row = tuple[Any, ...]
ByteRow = tuple[bytes | None, ...]

REPLICA = "replica"
VERSION_STATEMENT = Statement("SELECT version FROM public.tableapi_state", ())


class CatalogueChanged(Exception):
    """The catalogue was changed after this process loaded it; what was derived from it may be wrong."""


def fetch(statement: Statement, inputs: Inputs, alias: str = DEFAULT_DB_ALIAS) -> list[Row]:
    return database_statements.run_sql(statement.encode(inputs.version), statement.values(inputs), alias).rows()


def fetch_bytes(statement: Statement, inputs: Inputs, alias: str = DEFAULT_DB_ALIAS) -> list[ByteRow]:
    return database_statements.run_sql(statement.encode(inputs.version), statement.values(inputs), alias).byte_rows()


def quote_value(value: Any) -> str:
    """For a statement that takes no parameters."""
    connection.ensure_connection()
    return sql.Literal(value).as_string(connection.connection)


@contextmanager
def copy(statement: str, limit_s: int) -> Iterator[Iterable[Any]]:
    """The lines of a COPY statement; in a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = '{limit_s}s'")
        with connection.wrap_database_errors, cursor.copy(statement) as lines:
            yield lines


def strip_version(rows: list[Row], catalogue: Catalogue) -> list[Row]:
    """The rows without their first column, the catalogue's version; raises CatalogueChanged if it is another one."""
    version = rows[0][0]
    if version is None or int(version) != catalogue.version:
        raise CatalogueChanged
    return [row[1:] for row in rows]


def catalogue_version(inputs: Inputs, alias: str = DEFAULT_DB_ALIAS) -> int:
    ((version,),) = fetch(VERSION_STATEMENT, inputs, alias)
    return int(version)


def check_version(inputs: Inputs) -> None:
    """Raise CatalogueChanged if the primary has another version of the catalogue."""
    if catalogue_version(inputs) != inputs.version:
        raise CatalogueChanged

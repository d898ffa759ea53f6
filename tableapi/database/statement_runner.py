"""Runs statements: the only module that reads records from the database."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection
from psycopg import sql

from system import database_statements
from tableapi.catalogue.definitions import Catalogue
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import StatementInputs

Row = tuple[Any, ...]
ByteRow = tuple[bytes | None, ...]

REPLICA = "replica"
VERSION_STATEMENT = Statement("SELECT version FROM public.tableapi_state", ())


class CatalogueChanged(Exception):
    """The catalogue changed after this process loaded it, so plans and statements may be wrong."""


def fetch(statement: Statement, inputs: StatementInputs, alias: str = DEFAULT_DB_ALIAS) -> list[Row]:
    return database_statements.run_sql(statement.encode(inputs.version), statement.values(inputs), alias).rows()


def fetch_bytes(statement: Statement, inputs: StatementInputs, alias: str = DEFAULT_DB_ALIAS) -> list[ByteRow]:
    return database_statements.run_sql(statement.encode(inputs.version), statement.values(inputs), alias).byte_rows()


def quote_value(value: Any) -> str:
    """Quote a value for a statement that takes no parameters."""
    connection.ensure_connection()
    return sql.Literal(value).as_string(connection.connection)


@contextmanager
def copy_lines(statement: str, timeout_s: int) -> Iterator[Iterable[Any]]:
    """Yield the lines of a COPY statement. Requires a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = '{timeout_s}s'")
        with connection.wrap_database_errors, cursor.copy(statement) as lines:
            yield lines


def strip_version(rows: list[Row], catalogue: Catalogue) -> list[Row]:
    """Remove the first column, the catalogue version, from the rows. Raises CatalogueChanged if it differs."""
    version = rows[0][0]
    if version is None or int(version) != catalogue.version:
        raise CatalogueChanged
    return [row[1:] for row in rows]


def catalogue_version(inputs: StatementInputs, alias: str = DEFAULT_DB_ALIAS) -> int:
    ((version,),) = fetch(VERSION_STATEMENT, inputs, alias)
    return int(version)


def check_version(inputs: StatementInputs) -> None:
    """Raise CatalogueChanged if the primary has another version of the catalogue."""
    if catalogue_version(inputs) != inputs.version:
        raise CatalogueChanged

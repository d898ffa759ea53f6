"""Runs statements: the only module that reads records from the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS

from system.database_cursor import bound_cursor
from tableapi.catalogue.definitions import Catalogue
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import Inputs

Row = tuple[Any, ...]
Bytes = tuple[bytes | None, ...]

REPLICA = "replica"
VERSION = Statement("SELECT version FROM public.tableapi_state", ())


class CatalogueChanged(Exception):
    """The catalogue was changed after this process loaded it; what was derived from it may be wrong."""


def fetch(statement: Statement, inputs: Inputs, alias: str = DEFAULT_DB_ALIAS) -> list[Row]:
    with _run(statement, inputs, alias) as executed:
        return executed.fetchall()


def fetch_bytes(statement: Statement, inputs: Inputs, alias: str = DEFAULT_DB_ALIAS) -> list[Bytes]:
    """Values as the database returns them: its JSON is not parsed, decoded or copied."""
    with _run(statement, inputs, alias) as executed:
        result = executed.pgresult
        assert result is not None  # a SELECT has one
        columns = range(result.nfields)
        return [tuple([result.get_value(row, column) for column in columns]) for row in range(result.ntuples)]


@contextmanager
def _run(statement: Statement, inputs: Inputs, alias: str) -> Iterator[psycopg.Cursor[Row]]:
    # Raw, with PostgreSQL's own placeholders: the driver would parse longer statements for its placeholders each time.
    with bound_cursor(alias, psycopg.RawCursor) as raw_cursor:
        raw_cursor.execute(statement.encoded(inputs.version), statement.values(inputs))
        yield raw_cursor


def without_version(rows: list[Row], catalogue: Catalogue) -> list[Row]:
    """The rows without their first column, the catalogue's version; raises CatalogueChanged if it is another one."""
    version = rows[0][0]
    if version is None or int(version) != catalogue.version:
        raise CatalogueChanged
    return [row[1:] for row in rows]


def catalogue_version(inputs: Inputs, alias: str = DEFAULT_DB_ALIAS) -> int:
    ((version,),) = fetch(VERSION, inputs, alias)
    return int(version)


def check_version(inputs: Inputs) -> None:
    """Raise CatalogueChanged if the primary has another version of the catalogue."""
    if catalogue_version(inputs) != inputs.version:
        raise CatalogueChanged

"""Backup and restore of the whole database with PostgreSQL's tools.

A backup ends with a checksum, because PostgreSQL's tools, which ignore it, do not detect every changed byte. A restore
fills a new database and then swaps the names of the two databases, so a damaged file changes nothing, and the old
database is kept under a dated name. Secrets in a backup are encrypted; their keys are stored separately.
"""

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any

import psycopg
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone
from psycopg import conninfo, sql

from config.runtime.embedded_servers import last_line, postgres_tool

MAINTENANCE_DATABASE = "postgres"
CHECKSUM_PREFIX = b"\nservicebase sha256 "
CHECKSUM_BYTES = len(CHECKSUM_PREFIX) + 64
LOCALE_PROVIDERS = {"b": ("builtin", "BUILTIN_LOCALE"), "i": ("icu", "ICU_LOCALE"), "c": ("libc", "LOCALE")}


def connection_info(database: str | None = None) -> tuple[str, dict[str, str]]:
    """A connection string, and an environment that contains the password."""
    parameters: dict[str, Any] = connection.get_connection_params()
    names = ("host", "port", "user", "dbname", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout")
    dsn_parameters = {name: parameters[name] for name in names if parameters.get(name)}
    if database:
        dsn_parameters["dbname"] = database
    environ = dict(os.environ)
    if parameters.get("password"):
        environ["PGPASSWORD"] = str(parameters["password"])  # all users of the machine can read a command line
    return conninfo.make_conninfo(**dsn_parameters), environ


def run_tool(tool: str, *arguments: str, database: str | None = None) -> None:
    dsn, environ = connection_info(database)
    process = subprocess.run(
        [postgres_tool(tool), "--dbname", dsn, "--no-password", *arguments],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode != 0:
        raise CommandError(f"{tool} failed: {last_line(process.stderr)}")


def write_backup(target: Path) -> None:
    """Write a backup; it gets its final name when it is complete."""
    unfinished_file = target.with_name(target.name + ".unfinished")
    try:
        unfinished_file.touch(mode=0o600)
        run_tool("pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--file", str(unfinished_file))
        with unfinished_file.open("ab") as archive:
            archive.write(checksum_line(unfinished_file, unfinished_file.stat().st_size))
        unfinished_file.replace(target)
    except OSError as error:
        raise CommandError(f"{target} cannot be written: {error.strerror}.") from None
    finally:
        unfinished_file.unlink(missing_ok=True)


def checksum_line(archive: Path, length: int) -> bytes:
    """The last line of a backup: the checksum of the bytes before it."""
    digest = hashlib.sha256()
    with archive.open("rb") as file:
        while length > 0 and (chunk := file.read(min(length, 1 << 20))):
            digest.update(chunk)
            length -= len(chunk)
    return CHECKSUM_PREFIX + digest.hexdigest().encode()


def is_complete(archive: Path) -> bool:
    length = archive.stat().st_size - CHECKSUM_BYTES
    if length < 0:
        return False
    with archive.open("rb") as file:
        file.seek(length)
        return file.read() == checksum_line(archive, length)


def restore_backup(source: Path) -> str:
    """Replace the database with the backup; returns the name under which the old database is kept."""
    if not source.is_file():
        raise CommandError(f"The file {source} does not exist.")
    if not is_complete(source):
        raise CommandError(f"{source} is damaged or is not a backup of this service.")
    name = str(connection.get_connection_params()["dbname"])
    new_name, old_name = f"{name}_restoring", f"{name}_until_{timezone.now():%Y%m%d_%H%M%S}"
    connection.close()
    dsn, environ = connection_info(MAINTENANCE_DATABASE)
    try:
        with psycopg.connect(dsn, password=environ.get("PGPASSWORD"), autocommit=True) as session:
            execute(session, "DROP DATABASE IF EXISTS {} WITH (FORCE)", new_name)
            create_database_like(session, name, new_name)
            try:
                run_tool(
                    "pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", str(source), database=new_name
                )
                mark_changes_committed(new_name)
                swap_databases(session, name, new_name, old_name)
            except (CommandError, psycopg.Error):
                execute(session, "DROP DATABASE IF EXISTS {} WITH (FORCE)", new_name)
                raise
    except psycopg.Error as error:
        raise CommandError(f"The database server reported an error: {last_line(str(error))}") from None
    return old_name


def create_database_like(session: "psycopg.Connection[Any]", name: str, new_name: str) -> None:
    """Create an empty database with the encoding and locale of the old one, because the defaults may differ."""
    row = session.execute(
        "SELECT pg_encoding_to_char(encoding), datcollate, datctype, datlocprovider, coalesce(datlocale, datcollate) "
        "FROM pg_database WHERE datname = %s",
        [name],
    ).fetchone()
    assert row is not None  # this database exists
    encoding, collate, ctype, provider, locale = row
    provider_name, locale_option = LOCALE_PROVIDERS[provider]
    statement = "CREATE DATABASE {} TEMPLATE template0 ENCODING {} LOCALE_PROVIDER {} {} {} LC_COLLATE {} LC_CTYPE {}"
    session.execute(
        sql.SQL(statement).format(
            sql.Identifier(new_name), sql.Literal(encoding), sql.SQL(provider_name), sql.SQL(locale_option),
            sql.Literal(locale), sql.Literal(collate), sql.Literal(ctype),
        )
    )  # fmt: skip


def mark_changes_committed(name: str) -> None:
    """Mark all changes as committed. The change feed waits for running transactions, and the transaction numbers in the
    backup are from another database, so they may be higher than those of running transactions."""
    dsn, environ = connection_info(name)
    with psycopg.connect(dsn, password=environ.get("PGPASSWORD"), autocommit=True) as session:
        if session.execute("SELECT to_regclass('public.sys_change')").fetchone() != (None,):
            session.execute("UPDATE public.sys_change SET transaction = '3'")


def swap_databases(session: "psycopg.Connection[Any]", name: str, new_name: str, old_name: str) -> None:
    with session.transaction():  # both or none, so that a database with this name always exists
        # A database with connections cannot be renamed. Clients reconnect to the new one.
        session.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        execute(session, "ALTER DATABASE {} RENAME TO {}", name, old_name)
        execute(session, "ALTER DATABASE {} RENAME TO {}", new_name, name)


def execute(session: "psycopg.Connection[Any]", statement: str, *names: str) -> None:
    session.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

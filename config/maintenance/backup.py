"""Backup and restore of the whole database with PostgreSQL's own tools.

A backup ends with its own check sum, which PostgreSQL's tools skip: they do not notice every changed byte. A restore
fills a new database beside the old one and then exchanges their names, so a damaged file changes nothing and the old
data stay under a dated name. Secrets in a backup are encrypted; their keys lie elsewhere.
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

MAINTENANCE = "postgres"
SEAL = b"\nservicebase sha256 "
SEAL_LENGTH = len(SEAL) + 64


def address(database: str | None = None) -> tuple[str, dict[str, str]]:
    """How to reach the database: connection words, and an environment that holds the password."""
    given: dict[str, Any] = connection.get_connection_params()
    kept = ("host", "port", "user", "dbname", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout")
    words = {name: given[name] for name in kept if given.get(name)}
    if database:
        words["dbname"] = database
    environ = dict(os.environ)
    if given.get("password"):
        environ["PGPASSWORD"] = str(given["password"])  # on a command line everybody on the machine could read it
    return conninfo.make_conninfo(**words), environ


def run(tool: str, *words: str, database: str | None = None) -> None:
    where, environ = address(database)
    done = subprocess.run(
        [postgres_tool(tool), "--dbname", where, "--no-password", *words],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise CommandError(f"{tool} failed: {last_line(done.stderr)}")


def write(target: Path) -> None:
    """A backup under its final name is a whole one."""
    unfinished = target.with_name(target.name + ".unfinished")
    try:
        unfinished.touch(mode=0o600)
        run("pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--file", str(unfinished))
        with unfinished.open("ab") as archive:
            archive.write(seal_of(unfinished, unfinished.stat().st_size))
        unfinished.replace(target)
    except OSError as error:
        raise CommandError(f"{target} cannot be written: {error.strerror}.") from None
    finally:
        unfinished.unlink(missing_ok=True)


def seal_of(archive: Path, length: int) -> bytes:
    """The last line of a backup: the check sum of the bytes before it."""
    digest = hashlib.sha256()
    with archive.open("rb") as file:
        while length > 0 and (piece := file.read(min(length, 1 << 20))):
            digest.update(piece)
            length -= len(piece)
    return SEAL + digest.hexdigest().encode()


def is_whole(archive: Path) -> bool:
    length = archive.stat().st_size - SEAL_LENGTH
    if length < 0:
        return False
    with archive.open("rb") as file:
        file.seek(length)
        return file.read() == seal_of(archive, length)


def restore(source: Path) -> str:
    """Put the backup in the database's place; returns the name under which the old one is kept."""
    if not source.is_file():
        raise CommandError(f"There is no file {source}.")
    if not is_whole(source):
        raise CommandError(f"{source} is damaged, or not a backup of this service.")
    name = str(connection.get_connection_params()["dbname"])
    filling, former = f"{name}_restoring", f"{name}_until_{timezone.now():%Y%m%d_%H%M%S}"
    connection.close()
    where, environ = address(MAINTENANCE)
    try:
        with psycopg.connect(where, password=environ.get("PGPASSWORD"), autocommit=True) as link:
            execute(link, "DROP DATABASE IF EXISTS {} WITH (FORCE)", filling)
            create_like(link, name, filling)
            try:
                run("pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", str(source), database=filling)
                exchange(link, name, filling, former)
            except (CommandError, psycopg.Error):
                execute(link, "DROP DATABASE IF EXISTS {} WITH (FORCE)", filling)
                raise
    except psycopg.Error as error:
        raise CommandError(f"The database server refused: {last_line(str(error))}") from None
    return former


def create_like(link: "psycopg.Connection[Any]", name: str, new: str) -> None:
    """An empty database that stores and sorts text as the old one does; the server's own default may be another."""
    row = link.execute(
        "SELECT pg_encoding_to_char(encoding), datcollate, datctype, datlocprovider, coalesce(datlocale, datcollate) "
        "FROM pg_database WHERE datname = %s",
        [name],
    ).fetchone()
    assert row is not None  # we are connected to it
    encoding, collate, ctype, provider, locale = row
    words, locale_name = {"b": ("builtin", "BUILTIN_LOCALE"), "i": ("icu", "ICU_LOCALE"), "c": ("libc", "LOCALE")}[
        provider
    ]
    statement = "CREATE DATABASE {} TEMPLATE template0 ENCODING {} LOCALE_PROVIDER {} {} {} LC_COLLATE {} LC_CTYPE {}"
    link.execute(
        sql.SQL(statement).format(
            sql.Identifier(new), sql.Literal(encoding), sql.SQL(words), sql.SQL(locale_name), sql.Literal(locale),
            sql.Literal(collate), sql.Literal(ctype),
        )
    )  # fmt: skip


def exchange(link: "psycopg.Connection[Any]", name: str, filling: str, former: str) -> None:
    with link.transaction():  # both or none: there is never no database of this name
        # Whoever is connected would keep the old name busy; they connect again to the new one.
        link.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        execute(link, "ALTER DATABASE {} RENAME TO {}", name, former)
        execute(link, "ALTER DATABASE {} RENAME TO {}", filling, name)


def execute(link: "psycopg.Connection[Any]", statement: str, *names: str) -> None:
    link.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

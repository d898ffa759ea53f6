"""`manage.py prepare`: brings a database to this version of the code; `up` runs it before everything else."""

import importlib.metadata
import io
import secrets
from typing import Any

import psycopg
from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser
from django.db import connection
from django.db.utils import Error

from accounts import demo, roles, setup
from accounts.models import User
from collections_app import demo_documents as demo_documents
from config.env import ConfigurationError
from config.runtime.data_folder import ADMIN_PASSWORD, DEMO_PASSWORD, write_private
from config.scheduling import schedules
from system import properties
from system.monitoring.health import OLDEST_VECTOR, pending_migrations, version
from tableapi.setup import demo_records as demo_records
from tableapi.setup import shipped_tables, system_tables

OLDEST_POSTGRES = 17
# Below these, known holes: PyJWT accepted unknown critical headers, Django had injection fixes.
OLDEST_PACKAGES = {"PyJWT": (2, 15, 1), "Django": (5, 2, 19)}
LOCK = 7_301_002  # two hosts that start at once migrate one after the other

FACTS = """
    SELECT current_setting('server_version_num')::int / 10000, current_setting('server_encoding'), pg_is_in_recovery(),
        (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
        (SELECT default_version FROM pg_available_extensions WHERE name = 'vector')
"""


class Command(BaseCommand):
    help = "Check and migrate the database, make what every installation has."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--welcome", metavar="ADDRESS", help="keep what `up` prints when it runs")

    def handle(self, *_: Any, welcome: str | None = None, **__: Any) -> None:
        refuse_old_packages()
        refuse_unfit_database()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
            try:
                self.bring_up_to_date()
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
        if welcome:
            said = io.StringIO()
            call_command("welcome", welcome, stdout=said)
            write_private(settings.DATA_FOLDER.welcome, said.getvalue())

    def bring_up_to_date(self) -> None:
        if pending_migrations():
            self.stdout.write("bringing the database up to date")
            migrate()
        # Not every new one comes with a migration.
        properties.make_rows()
        roles.create_shipped()
        system_tables.make()
        shipped_tables.make()
        schedules.make_rows()
        environment = settings.ENVIRONMENT
        setup.make(environment.admin_login, lambda: chosen_password() or kept(ADMIN_PASSWORD))
        if environment.wants_demo:
            demo.make(lambda: kept(DEMO_PASSWORD))
            demo_records.make()
            demo_documents.make()


def migrate() -> None:
    try:
        call_command("migrate", interactive=False, verbosity=0)
    except Error as error:
        cause = from_driver(error)
        if not isinstance(cause, psycopg.errors.InsufficientPrivilege):
            raise
        raise ConfigurationError(
            f"The user of DATABASE_URL may not change the database ({first_line(cause)}); run ./run manage prepare "
            "once with its owner's DATABASE_URL, or let a superuser do what is missing."
        ) from None


def from_driver(error: BaseException | None) -> psycopg.Error | None:
    """The driver's error behind one of Django's, however deep."""
    while error is not None and not isinstance(error, psycopg.Error):
        error = error.__cause__ or error.__context__
    return error


def chosen_password() -> str | None:
    """The first administrator's password as the operator set it; in production not one that everybody knows."""
    given: str | None = settings.ENVIRONMENT.admin_password
    if given and settings.ENVIRONMENT.is_production:
        try:
            validate_password(given, User(login=settings.ENVIRONMENT.admin_login))
        except ValidationError as error:
            raise ConfigurationError(f"SVC_ADMIN_PASSWORD cannot be used: {' '.join(error.messages)}") from None
    return given


def kept(name: str) -> str:
    """A random password, kept in a private file of the data folder."""
    settings.DATA_FOLDER.prepare()
    return str(settings.DATA_FOLDER.secret(name, lambda: secrets.token_urlsafe(12)))


def refuse_old_packages() -> None:
    for name, oldest in OLDEST_PACKAGES.items():
        if version(importlib.metadata.version(name)) < oldest:
            raise ConfigurationError(f"{name} must be {dotted(oldest)} or newer; start again with ./run")


def refuse_unfit_database() -> None:
    """One sentence for each way in which a database cannot be used."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(FACTS)
            major, encoding, is_replica, installed, available = cursor.fetchone()
    except Error as error:
        raise ConfigurationError(
            f"The database cannot be reached; check DATABASE_URL. It says: {first_line(error)}"
        ) from None
    if major < OLDEST_POSTGRES:
        raise ConfigurationError(f"The database is PostgreSQL {major}; version {OLDEST_POSTGRES} or newer is needed.")
    if encoding != "UTF8":
        raise ConfigurationError(
            f"The database's encoding is {encoding}; make it anew with: "
            "CREATE DATABASE servicebase TEMPLATE template0 ENCODING 'UTF8'"
        )
    if is_replica:
        raise ConfigurationError("DATABASE_URL names a replica, which cannot be written; name the primary there.")
    refuse_unfit_vector(installed, available)


def refuse_unfit_vector(installed: str | None, available: str | None) -> None:
    wanted = dotted(OLDEST_VECTOR)
    found = installed or available
    if found is None:
        raise ConfigurationError(
            f"The database has no extension vector; install pgvector {wanted} or newer on its server."
        )
    if version(found) >= OLDEST_VECTOR:
        return
    if available and version(available) >= OLDEST_VECTOR:
        raise ConfigurationError(
            f"The database still uses pgvector {found}; let its owner run: ALTER EXTENSION vector UPDATE"
        )
    raise ConfigurationError(f"The database has pgvector {found}; {wanted} or newer is needed.")


def dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "no message"

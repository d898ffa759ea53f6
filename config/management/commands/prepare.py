"""`manage.py prepare`: checks and migrates the database, and creates the built-in records."""

import importlib.metadata
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
from django.utils.version import get_version_tuple

from accounts import demo, privileges, roles
from accounts.models import User
from collections_app import demo_documents as demo_documents
from config.database import connections
from config.env import ConfigurationError
from config.maintenance import preparation
from config.runtime.data_folder import ADMIN_PASSWORD, DEMO_PASSWORD
from config.scheduling import schedules
from system import properties
from system.monitoring.health import MIN_VECTOR_VERSION, pending_migration_count
from tableapi.setup import demo_records as demo_records
from tableapi.setup import product_tables, shipped_tables

MIN_POSTGRES_VERSION = 17
# Older versions have known vulnerabilities: unknown critical headers in PyJWT, injections in Django.
MIN_PACKAGE_VERSIONS = {"PyJWT": (2, 15, 1), "Django": (5, 2, 19)}
ADVISORY_LOCK_ID = 7_301_002  # hosts that start at the same time migrate one after the other

DATABASE_PROPERTIES_SQL = """
    SELECT current_setting('server_version_num')::int / 10000, current_setting('server_encoding'), pg_is_in_recovery(),
        (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
        (SELECT default_version FROM pg_available_extensions WHERE name = 'vector')
"""


class Command(BaseCommand):
    help = "Check and migrate the database, and create the built-in records."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--if-changed", action="store_true", help="do nothing if neither the code nor the database has changed"
        )

    def handle(self, *_: Any, if_changed: bool = False, **__: Any) -> None:
        connections.reconfigure("command", settings.PROCESS_TYPE, connection.settings_dict)  # in a web server's fork
        refuse_old_packages()
        refuse_unsuitable_database()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_LOCK_ID])
            try:
                if if_changed and preparation.is_current():
                    create_administrator()  # the last one may have been removed
                else:
                    self.update_database()
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [ADVISORY_LOCK_ID])

    def update_database(self) -> None:
        preparation.delete_stamp()
        if pending_migration_count():
            self.stdout.write("updating the database")
            migrate()
        # These can be new without a migration.
        properties.store_definitions()
        create_administrator()
        product_tables.update_product_tables()
        shipped_tables.create_shipped_tables()
        schedules.update_schedules()
        is_complete = True
        if settings.ENVIRONMENT.wants_demo:
            demo.create_demo_users(lambda: stored_password(DEMO_PASSWORD))
            demo_records.create_demo_records()
            is_complete = demo_documents.load_demo_documents()
        if is_complete:
            preparation.save_stamp()


def create_administrator() -> None:
    roles.create_shipped_roles()
    privileges.create_administrator(
        settings.ENVIRONMENT.admin_login, lambda: configured_password() or stored_password(ADMIN_PASSWORD)
    )


def migrate() -> None:
    try:
        call_command("migrate", interactive=False, verbosity=0)
    except Error as error:
        cause = driver_error(error)
        if not isinstance(cause, psycopg.errors.InsufficientPrivilege):
            raise
        raise ConfigurationError(
            f"The user of DATABASE_URL cannot change the database ({first_line(cause)}). Run ./run manage prepare "
            "once as the owner of the database, or ask a superuser to make the change."
        ) from None


def driver_error(error: BaseException | None) -> psycopg.Error | None:
    """The psycopg error that caused a Django error."""
    while error is not None and not isinstance(error, psycopg.Error):
        error = error.__cause__ or error.__context__
    return error


def configured_password() -> str | None:
    """The administrator's initial password from the settings, which must be strong in production."""
    password: str | None = settings.ENVIRONMENT.admin_password
    if password and settings.ENVIRONMENT.is_production:
        try:
            validate_password(password, User(login=settings.ENVIRONMENT.admin_login))
        except ValidationError as error:
            raise ConfigurationError(f"SVC_ADMIN_PASSWORD cannot be used: {' '.join(error.messages)}") from None
    return password


def stored_password(name: str) -> str:
    """A random password, stored in a private file of the data folder."""
    settings.DATA_FOLDER.prepare()
    return str(settings.DATA_FOLDER.secret(name, lambda: secrets.token_urlsafe(12)))


def refuse_old_packages() -> None:
    for name, min_version in MIN_PACKAGE_VERSIONS.items():
        if get_version_tuple(importlib.metadata.version(name)) < min_version:
            raise ConfigurationError(f"{name} must be {format_version(min_version)} or newer. Start again with ./run.")


def refuse_unsuitable_database() -> None:
    """Refuse a database that cannot be used, with one sentence that says why."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(DATABASE_PROPERTIES_SQL)
            major_version, encoding, is_replica, installed_version, available_version = cursor.fetchone()
    except Error as error:
        raise ConfigurationError(
            f"The database cannot be reached. Check DATABASE_URL. The error was: {first_line(error)}"
        ) from None
    if major_version < MIN_POSTGRES_VERSION:
        raise ConfigurationError(
            f"The database server runs PostgreSQL {major_version}. Version {MIN_POSTGRES_VERSION} or newer is required."
        )
    if encoding != "UTF8":
        raise ConfigurationError(
            f"The encoding of the database must be UTF8, not {encoding}. Create it again with: "
            "CREATE DATABASE servicebase TEMPLATE template0 ENCODING 'UTF8'"
        )
    if is_replica:
        raise ConfigurationError("DATABASE_URL points to a replica, which is read-only. Set it to the primary server.")
    refuse_unsuitable_vector(installed_version, available_version)


def refuse_unsuitable_vector(installed_version: str | None, available_version: str | None) -> None:
    required = format_version(MIN_VECTOR_VERSION)
    pgvector = installed_version or available_version
    if pgvector is None:
        raise ConfigurationError(
            f"The pgvector extension is not available in this database. Install pgvector {required} or newer on the "
            "database server."
        )
    if get_version_tuple(pgvector) >= MIN_VECTOR_VERSION:
        return
    if available_version and get_version_tuple(available_version) >= MIN_VECTOR_VERSION:
        raise ConfigurationError(
            f"The database still uses pgvector {pgvector}. As its owner, run: ALTER EXTENSION vector UPDATE"
        )
    raise ConfigurationError(f"The database has pgvector {pgvector}, but {required} or newer is required.")


def format_version(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "no message"

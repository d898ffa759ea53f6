"""The stamp that `manage.py prepare` stores in the database, so that a start without changes can skip it.

It covers everything that the preparation depends on: code and packages, the settings that it reads, and the state of
the database. It is deleted before the preparation and written after it, so a preparation that failed is repeated.
"""

import hashlib
import sysconfig
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from system.models import Preparation
from system.monitoring.health import vector_version

CODE_FOLDERS = ("config", "system", "accounts", "sso", "tableapi", "collections_app", "workspace", "agents")


def is_current() -> bool:
    try:
        return Preparation.objects.filter(stamp=current_stamp()).exists()
    except DatabaseError:  # the table does not exist yet
        return False


def delete_stamp() -> None:
    if Preparation._meta.db_table in connection.introspection.table_names():
        Preparation.objects.all().delete()


@transaction.atomic
def save_stamp() -> None:
    Preparation.objects.all().delete()
    Preparation.objects.create(stamp=current_stamp())


def current_stamp() -> str:
    sha256 = hashlib.sha256()
    # Hashed by content, because file times differ between hosts.
    for path in sorted(path for folder in CODE_FOLDERS for path in (settings.BASE_DIR / folder).rglob("*.py")):
        sha256.update(str(path.relative_to(settings.BASE_DIR)).encode() + path.read_bytes())
    packages = sorted(path.name for path in Path(sysconfig.get_path("purelib")).glob("*.dist-info"))
    environment = settings.ENVIRONMENT
    # Detects migrations that were undone, or that a restored backup lacks.
    migrations = sorted(MigrationRecorder(connection).applied_migrations())
    state = (packages, environment.wants_demo, environment.admin_login, vector_version(), migrations)
    sha256.update(repr(state).encode())
    return sha256.hexdigest()

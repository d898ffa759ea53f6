"""`prepare` runs at a start only if something has changed; some checks run at every start."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from collections_app import demo_documents
from config.env import ConfigurationError
from config.maintenance import preparation
from config.management.commands import prepare
from system.models import Preparation, Property
from tests.support.users import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def prepared_database(settings: Any) -> None:
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, demo=False)
    make_user("alice", "admin")
    call_command("prepare")


def is_prepared_again() -> bool:
    """Whether a start prepares the database again, which restores a deleted row."""
    rows = Property.objects.filter(name="svc.welcome_page.url")
    rows.delete()
    call_command("prepare", "--if-changed")
    return rows.exists()


def test_nothing_is_prepared_when_nothing_has_changed():
    assert not is_prepared_again()
    call_command("prepare")
    assert Property.objects.filter(name="svc.welcome_page.url").exists()


def test_changed_code_causes_preparation(settings: Any, tmp_path: Path):
    for folder in preparation.CODE_FOLDERS:
        (tmp_path / folder).symlink_to(settings.BASE_DIR / folder)
    (tmp_path / "config").unlink()
    (tmp_path / "config").mkdir()
    settings.BASE_DIR = tmp_path

    assert is_prepared_again()
    assert not is_prepared_again()

    (tmp_path / "config" / "new.py").write_text("")
    assert is_prepared_again()


@pytest.mark.parametrize("changes", [{"demo": True}, {"admin_login": "root"}], ids=str)
def test_changed_setting_causes_preparation(changes: dict[str, Any], settings: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(demo_documents, "documentation_pages", lambda root: [])
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, **changes)

    assert is_prepared_again()


def test_changed_packages_cause_preparation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(preparation.sysconfig, "get_path", lambda name: str(tmp_path))  # type: ignore[attr-defined]

    assert is_prepared_again()


def test_changed_pgvector_version_causes_preparation(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preparation, "vector_version", lambda: (9, 9))

    assert is_prepared_again()


def test_changed_migrations_cause_preparation():
    """For example a database that newer code migrated."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('system', '9999_later', now())")

    assert is_prepared_again()


def test_failed_preparation_is_repeated(monkeypatch: pytest.MonkeyPatch):
    def raise_error() -> None:
        raise ConfigurationError("no")

    with monkeypatch.context() as patch:
        patch.setattr(prepare, "create_administrator", raise_error)
        with pytest.raises(ConfigurationError):
            call_command("prepare")

    assert not Preparation.objects.exists()
    assert is_prepared_again()


def test_preparation_without_the_demo_documents_is_repeated(settings: Any, monkeypatch: pytest.MonkeyPatch):
    """As if the embedding provider were unavailable."""
    monkeypatch.setattr(demo_documents, "load_demo_documents", lambda: False)
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, demo=True)
    call_command("prepare")

    assert is_prepared_again()


def test_unsuitable_database_and_old_packages_are_refused_at_every_start(monkeypatch: pytest.MonkeyPatch):
    for name in ("refuse_old_packages", "refuse_unsuitable_database"):
        with monkeypatch.context() as patch:
            patch.setattr(prepare, name, lambda: (_ for _ in ()).throw(ConfigurationError("refused")))
            with pytest.raises(ConfigurationError, match="refused"):
                call_command("prepare", "--if-changed")


def test_administrator_is_created_if_there_is_none(settings: Any):
    from accounts.models import User, UserRole

    UserRole.objects.all().delete()
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, admin_password="a long first word")

    call_command("prepare", "--if-changed")

    assert User.objects.get(login="admin").grants.filter(role__name="admin").exists()

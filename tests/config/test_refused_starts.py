"""Starts that are refused: an unsafe production, a data folder that cannot be used, old packages."""

import importlib.metadata
import os
import re
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from config.env import ConfigurationError
from config.management.commands import prepare
from tests.config.stack import Stack, environment, free_port, manage
from tests.system.outbound import certificates

SAFE_SETTINGS = {
    "SVC_ENV": "production",
    "SVC_BASE_URL": "https://service.example.com",
    "SECRET_KEY": "T8vYp2-qLr5xWn9cZk3mJd7hBf4gQs6aEu1oRi0t",
    "SVC_SECRET_KEYS": Fernet.generate_key().decode(),
    "DATABASE_URL": "postgresql://me@127.0.0.1:1/service",
    "REDIS_URL": "redis://127.0.0.1:1",
}

UNSAFE_SETTINGS = [  # the changed settings, and the message of the refusal
    ({"DEBUG": "1"}, "DEBUG must be 0 in production"),
    ({"SVC_ALLOW_HTTP_IDP": "1"}, "SVC_ALLOW_HTTP_IDP is only for development"),
    ({"ALLOWED_HOSTS": "*"}, "ALLOWED_HOSTS must list host names in production"),
    ({"ALLOWED_HOSTS": "service.example.com,*"}, "ALLOWED_HOSTS must list host names in production"),
    ({"SVC_HOST": "0.0.0.0", "SVC_BASE_URL": ""}, "SVC_BASE_URL or ALLOWED_HOSTS must be set if SVC_HOST is 0.0.0.0"),
    ({"SECRET_KEY": ""}, "SECRET_KEY must be set to at least 32 random characters"),
    ({"SECRET_KEY": "short"}, "SECRET_KEY must be set to at least 32 random characters"),
    ({"SECRET_KEY": "ab" * 32}, "SECRET_KEY must be set to at least 32 random characters"),
    ({"SECRET_KEY": "django-insecure-7d$k2m!x9q4w8e6r5t3y1u0i"}, "SECRET_KEY must be set to at least 32"),
    ({"SVC_SECRET_KEYS": ""}, "SVC_SECRET_KEYS must be set in production. Generate a key with: "),
    ({"SVC_ADMIN_PASSWORD": "admin"}, "SVC_ADMIN_PASSWORD must have at least 10 characters"),
    ({"DATABASE_URL": ""}, "Set DATABASE_URL and REDIS_URL in production, or set SVC_ALLOW_EMBEDDED=1"),
    ({"REDIS_URL": ""}, "Set DATABASE_URL and REDIS_URL in production, or set SVC_ALLOW_EMBEDDED=1"),
]


def refusal_of(command: str, data_folder: Path, **variables: str) -> str:
    """The message of a refused start."""
    completed = manage(*command.split(), env=environment(data_folder, free_port(), **variables))
    assert completed.returncode == 1
    assert "Traceback" not in completed.stdout + completed.stderr
    assert completed.stderr.startswith("servicebase: ") and len(completed.stderr.splitlines()) == 1, completed.stderr
    return completed.stderr


@pytest.mark.parametrize(("changes", "message"), UNSAFE_SETTINGS, ids=lambda value: str(value)[:40])
def test_unsafe_production_is_refused(changes: dict[str, str], message: str, tmp_path: Path):  # X03
    assert message in refusal_of("up", tmp_path / "data", **{**SAFE_SETTINGS, **changes})
    assert not (tmp_path / "data").exists()


def test_safe_production_settings_are_accepted(tmp_path: Path):
    assert "The database cannot be reached" in refusal_of("up", tmp_path, **SAFE_SETTINGS)


def test_malformed_keys_are_refused(tmp_path: Path):
    message = refusal_of("prepare", tmp_path, **{**SAFE_SETTINGS, "SVC_SECRET_KEYS": "no-key-at-all"})

    assert "SVC_SECRET_KEYS must be a comma-separated list of Fernet keys" in message
    assert "no-key-at-all" not in message


def test_common_first_password_is_refused_in_production(tmp_path: Path):
    embedded_settings = {**SAFE_SETTINGS, "DATABASE_URL": "", "REDIS_URL": "", "SVC_ALLOW_EMBEDDED": "1"}

    message = refusal_of("prepare", tmp_path, **embedded_settings, SVC_ADMIN_PASSWORD="password123")

    assert "SVC_ADMIN_PASSWORD cannot be used: This password is too common." in message

    message = refusal_of(
        "prepare", tmp_path, **embedded_settings, SVC_ADMIN_LOGIN="head.office", SVC_ADMIN_PASSWORD="head.office1"
    )

    assert "SVC_ADMIN_PASSWORD cannot be used: The password is too similar to the login." in message


def test_certificate_of_another_key_is_refused(tmp_path: Path):
    certificate = certificates.make_certificate("a", names=("a.example.com",)).write(tmp_path, "a")
    key = certificates.make_certificate("b", names=("b.example.com",)).write(tmp_path, "b")
    invalid_file = tmp_path / "junk"
    invalid_file.write_text("nothing of that kind")

    for certificate_file, key_file, reason in (
        (certificate, key, "key values mismatch"),
        (invalid_file, key, "no start line|pem lib"),
    ):
        message = refusal_of("up", tmp_path, SVC_TLS_CERT=str(certificate_file), SVC_TLS_KEY=str(key_file))
        assert re.search(rf"SVC_TLS_CERT and SVC_TLS_KEY cannot be used together \(.*({reason}).*\)", message)


@pytest.mark.parametrize("command", ["up", "prepare"])
def test_data_folder_that_cannot_be_created_is_refused(command: str, tmp_path: Path):
    (tmp_path / "file").touch()

    message = refusal_of(command, tmp_path / "file" / "data")

    assert f"The data folder {tmp_path}/file/data is not writable (Not a directory). Check its owner" in message


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write to every folder")
def test_read_only_folder_is_refused(tmp_path: Path):
    tmp_path.chmod(0o500)

    assert "is not writable (Permission denied)" in refusal_of("up", tmp_path / "data")


@pytest.mark.parametrize("command", ["up", "prepare"])
@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"notes.txt": "mine"}, "is damaged: it contains files but no PostgreSQL cluster. Move it away and restore"),
        (
            {"PG_VERSION": "17\n"},
            "was created by PostgreSQL 17, not 18. Set SVC_DATA_DIR to a new folder and restore a backup",
        ),
    ],
)
def test_folder_with_other_data_is_refused_and_not_changed(
    files: dict[str, str], message: str, command: str, tmp_path: Path
):
    cluster = tmp_path / "postgres"
    cluster.mkdir()
    for name, text in files.items():
        (cluster / name).write_text(text)

    assert message in refusal_of(command, tmp_path)

    assert {path.name: path.read_text() for path in cluster.iterdir()} == files


def test_incomplete_cluster_of_an_interrupted_start_is_replaced(tmp_path: Path):
    (tmp_path / "postgres.unfinished").mkdir()
    (tmp_path / "postgres.unfinished" / "PG_VERSION").write_text("18\n")

    assert manage("prepare", env=environment(tmp_path, free_port())).returncode == 0
    assert not (tmp_path / "postgres.unfinished").exists()


@pytest.fixture(scope="module")
def used_data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which the product has run."""
    stack = Stack(tmp_path_factory.mktemp("used")).start().wait_until_up()
    assert stack.stop() == 0
    stack.end()
    return stack.data_folder


@pytest.mark.stack
@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("postgres/postgresql.conf", "PostgreSQL did not start with the data in"),
        ("postgres/global/pg_control", "PostgreSQL did not start with the data in"),
        ("valkey/appendonlydir/appendonly.aof.1.incr.aof", "Move the folder away and start again"),
    ],
)
def test_damaged_server_data_stops_the_start_with_advice(file: str, message: str, used_data_folder: Path):
    damaged_file = used_data_folder / file
    content = damaged_file.read_bytes()
    damaged_file.write_bytes(b"damaged")
    try:
        assert message in refusal_of("up", used_data_folder)
    finally:
        damaged_file.write_bytes(content)


@pytest.mark.parametrize("name", prepare.MIN_PACKAGE_VERSIONS)
def test_outdated_package_is_refused(name: str, monkeypatch: pytest.MonkeyPatch):  # X27
    prepare.refuse_old_packages()
    installed_version = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda package: "2.0" if package == name else installed_version(package)
    )

    with pytest.raises(ConfigurationError, match=f"{name} must be .* or newer. Start again with ./run"):
        prepare.refuse_old_packages()

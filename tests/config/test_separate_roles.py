"""The recipe in docs/how-to/deploy.md for separate database roles: what each role can and cannot do."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from config.env import ROOT
from config.runtime.embedded_servers import postgres_tool
from tests.config.shared_servers import SharedServers
from tests.config.stack import Stack, environment, eventually, free_port, manage

pytestmark = pytest.mark.stack


def documented_statements() -> list[list[str]]:
    """The SQL statements of the section, by code block."""
    section = (ROOT / "docs/how-to/deploy.md").read_text().partition("### Separate roles")[2].partition("\n## ")[0]
    blocks = re.findall(r"```sql\n(.*?)```", section, re.DOTALL)
    return [[statement.strip() for statement in block.split(";") if statement.strip()] for block in blocks]


@dataclass(frozen=True)
class RoleServers:
    servers: SharedServers

    def url(self, role: str, database: str = "servicebase") -> str:
        return f"postgresql://{role}@/{database}?host={quote(str(self.servers.folder.sockets), safe='')}"

    def environ(self, role: str) -> dict[str, str]:
        return {**self.servers.environ, "DATABASE_URL": self.url(role)}


@pytest.fixture(scope="module")
def role_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoleServers]:
    """A server that was set up with the recipe."""
    role_servers = RoleServers(SharedServers(tmp_path_factory.mktemp("server")).start_postgres().start_valkey())
    superuser_statements, database_statements = documented_statements()
    with psycopg.connect(role_servers.url("servicebase", "postgres"), autocommit=True) as connection:
        for statement in ["DROP DATABASE servicebase", *superuser_statements]:
            connection.execute(statement.encode())
    with psycopg.connect(role_servers.url("servicebase"), autocommit=True) as connection:
        for statement in database_statements:
            connection.execute(statement.encode())
    yield role_servers
    role_servers.servers.end()


def prepare(role_servers: RoleServers, role: str, data_folder: Path) -> "subprocess.CompletedProcess[str]":
    return manage("prepare", env=environment(data_folder, free_port(), **role_servers.environ(role)))


@pytest.fixture(scope="module")
def prepared_servers(role_servers: RoleServers, tmp_path_factory: pytest.TempPathFactory) -> RoleServers:
    """The service role prepares too early and fails; then the owner role prepares the database."""
    early_preparation = prepare(role_servers, "servicebase_service", tmp_path_factory.mktemp("early"))
    assert early_preparation.returncode == 1
    assert "cannot change the database" in early_preparation.stderr and len(early_preparation.stderr.splitlines()) == 1
    owner_preparation = prepare(role_servers, "servicebase_owner", tmp_path_factory.mktemp("owner"))
    assert owner_preparation.returncode == 0, owner_preparation.stderr
    return role_servers


def test_service_runs_without_ddl_privileges(prepared_servers: RoleServers, tmp_path: Path):  # X12
    stack = Stack(tmp_path / "service", **prepared_servers.environ("servicebase_service"))
    try:
        stack.start().wait_until_up()
        eventually(lambda: stack.get("/readyz") == 200)
        assert manage("key", "admin", "test", env=stack.env).stdout.startswith("sb_")
        with psycopg.connect(prepared_servers.url("servicebase_service")) as connection:
            refused_statements = ("CREATE TABLE mine ()", 'ALTER TABLE "user" ADD extra text', 'DROP TABLE "user"')
            for statement in (*refused_statements, "ALTER TABLE records.task ADD extra text"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                    connection.execute(statement.encode())
        assert stack.stop() == 0
    finally:
        stack.end()


def test_service_role_can_create_a_backup(prepared_servers: RoleServers, tmp_path: Path):
    target = tmp_path / "today.backup"
    env = environment(tmp_path / "data", free_port(), **prepared_servers.environ("servicebase_service"))

    completed = manage("backup", str(target), env=env)

    assert completed.returncode == 0, completed.stderr
    listing = subprocess.run([postgres_tool("pg_restore"), "--list", str(target)], capture_output=True, text=True)
    assert "TABLE DATA public user" in listing.stdout and "TABLE DATA records task" in listing.stdout


def test_administrator_can_design_tables(prepared_servers: RoleServers, tmp_path: Path):
    script = (
        "from tableapi.design import saving\n"
        "from tableapi.models import Column, Table\n"
        "user = Table.objects.get(name='user')\n"
        "car = Table(name='car', label='Car'); saving.save_table(car)\n"
        "saving.save_column(Column(table=car, name='driver', label='Driver', type='reference', reference_table=user))\n"
        "try: saving.save_column(Column(table=Table.objects.get(name='task'), name='extra', label='Extra'))\n"
        "except Exception as error: print(error)\n"
    )
    env = environment(tmp_path / "data", free_port(), **prepared_servers.environ("servicebase_service"))

    completed = manage("shell", "-c", script, env=env)

    assert completed.returncode == 0, completed.stderr
    assert "because it belongs to another database role" in completed.stdout
    with psycopg.connect(prepared_servers.url("servicebase_service")) as connection:
        assert connection.execute("SELECT count(driver) FROM records.car").fetchone() == (0,)

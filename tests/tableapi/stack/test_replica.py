"""Reads from a real streaming replica, which is used while its catalogue equals the primary's."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from config.runtime import unprivileged
from config.runtime.data_folder import DataFolder
from config.runtime.embedded_servers import DATABASE, Postgres, postgres_tool
from tests.config.shared_servers import FAST_OPTIONS, SharedServers
from tests.config.stack import eventually, manage
from tests.tableapi.stack.callers import ApiCaller, ComponentStarter

pytestmark = pytest.mark.stack

REPLICA_PARAMETERS = "sysparm_query_category=replica&sysparm_fields=name"


class Standby:
    """A second PostgreSQL that follows the first."""

    def __init__(self, primary: SharedServers, root: Path) -> None:
        self.folder = DataFolder(root)
        self.folder.prepare()
        command = [
            *unprivileged.command_prefix(), postgres_tool("pg_basebackup"), "--pgdata", str(self.folder.postgres),
            "--host", str(primary.folder.sockets), "--username", DATABASE, "--write-recovery-conf",
            "--checkpoint=fast", "--no-sync",
        ]  # fmt: skip
        shutil.rmtree(self.folder.postgres, ignore_errors=True)
        backup = subprocess.run(command, capture_output=True, text=True, check=False)
        assert backup.returncode == 0, backup.stderr
        self.process = subprocess.Popen([*Postgres(self.folder).command(), *FAST_OPTIONS], stderr=subprocess.DEVNULL)
        eventually(self.is_following)

    @property
    def url(self) -> str:
        return f"postgresql://{DATABASE}@/{DATABASE}?host={quote(str(self.folder.sockets), safe='')}"

    def query(self, statement: str) -> object:
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute(statement).fetchone()
            return row[0] if row else None

    def is_following(self) -> bool:
        try:
            return self.query("SELECT status FROM pg_stat_wal_receiver") == "streaming"
        except psycopg.OperationalError:
            assert self.process.poll() is None, "the standby did not start"
            return False

    def pause(self) -> None:
        self.query("SELECT pg_wal_replay_pause()")
        eventually(lambda: self.query("SELECT pg_get_wal_replay_pause_state()") == "paused")

    def resume(self) -> None:
        self.query("SELECT pg_wal_replay_resume()")

    def end(self) -> None:
        if self.process.poll() is not None:
            return
        self.process.send_signal(Postgres.stop_signal)
        self.process.wait(30)


@pytest.fixture(scope="module")
def standby(servers: SharedServers, admin: ApiCaller, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standby]:
    if not os.path.exists(postgres_tool("pg_basebackup")):
        pytest.skip("this wheel of PostgreSQL has no pg_basebackup")
    standby = Standby(servers, tmp_path_factory.mktemp("standby"))
    yield standby
    standby.end()


@pytest.fixture(scope="module")
def reader(start_component: ComponentStarter, standby: Standby, admin: ApiCaller) -> ApiCaller:
    """A caller without roles, at a host with a replica; a rule lets them read notes."""
    reader_web = start_component("web", DATABASE_REPLICA_URL=standby.url).wait_until_up()
    assert admin.send("POST", "user", {"login": "reader"}).status == 201
    return ApiCaller(reader_web, manage("key", "reader", "test", env=reader_web.env).stdout.strip())


@pytest.fixture
def read_rule(admin: ApiCaller, standby: Standby, reader: ApiCaller, database: psycopg.Connection) -> Iterator[str]:
    """A rule that allows reading notes, and one note. The replica receives both and is then paused."""
    table_id = admin.create_table("note")
    (created_record,) = admin.send("POST", "sys_acl", {"operation": "read", "table": table_id}).records
    assert admin.send("POST", "note", {"name": "old"}).status == 201
    eventually(lambda: visible_names(reader) == ["old"] and is_caught_up(standby, database))
    standby.pause()
    yield created_record["sys_id"]
    if standby.process.poll() is None:
        standby.resume()
    for record in admin.send("GET", "note?sysparm_fields=sys_id").records:
        admin.send("DELETE", f"note/{record['sys_id']}")
    assert admin.send("DELETE", f"sys_db_table/{table_id}").status == 200


def is_caught_up(standby: Standby, database: psycopg.Connection) -> bool:
    version_query = "SELECT version FROM tableapi_state"
    count_query = "SELECT count(*) FROM records.note"
    return all(standby.query(query) == database.execute(query).fetchone()[0] for query in (version_query, count_query))  # type: ignore[index]


def visible_names(caller: ApiCaller, parameters: str = REPLICA_PARAMETERS) -> list[str] | int:
    response = caller.send("GET", f"note?{parameters}")
    return [record["name"] for record in response.records] if response.status == 200 else response.status


def test_replica_serves_reads_that_request_it(read_rule: str, admin: ApiCaller, reader: ApiCaller, standby: Standby):
    assert admin.send("POST", "note", {"name": "new"}).status == 201
    assert visible_names(reader, "sysparm_fields=name") == ["old", "new"]
    assert visible_names(reader) == ["old"], "the replica is paused"

    standby.resume()
    eventually(lambda: visible_names(reader) == ["old", "new"])


def test_revoked_access_applies_despite_replica_lag(
    read_rule: str, admin: ApiCaller, reader: ApiCaller, standby: Standby
):
    assert admin.send("PATCH", f"sys_acl/{read_rule}", {"condition": "name=new"}).status == 200
    assert admin.send("POST", "note", {"name": "new"}).status == 201

    assert visible_names(reader) == ["new"], "the primary's rules decide, so its records are returned"
    assert admin.send("DELETE", f"sys_acl/{read_rule}").status == 200
    assert visible_names(reader) == 404

    standby.resume()
    eventually(lambda: standby.query("SELECT count(*) FROM sys_acl WHERE condition = 'name=new'") == 0)
    assert visible_names(reader) == 404


def test_new_column_is_read_from_the_primary(
    read_rule: str, admin: ApiCaller, reader: ApiCaller, database: psycopg.Connection
):
    (table,) = admin.send("GET", "sys_db_table?sysparm_query=name=note&sysparm_fields=sys_id").records
    column = {"table": table["sys_id"], "name": "colour", "label": "Colour", "type": "string"}
    assert admin.send("POST", "sys_db_column", column).status == 201

    response = reader.send("GET", "note?sysparm_query_category=replica&sysparm_fields=name,colour")
    assert response.records == [{"name": "old", "colour": None}]


def test_primary_is_used_after_the_replica_stopped(
    read_rule: str, admin: ApiCaller, reader: ApiCaller, standby: Standby, database: psycopg.Connection
):
    """This must be the last test, as the replica is not restarted."""
    standby.resume()
    eventually(lambda: is_caught_up(standby, database) and visible_names(reader) == ["old"])
    standby.end()
    for _ in range(3):
        assert visible_names(reader) == ["old"]
    assert admin.send("POST", "note", {"name": "new"}).status == 201
    assert visible_names(reader) == ["old", "new"]

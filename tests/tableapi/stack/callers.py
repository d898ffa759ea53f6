"""Calls the API of a running product, and waits for events in its database."""

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import psycopg

from tests.config.shared_servers import SharedServers
from tests.config.stack import Stack, eventually

# Starts one component of the product with additional environment variables.
ComponentStarter = Callable[..., Stack]
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class ApiResponse:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def records(self) -> Any:
        assert self.status in (200, 201), (self.status, self.content)
        return json.loads(self.content)["data"]

    @property
    def is_retry_response(self) -> bool:
        """Whether the response tells the client to retry later."""
        code = json.loads(self.content)["errors"][0]["code"]
        return self.status == 503 and code == "unavailable" and int(self.headers["retry-after"]) > 0


@dataclass(frozen=True)
class ApiCaller:
    """A caller with an access key; each request uses a new connection."""

    web: Stack
    key: str

    def send(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] = NO_HEADERS) -> ApiResponse:
        client_connection = http.client.HTTPConnection("127.0.0.1", self.web.port, timeout=30)
        try:
            client_connection.request(method, f"/rest/v1/table/{path}", *self._request_parts(body, headers))
            response = client_connection.getresponse()
            return ApiResponse(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )
        finally:
            client_connection.close()

    def _request_parts(self, body: Any, headers: Mapping[str, str]) -> tuple[bytes | None, dict[str, str]]:
        default_headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        return (None if body is None else json.dumps(body).encode()), {**default_headers, **headers}

    def send_and_disconnect(
        self, method: str, path: str, body: Any, headers: Mapping[str, str] = NO_HEADERS
    ) -> http.client.HTTPConnection:
        """Send a request without waiting for its response. Closing the returned connection disconnects the client."""
        client_connection = http.client.HTTPConnection("127.0.0.1", self.web.port, timeout=30)
        client_connection.request(method, f"/rest/v1/table/{path}", *self._request_parts(body, headers))
        return client_connection

    def create_table(self, name: str, **attributes: Any) -> str:
        """Create a table with a column `name`; returns its id."""
        (created_record,) = self.send("POST", "sys_db_table", {"name": name, "label": name, **attributes}).records
        column = {"table": created_record["sys_id"], "name": "name", "label": "Name", "type": "string"}
        assert self.send("POST", "sys_db_column", column).status == 201
        return str(created_record["sys_id"])

    def list_names(self, table: str) -> list[str]:
        return [record["name"] for record in self.send("GET", f"{table}?sysparm_fields=name").records]


TRIGGER_STATEMENT = """
CREATE OR REPLACE FUNCTION records.of_test() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {action}; RETURN NEW; END $$;
CREATE OR REPLACE TRIGGER of_test BEFORE INSERT OR UPDATE ON records.{table} FOR EACH ROW
EXECUTE FUNCTION records.of_test()
"""


# Without a lock timeout, as the test may be slow on a busy machine.
WAIT_AT_GATE = "PERFORM set_config('lock_timeout', '0', true); PERFORM pg_advisory_xact_lock(4711)"


@contextmanager
def closed_gate(servers: SharedServers) -> Iterator[None]:
    """Statements with `WAIT_AT_GATE` wait until the end of the block."""
    with closing(psycopg.connect(servers.postgres.url, autocommit=True)) as connection:
        connection.execute("SELECT pg_advisory_lock(4711)")
        yield


def create_write_trigger(database: psycopg.Connection, table: str, action: str) -> None:
    """Run this SQL in every later write to the table by any process."""
    database.execute(TRIGGER_STATEMENT.format(table=table, action=action))


def wait_for_blocked_connection(database: psycopg.Connection, process: str) -> int:
    """Wait until a connection of this kind of process waits for a lock; returns its process id."""
    query = "SELECT pid FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"
    (pid,) = eventually(lambda: database.execute(query, [f"servicebase {process}"]).fetchone())
    return int(pid)


def wait_for_closed_connection(database: psycopg.Connection, pid: int) -> None:
    """Wait until a connection has closed and its transaction is rolled back."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
    eventually(lambda: database.execute(query, [pid]).fetchone() == (0,))

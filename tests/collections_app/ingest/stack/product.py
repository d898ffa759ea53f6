"""Loads documents into the running product like a client, and reads the stored rows."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest

from tests.config.shared_servers import SharedServers
from tests.config.stack import Stack, StackResponse, environment, eventually, free_port, manage

CONNECTION_ERRORS = (http.client.HTTPException, OSError)

UNFINISHED = "SELECT count(*) FROM document_version WHERE state NOT IN ('ready', 'empty', 'failed')"
# The searchable content of a document, without ids.
CHUNKS_QUERY = """
SELECT c.number, c.text, c.char_start, c.char_end, w.weights::text,
    (SELECT array_agg(v.embedding::text) FROM chunk_vector v WHERE v.chunk_id = c.id)
FROM document d JOIN document_version s ON s.document_id = d.id AND s.is_searched
JOIN chunk c ON c.version_id = s.id LEFT JOIN chunk_words w ON w.chunk_id = c.id
WHERE d.doc_id = %s ORDER BY c.number
"""


@dataclass(frozen=True)
class Product:
    servers: SharedServers
    web: Stack
    worker: Stack
    key: str

    def call(self, method: str, path: str, body: Any = None, **parameters: str) -> StackResponse:
        return self.web.call(method, f"/{path}?{urlencode(parameters)}", body, key=self.key)

    def load(self, doc_id: str, text: str, *, wait: bool = False, **options: str) -> StackResponse:
        body = {"text": text, "metadata": {}, "doc_id": doc_id, "wait": wait, **options}
        return self.call("POST", "load_text_to_collection", body, collection_name="manuals")

    @contextmanager
    def connect_to_database(self) -> Iterator[psycopg.Connection[Any]]:
        """Opens a direct connection to the database."""
        with psycopg.connect(self.servers.postgres.url, autocommit=True) as connection:
            yield connection

    def fetch_rows(self, query: str, *parameters: Any) -> list[Any]:
        with self.connect_to_database() as connection:
            return connection.execute(query, parameters).fetchall()

    def fetch_chunks(self, doc_id: str) -> list[Any]:
        return self.fetch_rows(CHUNKS_QUERY, doc_id)

    def wait_until_done(self, timeout_s: float = 120.0) -> None:
        eventually(lambda: self.fetch_rows(UNFINISHED) == [(0,)], timeout_s)

    def expire_leases(self) -> None:
        self.fetch_rows("UPDATE document_version SET lease_until = now() WHERE lease_until IS NOT NULL RETURNING 1")

    def kill_workers(self) -> None:
        self.worker.kill(" worker ")


@contextmanager
def running_product(servers: SharedServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Web, worker and beat on a running PostgreSQL."""
    servers.start_valkey()
    stacks: list[Stack] = []
    try:
        first_environment = environment(tmp_path_factory.mktemp("first"), free_port(), SVC_DEMO="0", **servers.environ)
        preparation = manage("prepare", env=first_environment)
        assert preparation.returncode == 0, preparation.stderr
        for name in ("web", "worker", "beat"):
            stacks.append(Stack(tmp_path_factory.mktemp(name), SVC_DEMO="0", **servers.environ).start("--only", name))
        web_stack, worker_stack, beat_stack = stacks
        web_stack.wait_until_up()
        worker_stack.wait_for("ready")
        beat_stack.wait_for("beat_leads")
        yield Product(
            servers, web_stack, worker_stack, manage("key", "admin", "test", env=web_stack.env).stdout.strip()
        )
    finally:
        for stack in reversed(stacks):
            if stack.process.poll() is None:
                stack.stop()
            stack.end()
        servers.end()

"""Separate PostgreSQL and Valkey servers, with the processes of the product as on separate hosts."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.collections_app.ingest.stack.product import Product
from tests.config.shared import SharedServers
from tests.config.stack import Stack, environment, free_port, manage


@pytest.fixture(scope="package")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A PostgreSQL server that keeps acknowledged transactions when its process ends."""
    servers = SharedServers(tmp_path_factory.mktemp("shared")).start_postgres("-c", "synchronous_commit=on")
    with running_on(servers, tmp_path_factory) as made:
        yield made


@contextmanager
def running_on(servers: SharedServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Web, worker and beat on a running PostgreSQL."""
    servers.start_valkey()
    hosts: list[Stack] = []
    try:
        first = environment(tmp_path_factory.mktemp("first"), free_port(), SVC_DEMO="0", **servers.environ)
        prepared = manage("prepare", env=first)
        assert prepared.returncode == 0, prepared.stderr
        for part in ("web", "worker", "beat"):
            hosts.append(Stack(tmp_path_factory.mktemp(part), SVC_DEMO="0", **servers.environ).start("--only", part))
        web, worker, beat = hosts
        web.wait_until_up()
        worker.wait_for("ready")
        beat.wait_for("beat_leads")
        yield Product(servers, web, worker, manage("key", "admin", "test", env=web.env).stdout.strip())
    finally:
        for host in reversed(hosts):
            if host.process.poll() is None:
                host.stop()
            host.end()
        servers.end()

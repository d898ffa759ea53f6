"""Fixtures: servers that several hosts share, and hosts."""

from collections.abc import Iterator

import pytest

from tests.config.shared import ComponentStarter, SharedServers
from tests.config.stack import Stack, environment, free_port, manage

# A Celery worker that patches the modules it imports.
collect_ignore = ["growing_worker.py"]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServers]:
    """Separate PostgreSQL and Valkey servers with a prepared database."""
    servers = SharedServers(tmp_path_factory.mktemp("shared")).start_postgres().start_valkey()
    first_host = environment(tmp_path_factory.mktemp("first-host"), free_port(), **servers.environ)
    prepared = manage("prepare", env=first_host)
    assert prepared.returncode == 0, prepared.stderr
    yield servers
    servers.end()


@pytest.fixture(scope="module")
def start_component(servers: SharedServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComponentStarter]:
    """Starts one component as on a separate host."""
    hosts: list[Stack] = []

    def start_host(part: str) -> Stack:
        host = Stack(tmp_path_factory.mktemp(part), **servers.environ)
        hosts.append(host)
        return host.start("--only", part)

    yield start_host
    for host in reversed(hosts):
        if host.process.poll() is None:
            host.stop()
        host.end()

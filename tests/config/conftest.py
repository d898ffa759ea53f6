"""Fixtures: servers that several hosts share, and hosts."""

from collections.abc import Iterator

import pytest

from tests.config.shared_servers import ComponentStarter, SharedServers
from tests.config.stack import Stack, environment, free_port, manage

# A Celery worker that patches the modules it imports.
collect_ignore = ["growing_worker.py"]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServers]:
    """Separate PostgreSQL and Valkey servers with a prepared database."""
    servers = SharedServers(tmp_path_factory.mktemp("shared")).start_postgres().start_valkey()
    first_environment = environment(tmp_path_factory.mktemp("first-host"), free_port(), **servers.environ)
    preparation = manage("prepare", env=first_environment)
    assert preparation.returncode == 0, preparation.stderr
    yield servers
    servers.end()


@pytest.fixture(scope="module")
def start_component(servers: SharedServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComponentStarter]:
    """Starts one component as on a separate host."""
    hosts: list[Stack] = []

    def start_host(component: str) -> Stack:
        host = Stack(tmp_path_factory.mktemp(component), **servers.environ)
        hosts.append(host)
        return host.start("--only", component)

    yield start_host
    for host in reversed(hosts):
        if host.process.poll() is None:
            host.stop()
        host.end()

"""Fixtures: one PostgreSQL, one Valkey, and components of the product as on separate hosts."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.config.shared_servers import SharedServers
from tests.config.stack import Stack, environment, free_port, manage
from tests.tableapi.stack.callers import ApiCaller, ComponentStarter

# With these settings, a test can kill a process between the commit of a write and its response.
KILLABLE_SETTINGS = {"DJANGO_SETTINGS_MODULE": "tests.tableapi.stack.killable_settings"}


@pytest.fixture(scope="package")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServers]:
    servers = SharedServers(tmp_path_factory.mktemp("shared")).start_postgres().start_valkey()
    first_host = environment(tmp_path_factory.mktemp("first-host"), free_port(), SVC_DEMO="0", **servers.environ)
    preparation = manage("prepare", env=first_host)
    assert preparation.returncode == 0, preparation.stderr
    yield servers
    servers.end()


@pytest.fixture(scope="package")
def start_component(servers: SharedServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComponentStarter]:
    """A function that starts one component with additional environment variables."""
    hosts: list[Stack] = []

    def start(component: str, **variables: str) -> Stack:
        host = Stack(tmp_path_factory.mktemp(component), SVC_DEMO="0", **servers.environ, **variables)
        hosts.append(host)
        return host.start("--only", component)

    yield start
    for host in reversed(hosts):
        if host.process.poll() is None:
            host.stop()
        host.end()


@pytest.fixture(scope="package")
def web(start_component: ComponentStarter) -> Stack:
    return start_component("web", **KILLABLE_SETTINGS).wait_until_up()


@pytest.fixture(scope="package")
def admin(web: Stack) -> ApiCaller:
    return ApiCaller(web, manage("key", "admin", "test", env=web.env).stdout.strip())


@pytest.fixture
def database(servers: SharedServers) -> Iterator[psycopg.Connection]:
    """A direct connection to the database, in autocommit mode."""
    with psycopg.connect(servers.postgres.url, autocommit=True) as connection:
        yield connection

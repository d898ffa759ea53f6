"""A host that disappears from the network without closing its connections.

The host is in another network namespace, which requires root and the program `ip`, and connects over TCP.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from config.database.connections import KEEPALIVES
from tests.config.shared_servers import SharedServers
from tests.config.stack import Stack, environment, eventually, free_port, manage

pytestmark = [
    pytest.mark.stack,
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="a namespace requires root and ip"),
]

HOST_IP, SERVER_IP = "10.213.77.1", "10.213.77.2"
# Long enough for PostgreSQL to drop a silent client, and for two checks of the other beat.
KEEPALIVE_LIMIT_S = int(KEEPALIVES["idle"]) + int(KEEPALIVES["interval"]) * int(KEEPALIVES["count"]) + 20


def run_ip(command: str) -> None:
    subprocess.run(["ip", *command.split()], check=True, capture_output=True)


@dataclass(frozen=True)
class Network:
    """A network namespace for the remote host, with a virtual cable to this namespace."""

    name: str
    cable: str

    def create(self) -> None:
        run_ip(f"netns add {self.name}")
        run_ip(f"link add {self.cable} type veth peer name far netns {self.name}")
        run_ip(f"addr add {HOST_IP}/30 dev {self.cable}")
        run_ip(f"link set {self.cable} up")
        run_ip(f"-n {self.name} addr add {SERVER_IP}/30 dev far")
        for device in ("lo", "far"):
            run_ip(f"-n {self.name} link set {device} up")

    def disconnect(self) -> None:
        run_ip(f"link set {self.cable} down")

    def reconnect(self) -> None:
        run_ip(f"link set {self.cable} up")

    def end(self) -> None:
        for command in (f"link del {self.cable}", f"netns del {self.name}"):
            with suppress(subprocess.CalledProcessError):  # parts that were not created
                run_ip(command)


@pytest.fixture
def network() -> Iterator[Network]:
    network = Network(f"servicebase-{os.getpid()}", f"sb{os.getpid()}"[:15])
    try:
        network.create()
        yield network
    finally:
        network.end()


@pytest.fixture
def servers(network: Network, tmp_path: Path) -> Iterator[SharedServers]:
    """Servers for both hosts: the near one uses their sockets, the far one TCP."""
    servers = SharedServers(tmp_path / "servers")
    try:
        servers.postgres.initialize()
        with open(servers.folder.postgres / "pg_hba.conf", "a") as hba_file:
            hba_file.write(f"host all all {SERVER_IP}/32 trust\n")
        servers.start_postgres("-c", f"listen_addresses={HOST_IP}")
        servers.start_valkey("--port", "6379", "--bind", HOST_IP, "--protected-mode", "no")
        first_environment = environment(tmp_path / "first", free_port(), **servers.environ)
        assert manage("prepare", env=first_environment).returncode == 0
        yield servers
    finally:
        servers.end()


def test_another_beat_takes_over_and_the_old_one_steps_down(
    network: Network, servers: SharedServers, tmp_path: Path
):  # X18
    server_urls = {
        "DATABASE_URL": f"postgresql://servicebase@{HOST_IP}/servicebase",
        "REDIS_URL": f"redis://{HOST_IP}:6379/0",
    }
    far_stack, near_stack = (
        Stack(tmp_path / "far", **{**servers.environ, **server_urls}),
        Stack(tmp_path / "near", **servers.environ),
    )
    far_stack.command_prefix = ("ip", "netns", "exec", network.name)
    far_stack.start("--only", "beat")
    try:
        far_stack.wait_for("beat_leads")
        near_stack.start("--only", "beat").wait_for("beat_follows")

        network.disconnect()
        near_stack.wait_for("beat_leads", timeout_s=KEEPALIVE_LIMIT_S)
        network.reconnect()

        # The old leader notices immediately that it no longer leads, and waits behind the new one.
        far_stack.wait_for("beat_cannot_lead", timeout_s=KEEPALIVE_LIMIT_S)
        far_stack.wait_for("beat_follows", timeout_s=KEEPALIVE_LIMIT_S)
        assert (far_stack.output.count("beat_leads"), near_stack.output.count("beat_leads")) == (1, 1)
    finally:
        for host in (near_stack, far_stack):
            if host.process.poll() is None:
                host.stop()
            host.end()


def test_network_fixture_can_be_disconnected(network: Network):
    command = ["ip", "netns", "exec", network.name, "timeout", "1", "bash", "-c", f"exec 3<>/dev/tcp/{HOST_IP}/1"]

    def is_refused_immediately() -> bool:
        return subprocess.run(command, capture_output=True).returncode == 1

    eventually(is_refused_immediately)
    network.disconnect()
    assert not is_refused_immediately()

"""A host that disappears from the network without closing its connections.

In a network namespace, which wants root and `ip`; the connections go over TCP from one namespace to another.
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
from tests.config.shared import SharedServers
from tests.config.stack import Stack, environment, eventually, free_port, manage

pytestmark = [
    pytest.mark.stack,
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="makes a network: wants root and ip"),
]

OURS, THEIRS = "10.213.77.1", "10.213.77.2"
# As long as PostgreSQL waits for a sign of a silent client, with room for two looks of the other beat.
GIVEN_UP_AFTER_S = int(KEEPALIVES["idle"]) + int(KEEPALIVES["interval"]) * int(KEEPALIVES["count"]) + 20


def ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, capture_output=True)


@dataclass(frozen=True)
class Network:
    """Of the far host, with a cable to here."""

    name: str
    cable: str

    def lay(self) -> None:
        ip(f"netns add {self.name}")
        ip(f"link add {self.cable} type veth peer name far netns {self.name}")
        ip(f"addr add {OURS}/30 dev {self.cable}")
        ip(f"link set {self.cable} up")
        ip(f"-n {self.name} addr add {THEIRS}/30 dev far")
        for device in ("lo", "far"):
            ip(f"-n {self.name} link set {device} up")

    def pull(self) -> None:
        ip(f"link set {self.cable} down")

    def plug_in(self) -> None:
        ip(f"link set {self.cable} up")

    def end(self) -> None:
        for words in (f"link del {self.cable}", f"netns del {self.name}"):
            with suppress(subprocess.CalledProcessError):  # as much as was laid
                ip(words)


@pytest.fixture
def network() -> Iterator[Network]:
    network = Network(f"servicebase-{os.getpid()}", f"sb{os.getpid()}"[:15])
    try:
        network.lay()
        yield network
    finally:
        network.end()


@pytest.fixture
def servers(network: Network, tmp_path: Path) -> Iterator[SharedServers]:
    """Reached by both: from here through their sockets, from there over TCP."""
    servers = SharedServers(tmp_path / "servers")
    try:
        servers.postgres.initialise()
        with open(servers.folder.postgres / "pg_hba.conf", "a") as rules:
            rules.write(f"host all all {THEIRS}/32 trust\n")
        servers.start_postgres("-c", f"listen_addresses={OURS}")
        servers.start_valkey("--port", "6379", "--bind", OURS, "--protected-mode", "no")
        first = environment(tmp_path / "first", free_port(), **servers.environ)
        assert manage("prepare", env=first).returncode == 0
        yield servers
    finally:
        servers.end()


def test_another_beat_takes_over_and_the_old_one_steps_down(
    network: Network, servers: SharedServers, tmp_path: Path
):  # X18
    addresses = {
        "DATABASE_URL": f"postgresql://servicebase@{OURS}/servicebase",
        "REDIS_URL": f"redis://{OURS}:6379/0",
    }
    far, near = Stack(tmp_path / "far", **{**servers.environ, **addresses}), Stack(tmp_path / "near", **servers.environ)
    far.inside = ("ip", "netns", "exec", network.name)
    far.start("--only", "beat")
    try:
        far.wait_for("beat_leads")
        near.start("--only", "beat").wait_for("beat_follows")

        network.pull()
        near.wait_for("beat_leads", within_s=GIVEN_UP_AFTER_S)
        network.plug_in()

        # It learns at once that it does not lead any more, and takes its place behind the other.
        far.wait_for("beat_cannot_lead", within_s=GIVEN_UP_AFTER_S)
        far.wait_for("beat_follows", within_s=GIVEN_UP_AFTER_S)
        assert (far.output.count("beat_leads"), near.output.count("beat_leads")) == (1, 1)
    finally:
        for host in (near, far):
            if host.process.poll() is None:
                host.stop()
            host.end()


def test_test_network_can_be_cut(network: Network):
    ping = ["ip", "netns", "exec", network.name, "timeout", "1", "bash", "-c", f"exec 3<>/dev/tcp/{OURS}/1"]

    def refused_at_once() -> bool:
        return subprocess.run(ping, capture_output=True).returncode == 1

    eventually(refused_at_once)
    network.pull()
    assert not refused_at_once()

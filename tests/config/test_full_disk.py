"""A full disk under the data folder: probes and reads work, writes return 503, and no restart is needed."""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.config.stack import Stack, eventually, manage

pytestmark = [pytest.mark.stack, pytest.mark.skipif(sys.platform != "linux", reason="needs a small file system")]

SIZE_MB = 400
FILES = 10_000
USE_LOG_FILES = """
from django.db import connection
from config.runtime.embedded_servers import NEXT_LOG_FILE_SQL
for number in range({}):
    connection.cursor().execute(NEXT_LOG_FILE_SQL)
"""


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small file system, which only root can mount."""
    folder = tmp_path_factory.mktemp("disk")
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m,nr_inodes={FILES},mode=700", "tmpfs", str(folder)], check=False
    )
    if mount.returncode != 0:
        pytest.skip("this user cannot mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="module")
def stack(disk: Path) -> Iterator[Stack]:
    stack = Stack(disk, SVC_WEB_PROCESSES="2").start().wait_until_up()
    yield stack
    stack.end()


def fill(path: Path) -> None:
    """Use all space of the disk."""
    block = bytes(1024 * 1024)
    with path.open("ab", buffering=0) as target:
        while block:
            try:
                target.write(block)
            except OSError:
                block = block[: len(block) // 2]


def fill_inodes(folder: Path) -> None:
    """Use all inodes of the disk."""
    folder.mkdir()
    with suppress(OSError):
        for number in range(FILES):
            (folder / str(number)).touch()


def web_processes(stack: Stack) -> set[int]:
    web = stack.child("config.runtime.web_server")
    return {web.pid, *(process.pid for process in web.children(recursive=True))}


def create_task(stack: Stack, key: str) -> int:
    body = {"short_description": "disk", "description": os.urandom(3500).hex()}
    return stack.call("POST", "/rest/v1/table/task", body, key=key).status


def test_reads_and_probes_work_on_a_full_disk(stack: Stack, disk: Path):
    key = manage("key", "admin", "test", env=stack.env).stdout.strip()
    before = web_processes(stack)

    fill(disk / "filler")
    assert manage("shell", "-c", USE_LOG_FILES.format(2), env=stack.env).returncode == 0

    counts: Counter[tuple[str, int]] = Counter()
    for _ in range(20):
        fill(disk / "filler")  # repeatedly, because the servers free some space in between
        for path in ("/healthz", "/readyz", "/login/", "/static/servicebase/logo.svg"):
            counts[path, stack.get(path)] += 1
        # Each method has its own metrics, which need space in their files.
        for method in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS"):
            counts[method, stack.call(method, "/api/me", {}, key=key).status] += 1
        counts["POST", create_task(stack, key)] += 1
    assert web_processes(stack) == before
    assert counts == {
        ("/healthz", 200): 20,
        ("/readyz", 200): 20,
        ("/login/", 200): 20,
        ("/static/servicebase/logo.svg", 200): 20,
        ("GET", 200): 20,
        ("PUT", 405): 20,
        ("PATCH", 405): 20,
        ("DELETE", 405): 20,
        ("OPTIONS", 200): 20,
        ("POST", 503): 20,
    }

    (disk / "filler").unlink()
    eventually(lambda: create_task(stack, key) == 201)
    assert web_processes(stack) == before


def test_postgresql_without_space_for_its_log_starts_again_when_space_is_free(stack: Stack, disk: Path):
    before = web_processes(stack)
    fill(disk / "filler")
    assert manage("shell", "-c", USE_LOG_FILES.format(20), env=stack.env).returncode == 1  # more than there are
    stack.wait_for(r"postgres ended \(.*\); it restarts in 4 s")
    assert [stack.get(path) for path in ("/healthz", "/readyz", "/static/servicebase/logo.svg")] == [200, 503, 200]

    (disk / "filler").unlink()
    eventually(lambda: stack.get("/readyz") == 200)
    assert web_processes(stack) == before


def test_sigterm_stops_in_order_on_a_full_disk(stack: Stack, disk: Path):
    (disk / "filler").touch()
    fill_inodes(disk / "fillers")
    fill(disk / "filler")
    assert stack.stop(signal.SIGTERM) == 0
    assert "stopped" in stack.output
    assert "\nTraceback" not in stack.output, "the supervisor must not fail"
    assert stack.left() == []


def test_start_on_a_full_disk_is_refused_in_one_sentence(stack: Stack, disk: Path):
    shutil.rmtree(disk / "fillers", ignore_errors=True)
    fill_inodes(disk / "fillers")  # without space alone, PostgreSQL can often still start
    fill(disk / "filler")
    refused = manage("up", env=stack.env, check=False)

    assert refused.returncode == 1
    assert refused.stderr.startswith("servicebase: ") and len(refused.stderr.splitlines()) == 1

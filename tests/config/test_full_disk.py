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

pytestmark = [pytest.mark.stack, pytest.mark.skipif(sys.platform != "linux", reason="requires a small file system")]

DISK_SIZE_MB = 400
INODE_COUNT = 10_000
FILL_LOG_SCRIPT = """
from django.db import connection
from config.runtime.embedded_servers import NEXT_WAL_FILE_SQL
for number in range({}):
    connection.cursor().execute(NEXT_WAL_FILE_SQL)
"""


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small file system, which only root can mount."""
    folder = tmp_path_factory.mktemp("disk")
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE_MB}m,nr_inodes={INODE_COUNT},mode=700", "tmpfs", str(folder)],
        check=False,
    )
    if mount.returncode != 0:
        pytest.skip("this user cannot mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="module")
def stack(small_disk: Path) -> Iterator[Stack]:
    stack = Stack(small_disk, SVC_WEB_PROCESSES="2").start().wait_until_up()
    yield stack
    stack.end()


def fill_disk(path: Path) -> None:
    """Uses all space of the disk."""
    block = bytes(1024 * 1024)
    with path.open("ab", buffering=0) as file:
        while block:
            try:
                file.write(block)
            except OSError:
                block = block[: len(block) // 2]


def fill_inodes(folder: Path) -> None:
    """Uses all inodes of the disk."""
    folder.mkdir()
    with suppress(OSError):
        for number in range(INODE_COUNT):
            (folder / str(number)).touch()


def web_process_ids(stack: Stack) -> set[int]:
    web_server = stack.child("config.runtime.web_server")
    return {web_server.pid, *(process.pid for process in web_server.children(recursive=True))}


def create_task(stack: Stack, key: str) -> int:
    body = {"short_description": "disk", "description": os.urandom(3500).hex()}
    return stack.call("POST", "/rest/v1/table/task", body, key=key).status


def test_reads_and_probes_work_on_a_full_disk(stack: Stack, small_disk: Path):
    key = manage("key", "admin", "test", env=stack.env).stdout.strip()
    pids_before = web_process_ids(stack)

    fill_disk(small_disk / "filler")
    assert manage("shell", "-c", FILL_LOG_SCRIPT.format(2), env=stack.env).returncode == 0

    status_counts: Counter[tuple[str, int]] = Counter()
    for _ in range(20):
        fill_disk(small_disk / "filler")  # repeatedly, because the servers free some space in between
        for path in ("/healthz", "/readyz", "/login/", "/static/servicebase/logo.svg"):
            status_counts[path, stack.get(path)] += 1
        # Each method has its own metrics, which need space in their files.
        for method in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS"):
            status_counts[method, stack.call(method, "/api/me", {}, key=key).status] += 1
        status_counts["POST", create_task(stack, key)] += 1
    assert web_process_ids(stack) == pids_before
    assert status_counts == {
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

    (small_disk / "filler").unlink()
    eventually(lambda: create_task(stack, key) == 201)
    assert web_process_ids(stack) == pids_before


def test_postgresql_without_space_for_its_log_restarts_when_space_is_free(stack: Stack, small_disk: Path):
    pids_before = web_process_ids(stack)
    fill_disk(small_disk / "filler")
    assert manage("shell", "-c", FILL_LOG_SCRIPT.format(20), env=stack.env).returncode == 1  # more than are free
    stack.wait_for(r"postgres stopped \(.*\) and will restart in 4 s")
    assert [stack.get(path) for path in ("/healthz", "/readyz", "/static/servicebase/logo.svg")] == [200, 503, 200]

    (small_disk / "filler").unlink()
    eventually(lambda: stack.get("/readyz") == 200)
    assert web_process_ids(stack) == pids_before


def test_sigterm_stops_cleanly_on_a_full_disk(stack: Stack, small_disk: Path):
    (small_disk / "filler").touch()
    fill_inodes(small_disk / "fillers")
    fill_disk(small_disk / "filler")
    assert stack.stop(signal.SIGTERM) == 0
    assert "stopped" in stack.output
    assert "\nTraceback" not in stack.output, "the supervisor must not fail"
    assert stack.leftover_processes() == []


def test_start_on_a_full_disk_is_refused_in_one_sentence(stack: Stack, small_disk: Path):
    shutil.rmtree(small_disk / "fillers", ignore_errors=True)
    fill_inodes(small_disk / "fillers")  # without space alone, PostgreSQL can often still start
    fill_disk(small_disk / "filler")
    refusal = manage("up", env=stack.env, check=False)

    assert refusal.returncode == 1
    assert refusal.stderr.startswith("servicebase: ") and len(refusal.stderr.splitlines()) == 1

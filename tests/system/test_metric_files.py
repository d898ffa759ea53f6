"""Metric files on a disk that is temporarily full."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.mmap_dict import MmapedDict

from system.monitoring import metric_files
from system.monitoring.metric_files import BufferedDict
from tests.config.stack import eventually


def stored_values(path: Path) -> dict[str, float]:
    if not path.exists() or not path.stat().st_size:
        return {}
    return {key: value for key, value, _, _ in MmapedDict.read_all_values_from_file(str(path))}


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Writes fail as on a full disk while `disk["is_full"]` is true."""
    disk_state = {"is_full": False}
    original_pwrite = os.pwrite

    def pwrite(*arguments: Any) -> int:
        if disk_state["is_full"]:
            raise OSError(28, "No space left on device")
        return original_pwrite(*arguments)

    monkeypatch.setattr(metric_files.os, "pwrite", pwrite)  # type: ignore[attr-defined]
    return disk_state


def test_values_are_read_back_by_the_library(tmp_path: Path):
    metrics = BufferedDict(str(tmp_path / "counter_1.db"))
    for number in range(3000):  # more than the first 64 KB
        metrics.write_value(f"key {number} ü", number, 0.0)
    metric_files.writer.write()

    assert stored_values(tmp_path / "counter_1.db") == {f"key {number} ü": float(number) for number in range(3000)}
    metrics.close()


def test_values_are_written_after_a_full_disk(tmp_path: Path, disk: dict[str, bool]):
    path = tmp_path / "counter_1.db"
    metrics = BufferedDict(str(path))
    metrics.write_value("a", 1.0, 0.0)
    metric_files.writer.write()
    disk["is_full"] = True
    metrics.write_value("a", 2.0, 0.0)
    metrics.write_value("b", 5.0, 0.0)
    metric_files.writer.write()
    assert stored_values(path) == {"a": 1.0} and metrics.read_value("a")[0] == 2.0

    disk["is_full"] = False
    metric_files.writer.write()
    assert stored_values(path) == {"a": 2.0, "b": 5.0}


def test_file_created_on_a_full_disk_reads_as_empty(tmp_path: Path, disk: dict[str, bool]):
    disk["is_full"] = True
    metrics = BufferedDict(str(tmp_path / "counter_1.db"))
    metrics.write_value("a", 1.0, 0.0)
    metric_files.writer.write()

    assert stored_values(tmp_path / "counter_1.db") == {}


def test_values_are_written_in_the_background(tmp_path: Path):
    metrics = BufferedDict(str(tmp_path / "counter_1.db"))
    metrics.write_value("a", 1.0, 0.0)

    assert eventually(lambda: stored_values(tmp_path / "counter_1.db") == {"a": 1.0})


def test_forked_process_writes_its_own_values(tmp_path: Path):
    BufferedDict(str(tmp_path / "counter_1.db"))
    child_pid = os.fork()
    if not child_pid:
        metrics = BufferedDict(str(tmp_path / "counter_2.db"))
        metrics.write_value("a", 1.0, 0.0)
        time.sleep(30)
        os._exit(0)
    try:
        assert eventually(lambda: stored_values(tmp_path / "counter_2.db") == {"a": 1.0})
    finally:
        os.kill(child_pid, signal.SIGKILL)
        os.waitpid(child_pid, 0)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="root must mount a file system")
def test_process_survives_a_real_full_disk(tmp_path: Path):
    """With the memory-mapped files of the library, it would end with SIGBUS."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(tmp_path)], check=False).returncode:
        pytest.skip("no file system can be mounted here")
    program = f"""
import os
from system.monitoring import metric_files
metrics = metric_files.BufferedDict({str(tmp_path / "counter_1.db")!r})
with open({str(tmp_path / "filler")!r}, "wb", buffering=0) as filler:
    try:
        while filler.write(b"x" * 4096): pass
    except OSError: pass
for number in range(3000):
    metrics.write_value(f"key {{number}}", number, 0.0)
metric_files.writer.write()
print("alive", metrics.read_value("key 2999")[0])
os.unlink({str(tmp_path / "filler")!r})
"""
    try:
        completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert (completed.returncode, completed.stdout) == (0, "alive 2999.0\n"), completed.stderr
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)

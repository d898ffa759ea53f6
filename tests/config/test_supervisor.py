"""The supervisor, with small child processes."""

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from config.runtime.data_folder import AlreadyRunning, DataFolder
from config.runtime.supervisor import MAX_LINE_BYTES, Child, Supervisor
from tests.config.stack import eventually

SLEEPING_COMMAND = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
STUBBORN_COMMAND = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)",
]
# The last line is written while the relay waits after the previous line.
TALKATIVE_SCRIPT = """
import signal, sys, time
def stop(*_):
    print("stopping", flush=True)
    time.sleep(0.005)
    sys.exit("the last line")
signal.signal(signal.SIGTERM, stop)
print("up", flush=True)
signal.pause()
"""


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    data_folder = DataFolder(tmp_path / "data")
    data_folder.prepare()
    return data_folder


class WatchedSupervisor(Supervisor):
    """A supervisor that runs in a thread; it appends what `watch` returns to `results`."""

    def begin(self) -> None:
        self.results: list[str] = []
        self.watcher = threading.Thread(target=lambda: self.results.append(self.watch()), daemon=True)
        self.watcher.start()

    def end(self) -> None:
        if hasattr(self, "watcher"):
            self.events.put(signal.SIGINT)
            self.watcher.join(10)


@pytest.fixture
def supervisor(folder: DataFolder) -> Iterator[WatchedSupervisor]:
    lock = folder.lock("up")
    watched_supervisor = WatchedSupervisor(lock, out=io.StringIO())
    yield watched_supervisor
    watched_supervisor.end()
    watched_supervisor.stop([[child.name for child in watched_supervisor.children]], lambda name: 0.0)
    watched_supervisor.close()


def printed_text(supervisor: Supervisor) -> str:
    assert isinstance(supervisor.out, io.StringIO)
    return supervisor.out.getvalue()


def test_log_lines_have_the_name_of_their_child(supervisor: WatchedSupervisor):
    supervisor.start(Child("talker", [sys.executable, "-c", "print('hello'); print('there')"]))

    eventually(lambda: "  talker | hello\n  talker | there\n" in printed_text(supervisor))


def test_text_that_arrives_in_pieces_is_copied_whole(supervisor: WatchedSupervisor):
    script = "import os, time; os.write(1, b'caf\\xc3'); time.sleep(0.1); os.write(1, b'\\xa9\\nno line end')"
    supervisor.start(Child("talker", [sys.executable, "-c", script]))

    eventually(lambda: printed_text(supervisor) == "  talker | café\n  talker | no line end\n")


def test_overlong_line_is_split_without_loss(supervisor: WatchedSupervisor):
    supervisor.start(Child("talker", [sys.executable, "-c", "print('x' * 3_000_000)"]))

    eventually(lambda: printed_text(supervisor).count("x") == 3_000_000)
    assert max(map(len, printed_text(supervisor).splitlines())) < 1.2 * MAX_LINE_BYTES


def test_stop_waits_for_the_last_lines(supervisor: WatchedSupervisor):
    supervisor.start(Child("talker", [sys.executable, "-c", TALKATIVE_SCRIPT]))
    eventually(lambda: "up" in printed_text(supervisor))

    supervisor.stop([["talker"]], lambda name: 10.0)

    assert "the last line" in printed_text(supervisor)


def test_crashing_child_restarts_with_growing_delays(supervisor: WatchedSupervisor):
    child = Child("short", [sys.executable, "-c", "raise SystemExit(3)"])
    supervisor.begin()
    supervisor.start(child)

    eventually(lambda: "short stopped (exit code 3) and will restart in 2 s" in printed_text(supervisor))
    assert printed_text(supervisor).index("in 1 s") < printed_text(supervisor).index("in 2 s")
    supervisor.events.put(signal.SIGINT)
    eventually(lambda: supervisor.results == ["interrupt"])


def test_leftover_processes_are_killed_before_a_restart(supervisor: WatchedSupervisor):
    script = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True)"
    supervisor.begin()
    supervisor.start(Child("parent", [sys.executable, "-c", script]))
    eventually(lambda: "parent | " in printed_text(supervisor) and "parent stopped" in printed_text(supervisor))
    orphan_pid = int(printed_text(supervisor).split("parent | ")[1].split()[0])

    eventually(lambda: not psutil.pid_exists(orphan_pid) or psutil.Process(orphan_pid).status() == psutil.STATUS_ZOMBIE)


def test_children_stop_in_order_and_a_stubborn_one_is_killed(supervisor: WatchedSupervisor):
    first_child, second_child = Child("first", STUBBORN_COMMAND), Child("second", SLEEPING_COMMAND)
    for child in (first_child, second_child):
        supervisor.start(child)
    eventually(lambda: printed_text(supervisor).count("up\n") == 2)

    supervisor.stop([["first"], ["second"]], lambda name: 0.3)

    assert "first did not stop in time and was killed" in printed_text(supervisor)
    assert first_child.process is not None
    assert second_child.process is not None
    assert (first_child.process.returncode, second_child.process.returncode) == (-signal.SIGKILL, -signal.SIGTERM)


def test_reaper_ends_everything_when_the_supervisor_is_killed(folder: DataFolder):
    program = f"""
import os, time
from pathlib import Path
from config.runtime.data_folder import DataFolder
from config.runtime.supervisor import Child, Supervisor
lock = DataFolder(Path({str(folder.root)!r})).lock("up")
supervisor = Supervisor(lock, out=open(os.devnull, "w"))
pids = [supervisor.start(Child("a", {SLEEPING_COMMAND!r})).pid, supervisor.start(Child("b", {STUBBORN_COMMAND!r})).pid]
print(*pids, supervisor.reaper.pid, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        with pytest.raises(AlreadyRunning):
            folder.lock("up")
        parent.kill()

    eventually(lambda: not any(psutil.pid_exists(pid) for pid in pids), timeout_s=15)
    os.close(folder.lock("up"))


class TestKilledReaper:
    def test_data_folder_stays_locked(self, supervisor: WatchedSupervisor, folder: DataFolder):
        supervisor.reaper.kill()
        supervisor.reaper.wait()

        with pytest.raises(AlreadyRunning):
            folder.lock("up")

    def test_new_reaper_starts_and_still_ends_everything(self, folder: DataFolder):
        program = f"""
import os, threading
from pathlib import Path
from config.runtime.data_folder import DataFolder
from config.runtime.supervisor import Child, Supervisor
lock = DataFolder(Path({str(folder.root)!r})).lock("up")
supervisor = Supervisor(lock, out=open(os.devnull, "w"))
first_reaper = supervisor.reaper
pids = [supervisor.start(Child("a", {SLEEPING_COMMAND!r})).pid]
first_reaper.kill()
while supervisor.reaper is first_reaper:
    pass
pids.append(supervisor.start(Child("b", {SLEEPING_COMMAND!r})).pid)
print(*pids, supervisor.reaper.pid, flush=True)
threading.Event().wait(60)
"""
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
            assert parent.stdout is not None
            pids = [int(word) for word in parent.stdout.readline().split()]
            parent.kill()

        assert len(pids) == 3
        eventually(lambda: not any(psutil.pid_exists(pid) for pid in pids), timeout_s=15)
        os.close(folder.lock("up"))


def test_lock_ends_with_its_holder(folder: DataFolder):
    lock_descriptor = folder.lock("up")
    with pytest.raises(AlreadyRunning, match=f"process {os.getpid()}"):
        folder.lock("up")
    os.close(lock_descriptor)

    os.close(folder.lock("up"))


def test_secret_is_created_once_with_private_permissions(folder: DataFolder):
    secrets = iter(["first", "second"])

    assert folder.secret("key", lambda: next(secrets)) == "first"
    assert folder.secret("key", lambda: next(secrets)) == "first"
    assert (folder.secrets / "key").stat().st_mode & 0o077 == 0


def test_concurrent_starts_share_one_secret(folder: DataFolder):
    barrier, secrets = threading.Barrier(8), []

    def read_secret(number: int) -> None:
        barrier.wait()
        secrets.append(folder.secret("key", lambda: f"made by {number}"))

    threads = [threading.Thread(target=read_secret, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(secrets)) == 1


def test_long_data_path_gets_short_socket_paths(tmp_path: Path):
    deep_folder = DataFolder(tmp_path / ("x" * 120))
    deep_folder.prepare()

    assert len(os.fsencode(deep_folder.sockets)) < 90
    assert deep_folder.sockets.stat().st_mode & 0o077 == 0
    deep_folder.sockets.rmdir()

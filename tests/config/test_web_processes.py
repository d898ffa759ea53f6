"""The web processes: forked from one parent that loaded the application, replaced when one ends or the code changes."""

import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from config.runtime import web_processes
from tests.config.deployment import copy_image
from tests.config.stack import Stack, eventually

pytestmark = pytest.mark.stack

RESPONSE_SOURCE = "system/monitoring/health.py"
NO_FORK_CODE = (
    "from config.runtime import web_processes, web_server; web_processes.HAS_FORK = False; web_server.main('parent')"
)


@pytest.fixture(scope="module")
def running_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Runs a copy of the code, which tests change."""
    root = tmp_path_factory.mktemp("web")
    stack = Stack(root / "data", SVC_WEB_PROCESSES="2")
    stack.code_folder = copy_image(root / "code")
    yield stack.start().wait_until_up()
    stack.stop()
    stack.end()


def parent_of(stack: Stack) -> psutil.Process:
    """Waits for the parent, because a process has no command line during its `exec`."""

    def find_parent() -> psutil.Process | None:
        with suppress(AssertionError):
            return stack.child("web_server")
        return None

    parent: psutil.Process = eventually(find_parent)
    return parent


def process_ids(stack: Stack) -> set[int]:
    return {child.pid for child in parent_of(stack).children()}


def both_process_ids(stack: Stack) -> set[int]:
    """Waits until exactly two web processes are running, and returns their ids."""
    pids: set[int] = eventually(lambda: len(running_pids := process_ids(stack)) == 2 and running_pids)
    return pids


def response_text(stack: Stack) -> str:
    with urllib.request.urlopen(stack.url + "/healthz", timeout=10) as response:
        text: str = response.read().decode().strip()
    return text


@contextmanager
def status_counts_under_load(stack: Stack) -> Iterator["Counter[str]"]:
    """Counts the statuses of requests by four clients; each request opens a connection."""
    status_counts: Counter[str] = Counter()
    stop_event = threading.Event()

    def request_repeatedly() -> None:
        while not stop_event.is_set():
            try:
                status_counts[response_text(stack)] += 1
            except OSError as error:
                status_counts[repr(error)] += 1

    clients = [threading.Thread(target=request_repeatedly) for _ in range(4)]
    for client in clients:
        client.start()
    try:
        yield status_counts
    finally:
        stop_event.set()
        for client in clients:
            client.join()


def change_code(stack: Stack, old_text: str, new_text: str) -> None:
    path = stack.code_folder / RESPONSE_SOURCE
    text = path.read_text()
    assert old_text in text
    path.write_text(text.replace(old_text, new_text))


def test_parent_has_no_thread_and_no_connection(running_stack: Stack):
    parent = parent_of(running_stack)

    (listener,) = parent.net_connections("all")
    assert (listener.status, listener.laddr.port) == (psutil.CONN_LISTEN, running_stack.port)
    assert parent.num_threads() == 1


def test_killed_process_is_replaced_by_the_same_parent(running_stack: Stack):
    parent_pid, pids_before = parent_of(running_stack).pid, both_process_ids(running_stack)
    victim_pid = pids_before.copy().pop()

    os.kill(victim_pid, signal.SIGKILL)

    eventually(lambda: len(process_ids(running_stack) - pids_before) == 1)
    running_stack.wait_for(rf"Web process {victim_pid} stopped \(killed by SIGKILL\)")
    assert parent_of(running_stack).pid == parent_pid
    assert response_text(running_stack) == "ok"


def test_both_processes_killed_at_once_are_replaced(running_stack: Stack):
    pids_before = both_process_ids(running_stack)

    for victim_pid in pids_before:
        os.kill(victim_pid, signal.SIGKILL)

    eventually(lambda: len(process_ids(running_stack) - pids_before) == 2)
    assert response_text(running_stack) == "ok"


def test_new_code_answers_after_sighup_and_no_request_is_refused(running_stack: Stack):
    parent_pid, pids_before = parent_of(running_stack).pid, both_process_ids(running_stack)
    change_code(running_stack, '"ok\\n"', '"new\\n"')

    with status_counts_under_load(running_stack) as status_counts:
        running_stack.process.send_signal(signal.SIGHUP)
        eventually(lambda: not pids_before & process_ids(running_stack) and len(process_ids(running_stack)) == 2)
        eventually(lambda: response_text(running_stack) == "new")

    assert set(status_counts) == {"ok", "new"}, status_counts
    assert parent_of(running_stack).pid == parent_pid
    assert parent_of(running_stack).num_threads() == 1


def test_code_that_does_not_load_replaces_nothing(running_stack: Stack):
    pids_before = both_process_ids(running_stack)
    change_code(running_stack, "import threading", "import threading, a_module_that_is_missing")
    try:
        running_stack.process.send_signal(signal.SIGHUP)
        running_stack.wait_for("The new code failed to load")
        assert process_ids(running_stack) == pids_before
        assert response_text(running_stack) == "new"
    finally:
        change_code(running_stack, ", a_module_that_is_missing", "")

    running_stack.process.send_signal(signal.SIGHUP)

    eventually(lambda: not pids_before & process_ids(running_stack) and len(process_ids(running_stack)) == 2)


def test_process_that_dies_during_a_rolling_restart_is_replaced(running_stack: Stack):
    pids_before = both_process_ids(running_stack)
    with status_counts_under_load(running_stack) as status_counts:
        running_stack.process.send_signal(signal.SIGHUP)
        os.kill(pids_before.copy().pop(), signal.SIGKILL)
        eventually(lambda: not pids_before & process_ids(running_stack) and len(process_ids(running_stack)) == 2)

    assert status_counts["new"] > 0


def test_second_sighup_during_a_rolling_restart_takes_effect_afterwards(running_stack: Stack):
    change_code(running_stack, '"new\\n"', '"second\\n"')
    running_stack.process.send_signal(signal.SIGHUP)
    eventually(lambda: response_text(running_stack) == "second")
    change_code(running_stack, '"second\\n"', '"third\\n"')

    running_stack.process.send_signal(signal.SIGHUP)

    eventually(lambda: response_text(running_stack) == "third")
    eventually(lambda: len(process_ids(running_stack)) == 2)


def test_without_fork_only_the_process_that_needs_the_report_inherits_it(monkeypatch: pytest.MonkeyPatch):
    """Otherwise the supervisor would wait for the end of the report, and never print the welcome text."""
    report, web_end = socket.socketpair()
    with report, web_end:
        os.set_inheritable(web_end.fileno(), True)
        parent = web_processes.Parent(cast(Any, SimpleNamespace(web_processes=1)), web_end.fileno(), 0, ())
        assert not os.get_inheritable(parent.report_fd)
        monkeypatch.setattr(web_processes, "command", lambda *_: [sys.executable, "-c", ""])
        os.waitpid(web_processes.spawn("prepare", parent.report_fd), 0)
        assert not os.get_inheritable(parent.report_fd)


def test_without_fork_each_process_loads_the_application(running_stack: Stack, tmp_path: Path):
    """As on macOS."""
    other_stack = Stack(tmp_path, SVC_PROCESS="web", SVC_WEB_PROCESSES="2")
    process = subprocess.Popen([sys.executable, "-c", NO_FORK_CODE], cwd=running_stack.code_folder, env=other_stack.env)
    try:
        parent = psutil.Process(process.pid)
        eventually(lambda: other_stack.get("/healthz") == 200)
        pids_before = {child.pid for child in parent.children()}
        for victim_pid in pids_before:
            os.kill(victim_pid, signal.SIGKILL)
        eventually(lambda: len({child.pid for child in parent.children()} - pids_before) == 2)
        eventually(lambda: other_stack.get("/healthz") == 200)
        process.terminate()
        assert process.wait(40) == 0
    finally:
        with suppress(psutil.NoSuchProcess):
            for child in parent.children():
                child.kill()
        process.kill()
        process.wait()

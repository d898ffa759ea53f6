"""The web processes: forked from one parent that loaded the application, replaced when one ends or the code changes."""

import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.config.deployment import copy_image
from tests.config.stack import Stack, eventually

pytestmark = pytest.mark.stack

ANSWER = "system/monitoring/health.py"
WITHOUT_FORK = (
    "from config.runtime import web_processes, web_server; web_processes.HAS_FORK = False; web_server.main('parent')"
)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Runs a copy of the code, which tests change."""
    root = tmp_path_factory.mktemp("web")
    stack = Stack(root / "data", SVC_WEB_PROCESSES="2")
    stack.code = copy_image(root / "code")
    yield stack.start().wait_until_up()
    stack.stop()
    stack.end()


def parent_of(stack: Stack) -> psutil.Process:
    """At the moment of its `exec` it has no command line."""

    def found() -> psutil.Process | None:
        with suppress(AssertionError):
            return stack.child("web_server")
        return None

    parent: psutil.Process = eventually(found)
    return parent


def processes(stack: Stack) -> set[int]:
    return {child.pid for child in parent_of(stack).children()}


def both(stack: Stack) -> set[int]:
    """The two that serve, once no other fork runs."""
    pids: set[int] = eventually(lambda: len(found := processes(stack)) == 2 and found)
    return pids


def answer(stack: Stack) -> str:
    with urllib.request.urlopen(stack.url + "/healthz", timeout=10) as response:
        text: str = response.read().decode().strip()
    return text


@contextmanager
def under_load(stack: Stack) -> Iterator["Counter[str]"]:
    """Counts what requests of four clients are answered; each opens a connection of its own."""
    counts: Counter[str] = Counter()
    has_ended = threading.Event()

    def ask() -> None:
        while not has_ended.is_set():
            try:
                counts[answer(stack)] += 1
            except OSError as error:
                counts[repr(error)] += 1

    clients = [threading.Thread(target=ask) for _ in range(4)]
    for client in clients:
        client.start()
    try:
        yield counts
    finally:
        has_ended.set()
        for client in clients:
            client.join()


def change(stack: Stack, former: str, new: str) -> None:
    path = stack.code / ANSWER
    text = path.read_text()
    assert former in text
    path.write_text(text.replace(former, new))


def test_parent_has_no_thread_and_no_connection(running: Stack):
    parent = parent_of(running)

    (listener,) = parent.net_connections("all")
    assert (listener.status, listener.laddr.port) == (psutil.CONN_LISTEN, running.port)
    assert parent.num_threads() == 1


def test_killed_process_is_replaced_by_the_same_parent(running: Stack):
    parent, before = parent_of(running).pid, both(running)
    victim = before.copy().pop()

    os.kill(victim, signal.SIGKILL)

    eventually(lambda: len(processes(running) - before) == 1)
    running.wait_for(rf"Web process {victim} ended \(killed by SIGKILL\)")
    assert parent_of(running).pid == parent
    assert answer(running) == "ok"


def test_both_processes_killed_at_once_are_replaced(running: Stack):
    before = both(running)

    for victim in before:
        os.kill(victim, signal.SIGKILL)

    eventually(lambda: len(processes(running) - before) == 2)
    assert answer(running) == "ok"


def test_new_code_answers_after_sighup_and_no_request_is_refused(running: Stack):
    parent, before = parent_of(running).pid, both(running)
    change(running, '"ok\\n"', '"new\\n"')

    with under_load(running) as counts:
        running.process.send_signal(signal.SIGHUP)
        eventually(lambda: not before & processes(running) and len(processes(running)) == 2)
        eventually(lambda: answer(running) == "new")

    assert set(counts) == {"ok", "new"}, counts
    assert parent_of(running).pid == parent
    assert parent_of(running).num_threads() == 1


def test_code_that_does_not_load_replaces_nothing(running: Stack):
    before = both(running)
    change(running, "import threading", "import threading, a_module_that_is_missing")
    try:
        running.process.send_signal(signal.SIGHUP)
        running.wait_for("The new code does not load")
        assert processes(running) == before
        assert answer(running) == "new"
    finally:
        change(running, ", a_module_that_is_missing", "")

    running.process.send_signal(signal.SIGHUP)

    eventually(lambda: not before & processes(running) and len(processes(running)) == 2)


def test_process_that_dies_during_a_rolling_restart_is_replaced(running: Stack):
    before = both(running)
    with under_load(running) as counts:
        running.process.send_signal(signal.SIGHUP)
        os.kill(before.copy().pop(), signal.SIGKILL)
        eventually(lambda: not before & processes(running) and len(processes(running)) == 2)

    assert counts["new"] > 0


def test_second_sighup_during_a_rolling_restart_is_obeyed_afterwards(running: Stack):
    change(running, '"new\\n"', '"second\\n"')
    running.process.send_signal(signal.SIGHUP)
    eventually(lambda: answer(running) == "second")
    change(running, '"second\\n"', '"third\\n"')

    running.process.send_signal(signal.SIGHUP)

    eventually(lambda: answer(running) == "third")
    eventually(lambda: len(processes(running)) == 2)


def test_without_fork_each_process_loads_the_application(running: Stack, tmp_path: Path):
    """As on macOS."""
    other = Stack(tmp_path, SVC_PROCESS="web", SVC_WEB_PROCESSES="2")
    process = subprocess.Popen([sys.executable, "-c", WITHOUT_FORK], cwd=running.code, env=other.env)
    try:
        parent = psutil.Process(process.pid)
        eventually(lambda: other.get("/healthz") == 200)
        before = {child.pid for child in parent.children()}
        for victim in before:
            os.kill(victim, signal.SIGKILL)
        eventually(lambda: len({child.pid for child in parent.children()} - before) == 2)
        eventually(lambda: other.get("/healthz") == 200)
        process.terminate()
        assert process.wait(40) == 0
    finally:
        with suppress(psutil.NoSuchProcess):
            for child in parent.children():
                child.kill()
        process.kill()
        process.wait()

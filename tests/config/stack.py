"""Starts the whole product as a user does, with a separate folder and port."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from config.env import ROOT

DEFAULT_TIMEOUT_S = 60.0
# A start takes seconds, or minutes on a busy machine.
START_TIMEOUT_S = 180.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def outer_environment(**variables: str) -> dict[str, str]:
    """The environment without the settings of the test run, and with these variables."""
    outer_variables = {name: value for name, value in os.environ.items() if not name.startswith(("SVC_", "DJANGO_"))}
    for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DEBUG", "ALLOWED_HOSTS"):
        outer_variables.pop(name, None)
    return {**outer_variables, **variables}


def environment(data_folder: Path, port: int, **variables: str) -> dict[str, str]:
    settings = {"SVC_DATA_DIR": str(data_folder), "SVC_PORT": str(port), "SVC_WEB_PROCESSES": "1"}
    return outer_environment(**{**settings, **variables})


def manage(*arguments: str, env: dict[str, str], cwd: Path = ROOT, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


def eventually(condition: Callable[[], Any], timeout_s: float = DEFAULT_TIMEOUT_S) -> Any:
    """Waits until the condition returns a true value and returns it; raises AssertionError after the timeout."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.05)
    raise AssertionError(f"did not become true within {timeout_s:.0f} s")


@dataclass(frozen=True)
class StackResponse:
    status: int
    body: Any


class Stack:
    """A running `manage.py up`."""

    code_folder = ROOT
    """The project that runs."""
    command_prefix: Sequence[str] = ()
    """A command that runs the command after it, for example in another network namespace."""

    def __init__(self, data_folder: Path, **variables: str) -> None:
        self.data_folder = data_folder
        self.port = free_port()
        self.env = environment(data_folder, self.port, **variables)
        self.lines: list[str] = []
        self.seen_processes: dict[int, psutil.Process] = {}
        self.process: subprocess.Popen[str]
        self.output_reader: threading.Thread

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *arguments: str) -> "Stack":
        self.process = subprocess.Popen(
            [*self.command_prefix, sys.executable, "manage.py", "up", *arguments],
            cwd=self.code_folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.output_reader = threading.Thread(target=self._read_output, args=(self.process,), daemon=True)
        self.output_reader.start()
        return self

    def _read_output(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            self.lines.extend(iter(process.stdout.readline, ""))

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def wait_for(self, pattern: str, timeout_s: float = DEFAULT_TIMEOUT_S) -> "re.Match[str]":
        try:
            match: re.Match[str] = eventually(lambda: re.search(pattern, self.output), timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{pattern!r} {error}; the output was:\n{self.output[-3000:]}") from None
        return match

    def wait_until_up(self) -> "Stack":
        self.wait_for(r"Stop with Ctrl-C", START_TIMEOUT_S)
        self.record_processes()
        return self

    def record_processes(self) -> None:
        """Records every process of this stack, to check later that none is left."""
        for child in psutil.Process(self.process.pid).children(recursive=True):
            self.seen_processes[child.pid] = child

    def child(self, command: str) -> psutil.Process:
        """The direct child of the supervisor whose command contains this text."""
        for child in psutil.Process(self.process.pid).children():
            if command in " ".join(child.cmdline()):
                return child
        raise AssertionError(f"no child runs {command}")

    def beat(self) -> psutil.Process:
        """The process of beat, a fork of the worker's parent."""
        return psutil.Process(self.beat_pid())

    def beat_pid(self) -> int:
        """The process id in the log line of beat; 0 until it has started."""
        lines = [line for line in self.lines if "beat_started" in line]
        match = re.search(r"process\W+(\d+)", lines[-1]) if lines else None
        return int(match.group(1)) if match else 0

    def kill(self, command: str) -> None:
        """Kills a child and its descendants, as if memory had run out; the supervisor restarts the child."""
        parent = self.child(command)
        for child in (*parent.children(recursive=True), parent):
            child.kill()

    def kill_all(self) -> None:
        """Kills all processes including supervisor and reaper, as in a power failure."""
        self.record_processes()
        for process in (self.process, *self.seen_processes.values()):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()

    def leftover_processes(self) -> list[str]:
        """The command lines of recorded processes that are still running."""
        return [
            " ".join(process.cmdline())
            for process in self.seen_processes.values()
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        ]

    def get(self, path: str) -> int:
        try:
            with urllib.request.urlopen(self.url + path, timeout=5) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def call(self, method: str, path: str, body: Any = None, *, key: str, **headers: str) -> StackResponse:
        """Sends a request with this access key and returns the response."""
        all_headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **headers}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, None if body is None else json.dumps(body), all_headers)
            response = connection.getresponse()
            return StackResponse(response.status, json.loads(response.read()))

    def stop(self, signal_number: int = signal.SIGINT) -> int:
        self.record_processes()
        self.process.send_signal(signal_number)
        return self.process.wait(60)

    def end(self) -> None:
        """Ends all processes, in whatever state the test left them."""
        if self.process.poll() is None:
            self.record_processes()
            self.process.kill()
            self.process.wait()
        for process in self.seen_processes.values():
            if process.is_running():
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        self.output_reader.join(10)

"""The sandbox: the limits of a confined child, and the outcomes of a run."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from system import sandbox
from system.sandbox import child, process

MIB = 2**20
# Attempts what a program under the control of an attacker would attempt.
HOSTILE_PROGRAM = """
import json, os, socket, subprocess, sys
def attempt(action):
    try:
        action()
    except BaseException as error:
        return type(error).__name__
    return "done"
def answer(data):
    return json.dumps({
        "read a file": attempt(lambda: open("/etc/hostname").read()),
        "write a file": attempt(lambda: open("/tmp/servicebase-escaped", "w").write("x")),
        "connect": attempt(lambda: socket.socket().connect(("127.0.0.1", 9))),
        "start a program": attempt(lambda: subprocess.run(["true"])),
        "fork": attempt(lambda: os.fork()),
        "allocate": attempt(lambda: bytearray(2**31)),
        "environment": {name: value for name, value in os.environ.items() if name != "LC_CTYPE"},
        "folder": os.getcwd(),
        "user": os.getuid(),
    }).encode()
prepare = lambda arguments: answer
"""
ECHO_PROGRAM = "prepare = lambda arguments: lambda data: data + ''.join(arguments).encode()"


def limits_with(**changes: Any) -> sandbox.RunLimits:
    return sandbox.RunLimits(**{"memory_bytes": 1024 * MIB, "cpu_s": 5, "run_s": 5.0, "output_bytes": MIB, **changes})


@pytest.fixture
def run_program(tmp_path: Path) -> Any:
    def run(source: str, data: bytes = b"", *arguments: str, timeout_s: float = 20.0, **changes: Any) -> Any:
        (tmp_path / "program.py").write_text(source)
        limits = limits_with(**changes)
        deadline = time.monotonic() + timeout_s
        return sandbox.run(tmp_path / "program.py", arguments, data, limits, deadline=deadline)

    yield run
    assert not [child for child in psutil.Process().children() if str(tmp_path) in " ".join(child.cmdline())]


def test_result_of_the_program_is_returned(run_program: Any):
    result = run_program(ECHO_PROGRAM, b"abc", "x", "y")

    assert (result.status, result.output) == (sandbox.RunStatus.DONE, b"abcxy")


def test_compromised_program_can_only_compute(run_program: Any, monkeypatch: pytest.MonkeyPatch):  # C22
    monkeypatch.setenv("SECRET_KEY", "canary")
    outcomes = json.loads(run_program(HOSTILE_PROGRAM).output)

    for attempt in ("read a file", "write a file", "connect", "start a program", "fork", "allocate"):
        if attempt == "fork" and sys.platform != "linux":
            continue  # otherwise the limit counts all processes of the user
        assert outcomes[attempt] not in ("done", "ConnectionRefusedError"), attempt
    assert (outcomes["environment"], outcomes["folder"]) == ({}, "/")
    assert outcomes["user"] != 0


def test_child_inherits_no_secret_and_has_its_own_process_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # C22
    monkeypatch.setenv("SECRET_KEY", "canary")
    (tmp_path / "program.py").write_text(ECHO_PROGRAM)
    child_process = process.start(tmp_path / "program.py", [], limits_with())
    try:
        assert "canary" not in str(psutil.Process(child_process.pid).environ())
        assert os.getpgid(child_process.pid) == child_process.pid
    finally:
        process.kill(child_process)


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("", sandbox.RunStatus.FAILED),
        ("import sys; sys.exit(3)", sandbox.RunStatus.FAILED),
        ("print('hello')", sandbox.RunStatus.FAILED),
        ("prepare = lambda arguments: lambda data: 1 / 0", sandbox.RunStatus.FAILED),
        ("prepare = lambda arguments: lambda data: b'x' * 2**21", sandbox.RunStatus.TOO_LARGE),
        ("prepare = lambda arguments: lambda data: bytearray(2**31)", sandbox.RunStatus.OUT_OF_MEMORY),
        ("import os; prepare = lambda arguments: lambda data: os.abort()", sandbox.RunStatus.OUT_OF_MEMORY),
    ],
)
def test_run_reports_its_outcome(run_program: Any, source: str, status: sandbox.RunStatus):
    assert run_program(source).status is status


@pytest.mark.parametrize(("body", "was_starved"), [("import time; time.sleep(60)", True), ("while True: pass", False)])
def test_run_that_takes_too_long_is_killed(run_program: Any, body: str, was_starved: bool):  # C20
    started_at = time.monotonic()
    result = run_program(f"def answer(data):\n    {body}\nprepare = lambda arguments: answer", run_s=0.5)

    assert (result.status, result.was_ready, result.was_killed) == (sandbox.RunStatus.TIMED_OUT, True, True)
    assert result.was_starved is was_starved
    assert time.monotonic() - started_at < 5


def test_program_that_does_not_start_in_time_is_killed(run_program: Any):
    result = run_program("import time; time.sleep(60)", timeout_s=0.5)

    assert (result.status, result.was_ready) == (sandbox.RunStatus.TIMED_OUT, False)


def test_child_monitors_its_memory_without_a_kernel_limit():
    """As on macOS."""
    program = (
        f"import runpy; child = runpy.run_path({str(process.CHILD_SCRIPT)!r}, run_name='child')\n"
        "import threading\n"
        "threading.Thread(target=child['exit_above_memory'], args=(100 * 2**20,), daemon=True).start()\n"
        "blocks = []\n"
        "while True: blocks.append(bytearray(10 * 2**20))\n"
    )
    completed = subprocess.run([sys.executable, "-I", "-S", "-c", program], env={}, timeout=30, check=False)

    assert completed.returncode == child.OUT_OF_MEMORY_EXIT_CODE


def test_unsupported_kernel_limit_is_ignored(monkeypatch: pytest.MonkeyPatch):
    def refuse_limit(*_: Any) -> None:
        raise ValueError

    monkeypatch.setattr(resource, "setrlimit", refuse_limit)

    assert child.set_limit(resource.RLIMIT_CORE, 0) is False


STREAMING_PROGRAM = """
IS_STREAMING = True
def parts(file):
    file.seek(2)
    yield file.read()
    {action}
    yield b"end"
prepare = lambda arguments: parts
"""


def stream(tmp_path: Path, action: str, **changes: Any) -> Iterator[bytes]:
    (tmp_path / "program.py").write_text(STREAMING_PROGRAM.format(action=action))
    with tempfile.TemporaryFile() as file:
        file.write(b"0123")
        file.flush()
        yield from sandbox.stream(tmp_path / "program.py", [], file, limits_with(**changes))


def test_streaming_program_reads_a_file_and_returns_parts(tmp_path: Path):
    assert list(stream(tmp_path, "pass")) == [b"23", b"end"]


@pytest.mark.parametrize(
    ("action", "changes", "status"),
    [("while True: pass", {"run_s": 0.5}, sandbox.RunStatus.TIMED_OUT),
     ("bytearray(2**31)", {}, sandbox.RunStatus.OUT_OF_MEMORY),
     ("raise ValueError", {}, sandbox.RunStatus.FAILED),
     ("import os; os._exit(0)", {}, sandbox.RunStatus.FAILED),
     ("yield bytes(2**21)", {}, sandbox.RunStatus.TOO_LARGE),
     ("open('/etc/hostname').read()", {}, sandbox.RunStatus.FAILED)],
)  # fmt: skip
def test_streaming_program_that_does_not_finish_fails_after_its_last_part(
    tmp_path: Path, action: str, changes: dict[str, Any], status: sandbox.RunStatus
):
    parts = stream(tmp_path, action, **changes)
    assert next(parts) == b"23"
    with pytest.raises(sandbox.RunFailed) as error:
        next(parts)
    assert error.value.status == status

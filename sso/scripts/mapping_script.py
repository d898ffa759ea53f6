"""In charge of the Script of a connection: JavaScript that maps the provider's claims to columns of a user.

It runs in a child process for each run (`child`), with empty environment, no descriptors but its pipes, limits
on memory, time, files and processes, killed when the script has run for 1 s or its caller has no time left. Limits
inside the engine alone were ruled out: each one tried could be escaped, `new Array(1e9) + ""` ran for 46 s past its
own time limit.
"""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from system.outbound.deadline import Deadline
from system.outbound.errors import OutboundFailed
from system.outbound.strict_json import parse_json

DEFAULT = """function map(claims) {
  return {
    email: claims.email,
    login: claims.preferred_username || claims.email
  }
}
"""
# What a script may set: "user fields between the provider and the service". Never password, roles, active, flags, ids.
COLUMNS = ("login", "email", "first_name", "last_name", "phone")

LONGEST_SOURCE = 32 * 1024
LONGEST_CLAIMS = 256 * 1024
LONGEST_OUTPUT = 256 * 1024
TIME_S = 1.0
# For the interpreter itself, which on a busy machine takes longer than any script.
READY_WITHIN_S = 5.0
# Stopped with less of a processor than this, it was not slow: the machine was busy with other things.
LEAST_CPU_S = 0.25
# What the child says before it reads.
READY = b"\n"
CHILD = Path(__file__).with_name("child.py")

# Claims as most providers send them, for a first run when a script is saved.
SAMPLE = {
    "sub": "248289761001",
    "email": "jane.doe@example.com",
    "email_verified": True,
    "preferred_username": "jane.doe",
    "name": "Jane Doe",
    "given_name": "Jane",
    "family_name": "Doe",
    "phone_number": "+1 555 0100",
    "locale": "en",
    "roles": ["itil"],
    "groups": ["itil"],
    "realm_access": {"roles": ["itil"]},
}


class ScriptRefused(ValueError):
    """The script cannot be saved; the text is a sentence for the administrator."""


class ScriptFailed(Exception):
    """A run came to nothing; the text is a reason for the administrator.

    `at` is "load" (it does not parse, or has no `map`), "map" (it throws), "answer" (what it returns) or "limit".
    """

    def __init__(self, reason: str, at: str) -> None:
        super().__init__(reason)
        self.at = at


class ScriptNotRun(ScriptFailed):
    """It had no chance: no process, no processor or no time was left for it. It may do the next time."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, "limit")


def check(source: str) -> None:
    """Refuse what cannot be a script: too long, not parsing, without `map`, or setting what no script may set.

    That it throws on our sample is no reason: what this provider sends cannot be known here.
    """
    try:
        size = len(source.encode())
    except UnicodeEncodeError:
        size = -1
    if size < 0 or "\0" in source:
        raise ScriptRefused("The script holds a character that cannot be stored.")
    if size > LONGEST_SOURCE:
        raise ScriptRefused(f"The script is longer than {LONGEST_SOURCE // 1024} KB.")
    try:
        made = run_all(source, SAMPLE)
    except ScriptFailed as error:
        if error.at == "map":
            return
        raise ScriptRefused(f"The script does not run. {error}") from None
    if others := sorted(set(made) - set(COLUMNS)):
        raise ScriptRefused(f"A script sets {', '.join(COLUMNS)}, but this one sets {', '.join(others)[:100]}.")


def run(source: str, claims: Mapping[str, Any], deadline: Deadline | None = None) -> dict[str, Any]:
    """The columns that the script sets, whatever their values; others are left out."""
    made = run_all(source, claims, deadline)
    return {name: made[name] for name in COLUMNS if name in made}


def run_all(source: str, claims: Mapping[str, Any], deadline: Deadline | None = None) -> dict[str, Any]:
    text = json.dumps(dict(claims))
    if len(text) > LONGEST_CLAIMS:
        raise ScriptFailed("The claims are too large.", "limit")
    asked = json.dumps({"source": source, "claims": text}).encode()
    answer = read(in_child(asked, deadline or Deadline.after(READY_WITHIN_S + TIME_S)))
    if not isinstance(answer.get("made"), str):
        raise ScriptFailed(str(answer.get("failed", "It failed without a reason.")), str(answer.get("at", "limit")))
    return read(answer["made"].encode(errors="surrogatepass"))


def read(output: bytes) -> dict[str, Any]:
    """Nothing that comes out of the child is trusted."""
    try:
        found = parse_json(output)
    except OutboundFailed as error:
        raise ScriptFailed(f"What it returns cannot be used. {error.message}", "answer") from None
    if not isinstance(found, dict):
        raise ScriptFailed("There is no function map(claims) that returns an object.", "load")
    return found


def in_child(given: bytes, deadline: Deadline) -> bytes:
    """What one run writes."""
    process = start()
    assert process.stdin is not None and process.stdout is not None
    output = b""
    try:
        with killed_after(process, own_s(READY_WITHIN_S, deadline)):
            is_ready = process.stdout.read(len(READY)) == READY
        if not is_ready:
            raise ScriptNotRun("The script engine did not start.")
        run_s = own_s(TIME_S, deadline)
        with killed_after(process, run_s) as stopped, process.stdin as stdin:
            stdin.write(given)
            stdin.close()
            output = process.stdout.read(LONGEST_OUTPUT)
    except BrokenPipeError:
        pass  # it ended before it had read everything
    finally:
        cpu_s = end(process)
    if stopped.is_set() and (run_s < TIME_S or cpu_s < LEAST_CPU_S):
        raise ScriptNotRun(f"It was stopped after {run_s:.2f} s, of which it was {cpu_s:.2f} s on a processor.")
    if stopped.is_set():
        raise ScriptFailed(f"It was stopped after {TIME_S:g} s.", "limit")
    if not output:
        raise ScriptFailed("It needs too much memory or time.", "limit")
    return output


def own_s(most: float, deadline: Deadline) -> float:
    """How long this step may take."""
    try:
        return min(most, deadline.left())
    except TimeoutError:
        raise ScriptNotRun(f"Of {deadline.seconds:g} s altogether none were left for the script.") from None


def start() -> "subprocess.Popen[bytes]":
    engine = importlib.util.find_spec("_quickjs")
    assert engine is not None and engine.origin is not None
    # -I -S: no folder, variable or package of the product's is in its reach.
    command = [sys.executable, "-I", "-S", "-B", str(CHILD), str(Path(engine.origin).parent)]
    try:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, cwd="/"
        )
    except OSError:  # out of processes or memory
        raise ScriptNotRun("The script engine could not be started.") from None


def end(process: "subprocess.Popen[bytes]") -> float:
    """Nothing of it is left; how long it was on a processor."""
    assert process.stdin is not None and process.stdout is not None
    # Not `process.kill`, which may take its end for itself, and with it what it has used.
    os.kill(process.pid, signal.SIGKILL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdin.close()
    process.stdout.close()
    return used.ru_utime + used.ru_stime


@contextmanager
def killed_after(process: "subprocess.Popen[bytes]", seconds: float) -> Iterator[threading.Event]:
    """Set when it was."""
    stopped = threading.Event()

    def stop() -> None:
        stopped.set()
        os.kill(process.pid, signal.SIGKILL)

    clock = threading.Timer(seconds, stop)
    clock.start()
    try:
        yield stopped
    finally:
        clock.cancel()
        clock.join()  # or it might kill what has this number by then

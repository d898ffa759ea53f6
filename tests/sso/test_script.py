"""The mapping script: checks at save, limits, and child processes. Each run uses a real child process."""

import os
import subprocess
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sso.scripts.mapping_script import (
    DEFAULT_SCRIPT,
    SAMPLE_CLAIMS,
    SCRIPT_COLUMNS,
    ScriptFailed,
    ScriptRefused,
    check_script,
    map_claims,
)

CLAIMS = {"sub": "1", "email": "ann@example.com", "preferred_username": "ann", "given_name": "Ann", "age": 42}


def script_returning(expression: str) -> str:
    return f"function map(claims) {{ return {expression}; }}"


def script_failure(source: str, claims: dict[str, Any] | None = None) -> ScriptFailed:
    with pytest.raises(ScriptFailed) as exc_info:
        map_claims(source, claims or CLAIMS)
    assert len(str(exc_info.value)) < 500
    return exc_info.value


def test_the_default_script_maps_email_and_login():
    check_script(DEFAULT_SCRIPT)

    assert map_claims(DEFAULT_SCRIPT, CLAIMS) == {"email": "ann@example.com", "login": "ann"}
    assert map_claims(DEFAULT_SCRIPT, {"email": "ann@example.com"}) == {
        "email": "ann@example.com",
        "login": "ann@example.com",
    }
    assert map_claims(DEFAULT_SCRIPT, {}) == {}


def test_a_script_sets_the_columns_of_a_profile():
    source = script_returning(
        "{login: claims.sub, email: claims.email, first_name: claims.given_name, last_name: '', phone: 7}"
    )
    check_script(source)

    profile = map_claims(source, CLAIMS)
    assert profile == {"login": "1", "email": "ann@example.com", "first_name": "Ann", "last_name": "", "phone": 7}
    assert set(profile) == set(SCRIPT_COLUMNS)


@pytest.mark.parametrize(
    "name", ["is_superuser", "is_staff", "password", "roles", "sys_id", "active", "last_login", "company", "__proto__x"]
)
def test_forbidden_columns_are_refused_at_save_and_ignored_at_run(name: str):  # A40
    source = script_returning(f"{{login: 'ann', {name}: true}}")
    with pytest.raises(ScriptRefused, match=name):
        check_script(source)

    assert map_claims(source, CLAIMS) == {"login": "ann"}


def test_forbidden_columns_for_some_claims_are_ignored():  # A40
    source = script_returning("claims.age ? {login: 'ann', active: true, password: 'x'} : {login: 'ann'}")
    check_script(source)

    assert map_claims(source, CLAIMS) == {"login": "ann"}


@pytest.mark.parametrize(
    "source",
    [
        "const map = (claims) => ({login: claims.email});",
        "let map = function (claims) { return {login: claims.email} }",
        "globalThis.map = claims => ({login: claims.email})",
        "function helper(c) { return c.email }\nfunction map(c) { return {login: helper(c)} }",
    ],
)
def test_any_syntax_that_defines_map_is_accepted(source: str):
    check_script(source)

    assert map_claims(source, CLAIMS) == {"login": "ann@example.com"}


INVALID_SCRIPTS = {
    "": "has no function map",
    "   \n": "has no function map",
    "function map(claims) {": "SyntaxError",
    "function other() { return {} }": "has no function map",
    "var map = 5": "has no function map",
    script_returning("5"): "has no function map",
    script_returning("[1]"): "has no function map",
    script_returning("null"): "has no function map",
    script_returning("'text'"): "has no function map",
    "throw new Error('at once')": "at once",
    "import x from 'fs'; " + DEFAULT_SCRIPT: "SyntaxError",
    "require('fs'); " + DEFAULT_SCRIPT: "ReferenceError",
    "std.open('/etc/passwd'); " + DEFAULT_SCRIPT: "ReferenceError",
    "//" + "x" * 32 * 1024 + "\n" + DEFAULT_SCRIPT: "longer than 32 KB",
    "//" + "é" * 16 * 1024 + "\n" + DEFAULT_SCRIPT: "longer than 32 KB",
    "x" * 1024 * 1024: "longer than 32 KB",
    "(" * 1000 + "1" + ")" * 1000 + ";" + DEFAULT_SCRIPT: "Maximum call stack",
    "[" * 16_000 + ";" + DEFAULT_SCRIPT: "Maximum call stack",
    DEFAULT_SCRIPT + "\x00": "cannot be stored",
    DEFAULT_SCRIPT + "// \ud800": "cannot be stored",
    script_returning("{login: '\\0'}"): "NUL character",
    script_returning("{login: '\\ud800'}"): "unpaired surrogate",
    script_returning("{login: 'x'.repeat(1e6)}"): "too large",
}


@pytest.mark.parametrize("source", INVALID_SCRIPTS, ids=[ascii(source)[:40] for source in INVALID_SCRIPTS])
def test_an_invalid_script_is_refused_at_save(source: str):  # A41
    with pytest.raises(ScriptRefused, match=INVALID_SCRIPTS[source]):
        check_script(source)


def test_a_script_that_throws_on_the_sample_may_be_saved():
    check_script(script_returning("{login: claims.employee.number}"))


RUNAWAY_BODIES = {
    "loops": "while (true) {}",
    "loops and catches": "for (;;) { try { for (;;) {} } catch (e) {} }",
    "huge join": "return {login: new Array(1e9) + ''}",
    "regex": "return {login: String(/^(a+)+$/.test('a'.repeat(50) + 'b'))}",
    "memory": "const chunks = []; for (;;) chunks.push(new Uint8Array(1e7))",
    "text": "let t = 'x'; for (;;) t += t",
    "sort": "return {login: Array.from({length: 1e7}, Math.random).sort() + ''}",
    "recursion": "const f = () => f() + f(); return f()",
    "deep result": "let o = {}, p = o; for (let i = 0; i < 5e4; i++) { p.a = {}; p = p.a } return o",
    "bigint": "let n = 3n; for (;;) n = n * n",
    "promise": "const again = () => Promise.resolve().then(again); again(); for (;;) {}",
    "wait": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); for (;;) {}",
    "getter": "return {get login() { for (;;) {} }}",
    "toJSON": "return {login: {toJSON() { for (;;) {} }}}",
    "proxy": "return new Proxy({}, {ownKeys() { for (;;) {} }})",
}


@pytest.mark.parametrize("body", RUNAWAY_BODIES.values(), ids=RUNAWAY_BODIES)
def test_an_endless_or_growing_script_is_stopped(body: str):  # A41
    started_at = time.monotonic()
    script_failure(f"function map(claims) {{ {body} }}")

    assert time.monotonic() - started_at < 5, "a script must not block a web thread"


@pytest.mark.parametrize("name", ["process", "require", "std", "os", "fetch", "console", "print", "Deno", "module"])
def test_a_script_cannot_access_its_environment(name: str):  # A41
    assert map_claims(script_returning(f"{{login: typeof globalThis.{name} + typeof {name}}}"), CLAIMS) == {
        "login": "undefined" * 2
    }


def test_no_module_can_be_loaded():  # A41
    source = """let status = 'nothing';
    function map(claims) { import('/etc/passwd').then(() => { status = 'loaded' }, () => { status = 'refused' });
    return {login: status} }"""

    assert map_claims(source, CLAIMS) == {"login": "nothing"}


def test_an_error_is_reported_in_one_line():
    error = script_failure("function map(claims) { throw new Error('no number\\nsecond line') }")

    assert (str(error), error.step) == ("Error: no number", "map")


def test_changed_builtins_do_not_affect_the_next_script():
    map_claims("Array.prototype.map = null; JSON.parse = () => 1; " + script_returning("{}"), CLAIMS)

    assert map_claims(DEFAULT_SCRIPT, CLAIMS)["login"] == "ann"


def test_a_script_that_replaces_json_bypasses_no_check():
    forging_script = 'JSON.stringify = () => \'{"password": 1, "login": [[1]]}\';' + DEFAULT_SCRIPT
    broken_script = "JSON.stringify = () => '{';" + DEFAULT_SCRIPT

    assert map_claims(forging_script, CLAIMS) == {"login": [[1]]}
    assert script_failure(broken_script).step == "result"


def test_too_large_claims_are_not_passed_to_the_script():  # A42
    assert script_failure(DEFAULT_SCRIPT, {"email": "x" * 300_000}).step == "limit"


def test_claims_are_passed_unchanged():
    claims = {"a": "</script> \u2028 é \U0001f600", "b": [1, {"c": None}], "n": 1.5, "big": 2**53}

    assert map_claims(script_returning("{login: JSON.stringify(claims)}"), claims)["login"].count("\U0001f600") == 1


@pytest.fixture
def child_processes(monkeypatch: Any) -> list[subprocess.Popen[bytes]]:
    """A list that collects the started child processes."""
    processes: list[subprocess.Popen[bytes]] = []

    class RecordedProcess(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            processes.append(self)

    monkeypatch.setattr(subprocess, "Popen", RecordedProcess)
    return processes


def test_no_child_is_left_behind(child_processes: list[subprocess.Popen[bytes]]):
    map_claims(DEFAULT_SCRIPT, CLAIMS)
    script_failure("function map() { for (;;) {} }")

    assert len(child_processes) == 2 and all(child.returncode is not None for child in child_processes)
    assert not any(os.path.exists(f"/proc/{child.pid}") for child in child_processes)


def test_the_child_has_no_environment_no_descriptors_and_its_limits(child_processes: Any, monkeypatch: Any):
    """Inspects the process from outside while its script loops."""
    monkeypatch.setenv("SECRET_KEY", "canary")
    observations: dict[str, Any] = {}
    inheritable_pipe = os.pipe()  # a descriptor that the child must not inherit
    os.set_inheritable(inheritable_pipe[0], True)
    original_timer = threading.Timer

    def inspect_child(pid: int) -> None:
        process_folder = Path(f"/proc/{pid}")
        observations["environment"] = (process_folder / "environ").read_bytes()
        observations["descriptors"] = sorted(int(descriptor.name) for descriptor in (process_folder / "fd").iterdir())
        lines = (process_folder / "limits").read_text().splitlines()[1:]
        observations["limits"] = {line[:26].strip(): line[26:47].strip() for line in lines}
        observations["command"] = (process_folder / "cmdline").read_text()

    def inspect_and_stop(stop: Any) -> None:
        inspect_child(child_processes[-1].pid)
        stop()

    class InspectingTimer(original_timer):  # type: ignore[misc, valid-type]
        def __init__(self, delay_s: float, stop: Any) -> None:
            super().__init__(delay_s, partial(inspect_and_stop, stop))

    monkeypatch.setattr(threading, "Timer", InspectingTimer)
    script_failure("function map() { for (;;) {} }")
    os.close(inheritable_pipe[0])
    os.close(inheritable_pipe[1])

    assert observations["environment"] == b""
    assert observations["descriptors"] == [0, 1, 2]
    assert observations["limits"]["Max open files"] == "3"
    assert observations["limits"]["Max file size"] == "0"
    assert observations["limits"]["Max processes"] == "0"
    assert observations["limits"]["Max core file size"] == "0"
    assert observations["limits"]["Max cpu time"] == "2"
    assert int(observations["limits"]["Max address space"]) == 256 * 1024 * 1024
    assert "login" not in observations["command"], "the process list of the machine shows no claims"


def test_the_default_script_can_read_the_sample():
    assert map_claims(DEFAULT_SCRIPT, SAMPLE_CLAIMS) == {"email": "jane.doe@example.com", "login": "jane.doe"}

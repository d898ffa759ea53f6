"""`./run up`: the whole product started, damaged and stopped."""

import base64
import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from config.env import ROOT
from config.runtime.data_folder import DataFolder
from tests.config.stack import Stack, eventually, manage

pytestmark = pytest.mark.stack

LOGIN = b'{"username": "nobody", "password": "wrong"}'


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    stack = Stack(tmp_path / "data")
    yield stack
    stack.end()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One stack for the tests that leave it running."""
    stack = Stack(tmp_path_factory.mktemp("running") / "data").start().wait_until_up()
    yield stack
    stack.stop()
    stack.end()


def half_sent_request(stack: Stack) -> socket.socket:
    """A request that the server has accepted, and whose body is still on its way."""
    link = socket.create_connection(("127.0.0.1", stack.port), timeout=40)
    head = (
        "POST /rest/v1/auth/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(LOGIN)}\r\n\r\n"
    )
    link.sendall(head.encode() + LOGIN[:10])
    return link


def is_refused(stack: Stack) -> bool:
    try:
        socket.create_connection(("127.0.0.1", stack.port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


def status_of(link: socket.socket) -> int:
    with link, http.client.HTTPResponse(link) as response:
        response.begin()
        return response.status


def test_curl_line_works_as_printed(running: Stack):
    line = running.wait_for(r"^    (curl .*)$|\n    (curl .*)\n").group().strip()

    completed = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=30)

    assert '"login":"admin"' in completed.stdout, line + completed.stdout + completed.stderr


def test_first_script_of_the_documentation_works(running: Stack):
    page = (ROOT / "docs/how-to/call-from-a-script.md").read_text()
    script, printed = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.DOTALL)[0]
    key = manage("key", "admin", "script", env=running.env).stdout.strip()
    environ = {"SERVICE": running.url, "KEY": key, "PATH": os.environ["PATH"]}

    done = subprocess.run([sys.executable, "-I", "-c", script], env=environ, capture_output=True, text=True, timeout=60)

    assert (done.stdout, done.stderr) == (printed, "")


def test_password_is_printed_once_and_kept_in_a_private_file(running: Stack):
    printed = running.wait_for(r"Sign in +admin  password  (\S+)").group(1)
    remaining = running.data / "secrets" / "admin-password"

    assert remaining.read_text().strip() == printed
    assert remaining.stat().st_mode & 0o077 == 0
    again = manage("welcome", running.url, env=running.env)
    assert printed not in again.stdout


def test_everything_reports_ready(running: Stack):
    eventually(lambda: running.get("/readyz") == 200)
    assert running.get("/healthz") == 200
    assert DataFolder(running.data).running_url() == running.url


def test_second_start_is_refused(running: Stack):
    refused = manage("up", env=running.env)

    assert refused.returncode == 1
    assert refused.stderr.startswith("servicebase: Servicebase is already running from")
    assert len(refused.stderr.splitlines()) == 1
    assert running.get("/healthz") == 200


def test_used_port_is_refused(running: Stack, tmp_path: Path):
    other = Stack(tmp_path / "other")
    refused = manage("up", env={**other.env, "SVC_PORT": str(running.port)})

    assert refused.returncode == 1
    assert "set another SVC_PORT" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "words"), [("web", "web_server"), ("worker", " worker "), ("valkey", "valkey-server")]
)
def test_killed_part_restarts_and_is_logged(running: Stack, name: str, words: str):
    victim = running.child(words)
    running.note_processes()

    victim.kill()

    running.wait_for(rf"{name} ended \(killed by SIGKILL\); it restarts in \d+ s")
    eventually(lambda: any(words in " ".join(child.cmdline()) for child in children_of(running)))
    eventually(lambda: running.get("/readyz") == 200)


def test_killed_beat_is_forked_again(running: Stack):
    # The worker may just have been started again.
    eventually(lambda: running.beat_id() and psutil.pid_exists(running.beat_id()))
    eventually(lambda: running.output.rfind("beat_leads") > running.output.rfind("beat_started"))
    victim, led = running.beat(), running.output.count("beat_leads")

    victim.kill()

    running.wait_for("beat_ended")
    eventually(lambda: running.output.count("beat_leads") > led)
    assert running.beat_id() != victim.pid
    assert running.beat().parent() == running.child(" worker ")


def children_of(stack: Stack) -> list:
    return [child for child in psutil.Process(stack.process.pid).children() if child.status() != psutil.STATUS_ZOMBIE]


def only_web_process(stack: Stack) -> psutil.Process:
    """Once the server has started and no other fork runs."""
    (process,) = eventually(lambda: len(found := stack.child("web_server").children()) == 1 and found)
    assert isinstance(process, psutil.Process)
    return process


def test_rolling_restart_of_web_fails_no_request(running: Stack):  # X06
    before = only_web_process(running)
    link = half_sent_request(running)

    running.process.send_signal(signal.SIGHUP)
    result = set()

    def asked() -> bool:
        result.add(running.get("/healthz"))
        return True

    eventually(lambda: asked() and len(running.child("web_server").children()) > 1)
    link.sendall(LOGIN[10:])
    assert status_of(link) == 401
    eventually(lambda: asked() and not before.is_running())
    assert all(asked() for _ in range(20))

    assert result == {200}


def test_rolling_restart_waits_for_a_slow_process(running: Stack):  # X06
    before = only_web_process(running)

    running.process.send_signal(signal.SIGHUP)
    (coming,) = eventually(
        lambda: [child for child in running.child("web_server").children() if child.pid != before.pid]
    )
    coming.suspend()
    try:
        assert [running.get("/healthz") for _ in range(20)] == [200] * 20
        assert before.is_running()
    finally:
        coming.resume()

    eventually(lambda: not before.is_running())
    assert running.get("/healthz") == 200


def test_silent_clients_do_not_block_a_process(running: Stack):
    with contextlib.ExitStack() as silent:
        for _ in range(3):
            silent.enter_context(half_sent_request(running))
        unread = silent.enter_context(socket.create_connection(("127.0.0.1", running.port), timeout=10))
        unread.sendall(b"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")

        assert [running.get("/healthz") for _ in range(10)] == [200] * 10


def test_data_survive_a_killed_supervisor_and_no_process_is_left(stack: Stack):
    stack.start().wait_until_up()
    key = manage("key", "admin", "script", env=stack.env).stdout.strip()
    assert key.startswith("sb_")

    stack.process.kill()
    stack.process.wait()

    eventually(lambda: not stack.left(), within_s=15)
    stack.lines.clear()
    stack.start().wait_until_up()
    completed = subprocess.run(
        ["curl", "-s", "-H", f"Authorization: Bearer {key}", stack.url + "/api/me"], capture_output=True, text=True
    )
    assert '"login":"admin"' in completed.stdout
    assert stack.stop() == 0


def test_ctrl_c_stops_everything_within_ten_seconds(stack: Stack):
    stack.start().wait_until_up()
    started_at = time.monotonic()

    assert stack.stop(signal.SIGINT) == 0

    assert time.monotonic() - started_at < 10
    assert stack.left() == []
    assert "web did not stop in time" not in stack.output
    assert not DataFolder(stack.data).address.exists()


def test_sigterm_lets_an_accepted_request_end(stack: Stack):  # X05
    stack.start().wait_until_up()
    link = half_sent_request(stack)
    eventually(lambda: stack.get("/healthz") == 200)

    stack.note_processes()
    stack.process.send_signal(signal.SIGTERM)
    eventually(lambda: (stack.data / "run" / "draining").exists())
    eventually(lambda: is_refused(stack))
    link.sendall(LOGIN[10:])

    assert status_of(link) == 401
    assert stack.process.wait(40) == 0
    assert stack.left() == []


def test_lost_embedded_database_starts_again_and_the_other_parts_go_on(stack: Stack):
    stack.start().wait_until_up()
    web = stack.child("config.runtime.web_server").pid

    os.kill(stack.child("bin/postgres").pid, signal.SIGKILL)

    assert stack.get("/healthz") == 200
    stack.wait_for(r"postgres ended \(killed by SIGKILL\); it restarts in 1 s")
    eventually(lambda: stack.get("/readyz") == 200)
    assert stack.child("config.runtime.web_server").pid == web
    stack.note_processes()
    assert stack.stop() == 0
    assert stack.left() == []


def test_admin_can_sign_in_with_the_chosen_password(tmp_path: Path):
    stack = Stack(tmp_path / "data", SVC_ADMIN_LOGIN="root.admin", SVC_ADMIN_PASSWORD="chosen by hand", SVC_DEMO="0")
    try:
        stack.start().wait_until_up()
        pair = base64.b64encode(b"root.admin:chosen by hand").decode()
        completed = subprocess.run(
            ["curl", "-s", "-H", f"Authorization: Basic {pair}", stack.url + "/api/me"], capture_output=True, text=True
        )
        assert '"login":"root.admin"' in completed.stdout
        assert "chosen by hand" not in stack.output
        assert not (stack.data / "secrets" / "demo-password").exists()
    finally:
        stack.stop()
        stack.end()


def test_https_with_a_configured_certificate(tmp_path: Path):
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    subprocess.run(
        [*make, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    stack = Stack(tmp_path / "data", SVC_TLS_CERT=str(certificate), SVC_TLS_KEY=str(key))
    try:
        stack.start().wait_until_up()
        request = ["curl", "-s", "-i", "--cacert", str(certificate), f"https://127.0.0.1:{stack.port}/login/"]
        output = subprocess.run(request, capture_output=True, text=True, check=False).stdout
        assert " 200" in output.splitlines()[0]
        assert "strict-transport-security" in output.lower()
        assert "; secure" in next(line for line in output.lower().splitlines() if line.startswith("set-cookie"))
    finally:
        stack.stop()
        stack.end()

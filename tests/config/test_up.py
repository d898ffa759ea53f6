"""`./run up`: starting the whole product, killing its processes, and stopping it."""

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
def running_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack for the tests that do not stop it."""
    stack = Stack(tmp_path_factory.mktemp("running") / "data").start().wait_until_up()
    yield stack
    stack.stop()
    stack.end()


def send_half_request(stack: Stack) -> socket.socket:
    """Sends a request whose body is incomplete; returns the connection."""
    connection = socket.create_connection(("127.0.0.1", stack.port), timeout=40)
    request_head = (
        "POST /rest/v1/auth/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(LOGIN)}\r\n\r\n"
    )
    connection.sendall(request_head.encode() + LOGIN[:10])
    return connection


def is_connection_refused(stack: Stack) -> bool:
    try:
        socket.create_connection(("127.0.0.1", stack.port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


def status_of(connection: socket.socket) -> int:
    with connection, http.client.HTTPResponse(connection) as response:
        response.begin()
        return response.status


def test_curl_line_works_as_printed(running_stack: Stack):
    curl_line = running_stack.wait_for(r"^    (curl .*)$|\n    (curl .*)\n").group().strip()

    completed = subprocess.run(curl_line, shell=True, capture_output=True, text=True, timeout=30)

    assert '"login":"admin"' in completed.stdout, curl_line + completed.stdout + completed.stderr


def test_first_script_of_the_documentation_works(running_stack: Stack):
    page = (ROOT / "docs/how-to/call-from-a-script.md").read_text()
    script, printed_output = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.DOTALL)[0]
    key = manage("key", "admin", "script", env=running_stack.env).stdout.strip()
    environ = {"SERVICE": running_stack.url, "KEY": key, "PATH": os.environ["PATH"]}

    completed = subprocess.run(
        [sys.executable, "-I", "-c", script], env=environ, capture_output=True, text=True, timeout=60
    )

    assert (completed.stdout, completed.stderr) == (printed_output, "")


def test_password_is_printed_once_and_kept_in_a_private_file(running_stack: Stack):
    printed_password = running_stack.wait_for(r"Sign in +admin  password  (\S+)").group(1)
    password_file = running_stack.data_folder / "secrets" / "admin-password"

    assert password_file.read_text().strip() == printed_password
    assert password_file.stat().st_mode & 0o077 == 0
    second_welcome = manage("welcome", running_stack.url, env=running_stack.env)
    assert printed_password not in second_welcome.stdout


def test_everything_reports_ready(running_stack: Stack):
    eventually(lambda: running_stack.get("/readyz") == 200)
    assert running_stack.get("/healthz") == 200
    assert DataFolder(running_stack.data_folder).running_url() == running_stack.url


def test_second_start_is_refused(running_stack: Stack):
    refusal = manage("up", env=running_stack.env)

    assert refusal.returncode == 1
    assert refusal.stderr.startswith("servicebase: Servicebase is already running from")
    assert len(refusal.stderr.splitlines()) == 1
    assert running_stack.get("/healthz") == 200


def test_used_port_is_refused(running_stack: Stack, tmp_path: Path):
    other_stack = Stack(tmp_path / "other")
    refusal = manage("up", env={**other_stack.env, "SVC_PORT": str(running_stack.port)})

    assert refusal.returncode == 1
    assert "set another SVC_PORT" in refusal.stderr
    assert len(refusal.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "command"), [("web", "web_server"), ("worker", " worker "), ("valkey", "valkey-server")]
)
def test_killed_component_restarts_and_is_logged(running_stack: Stack, name: str, command: str):
    victim = running_stack.child(command)
    running_stack.record_processes()

    victim.kill()

    running_stack.wait_for(rf"{name} stopped \(killed by SIGKILL\) and will restart in \d+ s")
    eventually(lambda: any(command in " ".join(child.cmdline()) for child in children_of(running_stack)))
    eventually(lambda: running_stack.get("/readyz") == 200)


def test_killed_beat_is_forked_again(running_stack: Stack):
    # The worker may just have restarted.
    eventually(lambda: running_stack.beat_pid() and psutil.pid_exists(running_stack.beat_pid()))
    eventually(lambda: running_stack.output.rfind("beat_leads") > running_stack.output.rfind("beat_started"))
    victim, leadership_count_before = running_stack.beat(), running_stack.output.count("beat_leads")

    victim.kill()

    running_stack.wait_for("beat_ended")
    eventually(lambda: running_stack.output.count("beat_leads") > leadership_count_before)
    assert running_stack.beat_pid() != victim.pid
    assert running_stack.beat().parent() == running_stack.child(" worker ")


def test_beat_shares_the_memory_of_loaded_code(running_stack: Stack):
    # Celery forks beat before or after the pool; both are there before memory is measured.
    eventually(lambda: running_stack.beat_pid() and len(running_stack.child(" worker ").children()) > 1)

    memory = running_stack.beat().memory_full_info()

    assert memory.uss < memory.rss / 2


def children_of(stack: Stack) -> list:
    return [child for child in psutil.Process(stack.process.pid).children() if child.status() != psutil.STATUS_ZOMBIE]


def only_web_process(stack: Stack) -> psutil.Process:
    """Waits until only one web process is running, and returns it."""
    (process,) = eventually(lambda: len(processes := stack.child("web_server").children()) == 1 and processes)
    assert isinstance(process, psutil.Process)
    return process


def test_rolling_restart_of_web_fails_no_request(running_stack: Stack):  # X06
    old_process = only_web_process(running_stack)
    connection = send_half_request(running_stack)

    running_stack.process.send_signal(signal.SIGHUP)
    statuses = set()

    def send_request() -> bool:
        statuses.add(running_stack.get("/healthz"))
        return True

    eventually(lambda: send_request() and len(running_stack.child("web_server").children()) > 1)
    connection.sendall(LOGIN[10:])
    assert status_of(connection) == 401
    eventually(lambda: send_request() and not old_process.is_running())
    assert all(send_request() for _ in range(20))

    assert statuses == {200}


def test_rolling_restart_waits_for_a_slow_process(running_stack: Stack):  # X06
    old_process = only_web_process(running_stack)

    running_stack.process.send_signal(signal.SIGHUP)
    (new_process,) = eventually(
        lambda: [child for child in running_stack.child("web_server").children() if child.pid != old_process.pid]
    )
    new_process.suspend()
    try:
        assert [running_stack.get("/healthz") for _ in range(20)] == [200] * 20
        assert old_process.is_running()
    finally:
        new_process.resume()

    eventually(lambda: not old_process.is_running())
    assert running_stack.get("/healthz") == 200


def test_silent_clients_do_not_block_a_process(running_stack: Stack):
    with contextlib.ExitStack() as silent_clients:
        for _ in range(3):
            silent_clients.enter_context(send_half_request(running_stack))
        unread_connection = silent_clients.enter_context(
            socket.create_connection(("127.0.0.1", running_stack.port), timeout=10)
        )
        unread_connection.sendall(b"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")

        assert [running_stack.get("/healthz") for _ in range(10)] == [200] * 10


def test_data_survives_a_killed_supervisor_and_no_process_is_left(stack: Stack):
    stack.start().wait_until_up()
    key = manage("key", "admin", "script", env=stack.env).stdout.strip()
    assert key.startswith("sb_")

    stack.process.kill()
    stack.process.wait()

    eventually(lambda: not stack.leftover_processes(), timeout_s=15)
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
    assert stack.leftover_processes() == []
    assert "web did not stop in time" not in stack.output
    assert not DataFolder(stack.data_folder).url_file.exists()


def test_sigterm_lets_an_accepted_request_finish(stack: Stack):  # X05
    stack.start().wait_until_up()
    connection = send_half_request(stack)
    eventually(lambda: stack.get("/healthz") == 200)

    stack.record_processes()
    stack.process.send_signal(signal.SIGTERM)
    eventually(lambda: (stack.data_folder / "run" / "draining").exists())
    eventually(lambda: is_connection_refused(stack))
    connection.sendall(LOGIN[10:])

    assert status_of(connection) == 401
    assert stack.process.wait(40) == 0
    assert stack.leftover_processes() == []


def test_lost_embedded_database_restarts_and_the_other_components_keep_running(stack: Stack):
    stack.start().wait_until_up()
    web_pid = stack.child("config.runtime.web_server").pid

    os.kill(stack.child("bin/postgres").pid, signal.SIGKILL)

    assert stack.get("/healthz") == 200
    stack.wait_for(r"postgres stopped \(killed by SIGKILL\) and will restart in 1 s")
    eventually(lambda: stack.get("/readyz") == 200)
    assert stack.child("config.runtime.web_server").pid == web_pid
    stack.record_processes()
    assert stack.stop() == 0
    assert stack.leftover_processes() == []


def test_admin_can_sign_in_with_the_chosen_password(tmp_path: Path):
    stack = Stack(tmp_path / "data", SVC_ADMIN_LOGIN="root.admin", SVC_ADMIN_PASSWORD="chosen by hand", SVC_DEMO="0")
    try:
        stack.start().wait_until_up()
        header = f"Authorization: Basic {base64.b64encode(b'root.admin:chosen by hand').decode()}"
        completed = subprocess.run(["curl", "-s", "-H", header, stack.url + "/api/me"], capture_output=True, text=True)
        assert '"login":"root.admin"' in completed.stdout
        assert "chosen by hand" not in stack.output
        assert not (stack.data_folder / "secrets" / "demo-password").exists()
    finally:
        stack.stop()
        stack.end()


def test_https_works_with_a_configured_certificate(tmp_path: Path):
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    openssl = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    subprocess.run(
        [*openssl, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    stack = Stack(tmp_path / "data", SVC_TLS_CERT=str(certificate), SVC_TLS_KEY=str(key))
    try:
        stack.start().wait_until_up()
        curl = ["curl", "-s", "-i", "--cacert", str(certificate), f"https://127.0.0.1:{stack.port}/login/"]
        output = subprocess.run(curl, capture_output=True, text=True, check=False).stdout
        assert " 200" in output.splitlines()[0]
        assert "strict-transport-security" in output.lower()
        assert "; secure" in next(line for line in output.lower().splitlines() if line.startswith("set-cookie"))
    finally:
        stack.stop()
        stack.end()

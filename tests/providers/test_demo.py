"""`./run demo-idp` prints the values to enter, and starts only if the product would accept the provider."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from config import env
from config.env import ROOT
from config.runtime.data_folder import DataFolder
from tests.config.stack import free_port
from tests.providers import demo

pytestmark = pytest.mark.provider


def plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}


def run_demo(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "run", "demo-idp", *arguments],
        cwd=ROOT,
        env={**plain_environment(), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    "environment",
    [{"SVC_ENV": "production"}, {"SVC_HOST": "0.0.0.0"}, {"SVC_BASE_URL": "https://service.example.com"}],
    ids=repr,
)
def test_demo_provider_is_refused_in_production(environment: dict[str, str]):
    completed_process = run_demo(**environment)

    assert (completed_process.returncode, completed_process.stdout) == (1, "")
    assert completed_process.stderr.startswith("servicebase: ") and "SVC_ALLOW_HTTP_IDP=1" in completed_process.stderr


def test_port_in_use_is_reported():
    import socket

    with socket.create_server(("127.0.0.1", free_port())) as listener:
        completed_process = run_demo("--port", str(listener.getsockname()[1]))

    assert completed_process.returncode == 1
    assert "address already in use" in completed_process.stderr and "Traceback" not in completed_process.stderr
    assert "./run demo-idp --port " in completed_process.stderr


def test_demo_provider_uses_the_port_of_the_running_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in list(os.environ):
        if name.startswith("SVC_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path))
    data_folder = DataFolder(tmp_path)
    data_folder.prepare()
    assert demo.callback_urls(env.current())[0] == "http://127.0.0.1:8000/sso/callback/", "no service runs"

    data_folder.record_url("http://127.0.0.1:8161")
    assert demo.callback_urls(env.current()) == [
        "http://127.0.0.1:8161/sso/callback/",
        "http://localhost:8161/sso/callback/",
    ]
    monkeypatch.setenv("SVC_PORT", "8161")
    assert demo.running_url(env.current()) == "http://127.0.0.1:8161", "the service with this SVC_PORT is found"
    monkeypatch.setenv("SVC_PORT", "8170")
    assert demo.running_url(env.current()) is None
    assert demo.callback_urls(env.current())[0] == "http://127.0.0.1:8170/sso/callback/", "SVC_PORT takes precedence"
    monkeypatch.delenv("SVC_PORT")

    ended_process = subprocess.Popen([sys.executable, "-c", ""])
    ended_process.wait()
    data_folder.url_file.write_text(f"{ended_process.pid} http://127.0.0.1:8161\n")
    assert demo.callback_urls(env.current())[0] == "http://127.0.0.1:8000/sso/callback/", "the service was killed"


def test_ctrl_c_stops_the_provider_even_if_sigint_was_ignored():
    """As in the background processes of a shell script."""
    running_process = subprocess.Popen(
        ["sh", "-c", f"trap '' INT; exec {sys.executable} -m tests.providers.demo --port {free_port()}"],
        cwd=ROOT,
        env=plain_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    with running_process:
        assert running_process.stdout is not None
        while "Stop with Ctrl-C" not in running_process.stdout.readline():
            assert running_process.poll() is None
        running_process.send_signal(signal.SIGINT)
        try:
            assert running_process.wait(20) == 0
        finally:
            running_process.terminate()

"""`./run demo-idp` says what to type, and starts only where the product would call it."""

import os
import subprocess
import sys

import pytest

from config.env import ROOT
from tests.config.stack import free_port

pytestmark = pytest.mark.provider


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    return subprocess.run(
        [sys.executable, "run", "demo-idp", *words],
        cwd=ROOT,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    "environment",
    [{"SVC_ENV": "production"}, {"SVC_HOST": "0.0.0.0"}, {"SVC_BASE_URL": "https://service.example.com"}],
    ids=repr,
)
def test_it_is_for_a_machine_of_ones_own(environment: dict[str, str]):
    said = run(**environment)

    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith("servicebase: ") and "SVC_ALLOW_HTTP_IDP=1" in said.stderr


def test_a_port_in_use_is_said_in_one_sentence():
    import socket

    with socket.create_server(("127.0.0.1", free_port())) as taken:
        said = run("--port", str(taken.getsockname()[1]))

    assert said.returncode == 1
    assert "address already in use" in said.stderr and "Traceback" not in said.stderr

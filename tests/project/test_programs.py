"""Programs that tests need are found or installed; otherwise the tests are skipped with a message."""

import os
import subprocess
import sys

import pytest

from config.env import ROOT
from tests.providers import node


def run_browser_test(**variables: str) -> subprocess.CompletedProcess[str]:
    arguments = [
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/browser/test_pages.py::test_unknown_url_shows_the_error_page",
    ]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=ROOT,
        env={**os.environ, "CHROMIUM": "/nowhere/chromium", "SVC_TEST_REQUIRE": "", **variables},
        capture_output=True,
        text=True,
    )


def test_missing_chromium_skips_browser_tests_and_is_reported():
    test_run = run_browser_test()

    assert test_run.returncode == 0, test_run.stdout
    assert "tests were skipped" in test_run.stdout
    assert "CHROMIUM is /nowhere/chromium, which does not start." in test_run.stdout.splitlines()[-2:]


def test_missing_required_program_fails_the_run():
    test_run = run_browser_test(SVC_TEST_REQUIRE="browser,provider")

    assert test_run.returncode == 1
    assert "CHROMIUM is /nowhere/chromium, which does not start." in test_run.stdout


def test_wheel_has_node_and_npm(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")
    assert node.node_on_machine() is None

    commands = node.node_in_wheel()
    assert commands is not None
    program, npm = commands
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert int(version[1:].partition(".")[0]) >= node.MIN_VERSION
    assert subprocess.run([*npm, "--version"], capture_output=True, text=True, check=True).stdout.strip()

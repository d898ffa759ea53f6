"""The data folder: its layout, its lock, and the secrets stored in it."""

import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from config.env import ConfigurationError

# PostgreSQL adds "/.s.PGSQL.5432"; a socket's path may have 104 bytes on macOS, 108 on Linux.
MAX_SOCKET_FOLDER_BYTES = 104 - len("/.s.PGSQL.5432") - 1

# Names of stored secrets that people read.
ADMIN_PASSWORD = "admin-password"
DEMO_PASSWORD = "demo-password"


class DataFolder:
    """The folder with everything that must survive a restart."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.postgres = root / "postgres"
        self.valkey = root / "valkey"
        self.secrets = root / "secrets"
        self.run = root / "run"
        self.draining_file = self.run / "draining"
        self.metrics = self.run / "metrics"
        self.password_shown_file = self.run / "password-shown"
        self.url_file = self.run / "address"

    @property
    def sockets(self) -> Path:
        """The folder of the servers' sockets; for a long data path, a short path in the temporary folder."""
        if len(os.fsencode(self.run)) <= MAX_SOCKET_FOLDER_BYTES:
            return self.run
        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"servicebase-{os.geteuid()}-{name}"

    def prepare(self) -> None:
        """Create the folder and its parts, private to this user."""
        with self.report_write_errors():
            for folder in (self.root, self.secrets, self.run, self.sockets):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            refuse_foreign_folder(self.sockets)
            probe = self.run / "writable"
            probe.touch()
            probe.unlink()

    @contextmanager
    def report_write_errors(self) -> Iterator[None]:
        """Report an error of the file system, such as a full disk, as one sentence."""
        try:
            yield
        except OSError as error:
            raise ConfigurationError(
                f"The data folder {self.root} is not writable ({error.strerror}). "
                "Check its owner and its free space, or set SVC_DATA_DIR to another folder."
            ) from None

    def secret(self, name: str, make: Callable[[], str]) -> str:
        """The secret with this name; the first caller creates it, all others read it."""
        path = self.secrets / name
        try:
            if not path.exists():
                write_private(path, make())
            return path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigurationError(f"The file {path} cannot be used ({error.strerror}).") from None

    def lock(self, role: str) -> int:
        """Lock the folder for one supervisor; the lock ends when the returned file is closed, or with the process."""
        path = self.run / f"{role}.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder_pid = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise AlreadyRunning(
                f"Servicebase is already running from {self.root} (process {holder_pid}). "
                "Stop it first, or set another SVC_DATA_DIR and SVC_PORT."
            ) from None
        os.ftruncate(descriptor, 0)
        with suppress(OSError):  # only the lock matters; the disk may be full
            os.write(descriptor, str(os.getpid()).encode())
        return descriptor

    def record_url(self, url: str) -> None:
        self.url_file.write_text(f"{os.getpid()} {url}\n", encoding="utf-8")

    def running_url(self) -> str | None:
        """The URL of the service that runs from this folder, if any."""
        try:
            process, _, url = self.url_file.read_text(encoding="utf-8").strip().partition(" ")
            os.kill(int(process), 0)
        except (OSError, ValueError):
            return None
        return url or None


class AlreadyRunning(ConfigurationError):
    """Another supervisor has locked the data folder."""


def refuse_foreign_folder(path: Path) -> None:
    """A folder for sockets in a shared place must belong to this user and be closed to others."""
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise PermissionError(1, "it belongs to another user or is accessible to others", str(path))


def write_private(path: Path, value: str) -> None:
    """Atomically create a file that only this user can read; an existing file is kept."""
    descriptor, temporary_path = tempfile.mkstemp(dir=path.parent)  # made with mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as target:
            target.write(value + "\n")
        os.link(temporary_path, path)
    except FileExistsError:
        pass  # another process was first; its value is used
    finally:
        os.unlink(temporary_path)

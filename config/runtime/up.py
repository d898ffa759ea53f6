"""`manage.py up`: starts the parts in order, says where to open them, and stops them in order."""

import argparse
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress

from config import env
from config.env import ConfigurationError, Environment
from config.runtime.data_folder import DataFolder
from config.runtime.embedded_servers import Postgres, Valkey, wait_until_ready
from config.runtime.supervisor import Child, Supervisor

PARTS = ("web", "worker", "beat")
# Requests end first, then background work, then what both need.
STOP_ORDER = (("web",), ("beat", "worker"), ("valkey",), ("postgres",))
DRAIN_S = 30.0
# In a rolling restart the next process goes when the new one has surely loaded, on a slow machine too.
REPLACED_EVERY_S = 10
WEB_THREADS = 4
# An idle thread goes, and its connection with it: the longest that the web server offers.
THREAD_IDLE_S = 600
# Each thread would keep what its largest answer took; two pools of memory for all of them, and it is used again.
WEB_MEMORY = {"MALLOC_ARENA_MAX": "2"}
HEADERS_BYTES = 64 * 1024
WEB_READY_WITHIN_S = 180.0


def main(words: list[str], environment: Environment) -> int:
    parser = argparse.ArgumentParser(prog="./run up", description="Start Servicebase.")
    parser.add_argument("--only", choices=PARTS, help="run one part against DATABASE_URL and REDIS_URL")
    only: str | None = parser.parse_args(words).only
    env.refuse_unsafe_production(environment)
    if only and (environment.database_url is None or environment.redis_url is None):
        raise ConfigurationError("--only needs DATABASE_URL and REDIS_URL: the parts of several hosts share them.")
    if only and (environment.secret_key is None or not environment.secret_keys):
        raise ConfigurationError(
            "--only needs SECRET_KEY and SVC_SECRET_KEYS, the same on every host: keys that each made for itself would "
            "read neither the sessions nor the secrets of the others."
        )
    folder = DataFolder(environment.data_dir)
    folder.prepare()
    claim = folder.hold(only or "up")
    wants_web = only in (None, "web")
    if wants_web:
        folder.draining.unlink(missing_ok=True)
        refuse_wrong_certificate(environment)
        refuse_taken_port(environment)
        shutil.rmtree(folder.metrics, ignore_errors=True)
        folder.metrics.mkdir(mode=0o700)
        folder.runs_at(environment.base_url or environment.local_url)
    # One part alone needs no name before its lines, and they stay the JSON that a collector of logs can read.
    supervisor = Supervisor(claim, has_prefix=only is None)
    supervisor.listen()
    reason = "interrupt"
    try:
        start_servers(supervisor, environment, folder)
        prepare(folder, environment.local_url if wants_web else None)
        parts = (only,) if only else PARTS
        for part in parts:
            supervisor.start(part_child(part, environment, folder))
        if wants_web:
            # Beside the watch: a part that ends meanwhile is started again as ever.
            threading.Thread(target=welcome_when_ready, args=(environment, folder, supervisor), daemon=True).start()
        code, reason = supervisor.watch()
    except Stopped:
        code = 0
    except Unprepared:
        code = 1
    except ConfigurationError:
        stop(supervisor, folder, reason)
        raise
    stop(supervisor, folder, reason)
    return code


class Stopped(Exception):
    """Somebody asked to stop while parts were still starting."""


class Unprepared(Exception):
    """The database cannot be used; `prepare` said why."""


def refuse_wrong_certificate(environment: Environment) -> None:
    if not (environment.tls_cert and environment.tls_key):
        return
    try:
        # The empty password: without one, an encrypted key would make OpenSSL ask for it on the terminal.
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(environment.tls_cert, environment.tls_key, password="")
    except OSError as error:
        reason = (getattr(error, "reason", None) or error.strerror or "unknown").lower().replace("_", " ")
        raise ConfigurationError(
            f"SVC_TLS_CERT and SVC_TLS_KEY cannot be used together ({reason}); both must be PEM files, "
            "the key without a password."
        ) from None


def refuse_taken_port(environment: Environment) -> None:
    family = socket.AF_INET6 if ":" in environment.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((environment.host, environment.port))
        except OSError as error:
            raise ConfigurationError(
                f"The web server cannot listen on {environment.host}:{environment.port} ({error.strerror}). "
                "Stop what uses it, or set SVC_PORT to another."
            ) from None


def start_servers(supervisor: Supervisor, environment: Environment, folder: DataFolder) -> None:
    """Start those embedded servers that no address replaces."""
    if environment.database_url is None:
        postgres = Postgres(folder)
        postgres.initialise()
        launch(supervisor, Child("postgres", postgres.command(), stop_signal=signal.SIGINT, is_vital=True), postgres)
        postgres.make_database()
    if environment.redis_url is None:
        valkey = Valkey(folder)
        valkey.initialise()
        launch(supervisor, Child("valkey", valkey.command()), valkey)


def launch(supervisor: Supervisor, child: Child, server: Postgres | Valkey) -> None:
    if not wait_until_ready(server, supervisor.start(child)):
        raise ConfigurationError(server.did_not_start)


def prepare(folder: DataFolder, address: str | None) -> None:
    """Bring the database to this version of the code, in a process of its own that ends again. It leaves what is to be
    said about `address`: it knows the accounts, and one more process with Django would make the start longer."""
    folder.welcome.unlink(missing_ok=True)
    command = [sys.executable, str(env.ROOT / "manage.py"), "prepare", *(["--welcome", address] if address else [])]
    # Its own session: Ctrl-C must not end it half way through a migration.
    done = subprocess.run(command, check=False, start_new_session=True)
    if done.returncode < 0:
        raise Stopped
    if done.returncode != 0:
        raise Unprepared


def part_child(part: str, environment: Environment, folder: DataFolder) -> Child:
    commands = {"web": web_command(environment), "worker": worker_command(), "beat": beat_command()}
    environ = {"SVC_PROCESS": part, "PYTHONUNBUFFERED": "1"}
    if part == "worker" and os.geteuid() == 0:
        # Celery's advice on root is for a worker that unpickles; ours takes JSON only.
        environ["PYTHONWARNINGS"] = "ignore:You're running the worker with superuser"
    if part == "web":
        environ |= {"PROMETHEUS_MULTIPROC_DIR": str(folder.metrics), **WEB_MEMORY}
    return Child(part, commands[part], environ)


def web_command(environment: Environment) -> list[str]:
    command = [
        sys.executable, "-m", "config.runtime.web_server", "--interface", "wsgi", "--http", "1",
        "--host", environment.host, "--port", str(environment.port), "--workers", str(environment.web_processes),
        "--blocking-threads", str(WEB_THREADS), "--blocking-threads-idle-timeout", str(THREAD_IDLE_S),
        "--no-ws", "--log-level", "warning",
        "--workers-kill-timeout", str(int(DRAIN_S)), "--respawn-failed-workers",
        "--respawn-interval", str(REPLACED_EVERY_S),
        "--http1-buffer-size", str(HEADERS_BYTES), "config.wsgi:application",
    ]  # fmt: skip
    if environment.tls_cert and environment.tls_key:
        command[-1:-1] = ["--ssl-certificate", str(environment.tls_cert), "--ssl-keyfile", str(environment.tls_key)]
    return command


def worker_command() -> list[str]:
    return [
        sys.executable, "-m", "celery", "--app", "config", "--quiet", "worker", "--loglevel", "INFO",
        "--concurrency", "2", "--without-gossip", "--without-mingle",
    ]  # fmt: skip


def beat_command() -> list[str]:
    return [sys.executable, "-m", "celery", "--app", "config", "--quiet", "beat", "--loglevel", "INFO", "--pidfile="]


def answers(environment: Environment) -> bool:
    """Whether our own web server answers; nothing is sent, so its certificate need not be judged."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # a default context would load all authorities: 13 MB
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    # Asked directly: a proxy that the environment names for calls to outside does not know this machine.
    handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusting))
    try:
        with urllib.request.build_opener(*handlers).open(environment.local_url + "/healthz", timeout=2):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def welcome_when_ready(environment: Environment, folder: DataFolder, supervisor: Supervisor) -> None:
    """Print what a newcomer needs next."""
    until = time.monotonic() + WEB_READY_WITHIN_S
    while not answers(environment):
        if time.monotonic() > until or supervisor.is_stopping:
            return
        time.sleep(0.05)
    if supervisor.is_stopping:
        return
    print(folder.welcome.read_text(encoding="utf-8"), flush=True)
    folder.welcome.unlink()
    folder.password_shown.touch()


def stop(supervisor: Supervisor, folder: DataFolder, reason: str) -> None:
    """Ctrl-C: everything within 10 s. SIGTERM: /readyz says no, and requests have 30 s to end."""
    supervisor.is_stopping = True
    is_drain = reason == "drain"
    has_web = any(child.name == "web" for child in supervisor.children)  # another part may share the folder
    if is_drain and has_web:
        with suppress(OSError):  # the disk may be full, and the parts must stop all the same
            folder.draining.touch()
    supervisor.say("stopping" + (", requests may end first" if is_drain else ""))
    patience = {
        "web": DRAIN_S + 1 if is_drain else 2.5,
        "worker": 20.0 if is_drain else 2.5,
        "postgres": 20.0 if is_drain else 2.5,
    }
    supervisor.stop(STOP_ORDER, lambda name: patience.get(name, 2.0))
    if has_web:
        folder.draining.unlink(missing_ok=True)
        folder.address.unlink(missing_ok=True)
    supervisor.say("stopped")
    supervisor.close()

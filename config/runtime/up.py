"""`manage.py up`: starts the components in order, prints the URLs, and stops the components in order."""

import argparse
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from typing import TextIO

from config import env
from config.env import ConfigurationError, Environment
from config.production_checks import refuse_unsafe_settings
from config.runtime.data_folder import DataFolder
from config.runtime.embedded_servers import Postgres, Valkey, wait_until_ready
from config.runtime.supervisor import Child, Supervisor

COMPONENTS = ("web", "worker", "beat")
# Requests finish first, then background work, then the servers that both need.
STOP_ORDER = (("web",), ("beat", "worker"), ("valkey",), ("postgres",))
DRAIN_S = 30.0
MAX_HEADER_BYTES = 64 * 1024
# Tells the web server that it can use the embedded servers.
SERVERS_RUN = b"\n"
# By default each thread has its own memory pool, which keeps the memory of its largest response.
MALLOC_ENVIRON = {"MALLOC_ARENA_MAX": "2"}
WEB_COMMAND = [sys.executable, "-m", "config.runtime.web_server", "parent"]
CELERY_COMMAND = [sys.executable, "-m", "celery", "--app", "config", "--quiet"]
WORKER_COMMAND = [
    *CELERY_COMMAND, "worker", "--loglevel", "INFO", "--concurrency", "2", "--without-gossip", "--without-mingle",
]  # fmt: skip
BEAT_COMMAND = [*CELERY_COMMAND, "beat", "--loglevel", "INFO", "--pidfile="]


def main(arguments: list[str], environment: Environment) -> int:
    parser = argparse.ArgumentParser(prog="./run up", description="Start Servicebase.")
    parser.add_argument(
        "--only", choices=COMPONENTS, help="run only this component, with the servers in DATABASE_URL and REDIS_URL"
    )
    only_component: str | None = parser.parse_args(arguments).only
    refuse_unsafe_settings(environment)
    if only_component:
        refuse_unshared_settings(environment)
    components = (only_component,) if only_component else COMPONENTS
    folder = DataFolder(environment.data_dir)
    folder.prepare()
    with folder.report_write_errors():
        lock = folder.lock(only_component or "up")
    if "web" in components:
        prepare_web(environment, folder)
    # A single component has no prefix, so that its lines stay JSON for log collectors.
    supervisor = Supervisor(lock, has_prefix=only_component is None)
    supervisor.install_signal_handlers()
    exit_code, reason = 0, "interrupt"
    try:
        start(supervisor, environment, folder, components)
        reason = supervisor.watch()
    except StartInterrupted:
        pass
    except PreparationFailed:
        exit_code = 1
    finally:
        stop(supervisor, folder, reason)
    return exit_code


def refuse_unshared_settings(environment: Environment) -> None:
    """Parts on several hosts must share their servers and keys."""
    if environment.database_url is None or environment.redis_url is None:
        raise ConfigurationError("--only requires DATABASE_URL and REDIS_URL, because all hosts share these servers.")
    if environment.secret_key is None or not environment.secret_keys:
        raise ConfigurationError(
            "--only requires SECRET_KEY and SVC_SECRET_KEYS with the same values on every host. Otherwise a host "
            "cannot read the sessions and secrets of the others."
        )


def prepare_web(environment: Environment, folder: DataFolder) -> None:
    folder.draining_file.unlink(missing_ok=True)
    refuse_wrong_certificate(environment)
    refuse_port_in_use(environment)
    shutil.rmtree(folder.metrics, ignore_errors=True)
    with folder.report_write_errors():
        folder.metrics.mkdir(mode=0o700)
        folder.record_url(environment.base_url or environment.local_url)


def start(supervisor: Supervisor, environment: Environment, folder: DataFolder, components: tuple[str, ...]) -> None:
    web_report = start_web(supervisor, folder) if "web" in components else None
    start_servers(supervisor, environment, folder)
    if web_report:
        wait_for_web(supervisor, folder, web_report)
    else:
        prepare()
    for component in components:
        # On one machine, beat is a fork of the worker's parent.
        if component == "worker" or components == ("beat",):
            supervisor.start(component_child(component, folder, has_beat="beat" in components))


def start_web(supervisor: Supervisor, folder: DataFolder) -> socket.socket:
    """Start the web server, which loads Django while the embedded servers start. Return the socket of its report."""
    report, web_end = socket.socketpair()
    web = component_child("web", folder)
    command = web.command
    with web_end:
        web.command, web.pass_fds = [*command, str(web_end.fileno())], (web_end.fileno(),)
        supervisor.start(web)
    web.command, web.pass_fds = command, ()  # after a restart, it only serves
    return report


def wait_for_web(supervisor: Supervisor, folder: DataFolder, web_report: socket.socket) -> None:
    """Wait until the web server serves. It also prepares the database and creates the welcome text, because it has
    loaded Django. It reports one line (`serving`, or the error) and that text."""
    with web_report:
        with suppress(OSError):  # it has ended, and its report says why
            web_report.sendall(SERVERS_RUN)
        report = web_report.makefile(encoding="utf-8")
    state = ""
    with suppress(OSError):  # it ended before it read from the socket
        state = report.readline().strip()
    if state == "serving":
        # In a thread, because it takes a second and the other components can start.
        threading.Thread(target=print_welcome, args=(report, folder, supervisor), daemon=True).start()
        return
    report.close()
    if state:
        raise ConfigurationError(state)
    raise PreparationFailed


class StartInterrupted(Exception):
    """A signal arrived while components were still starting."""


class PreparationFailed(Exception):
    """The database cannot be used, and the reason was printed."""


def refuse_wrong_certificate(environment: Environment) -> None:
    if not (environment.tls_cert and environment.tls_key):
        return
    try:
        # An empty password, because without one OpenSSL would ask for that of an encrypted key on the terminal.
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(environment.tls_cert, environment.tls_key, password="")
    except OSError as error:
        reason = (getattr(error, "reason", None) or error.strerror or "unknown").lower().replace("_", " ")
        raise ConfigurationError(
            f"SVC_TLS_CERT and SVC_TLS_KEY cannot be used together ({reason}). Both must be PEM files. "
            "The key must not have a password."
        ) from None


def refuse_port_in_use(environment: Environment) -> None:
    family = socket.AF_INET6 if ":" in environment.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((environment.host, environment.port))
        except OSError as error:
            raise ConfigurationError(
                f"The web server cannot listen on {environment.host}:{environment.port} ({error.strerror}). "
                "If another program uses this port, stop it or set another SVC_PORT. Otherwise, check SVC_HOST and "
                "SVC_PORT."
            ) from None


def start_servers(supervisor: Supervisor, environment: Environment, folder: DataFolder) -> None:
    """Start the embedded servers, unless external ones are configured."""
    if environment.database_url is None:
        postgres = Postgres(folder, environment.postgres_sizes)
        launch(supervisor, postgres)
        postgres.create_database()
    if environment.redis_url is None:
        launch(supervisor, Valkey(folder))


def launch(supervisor: Supervisor, server: Postgres | Valkey) -> None:
    server.initialize()
    process = supervisor.start(Child(server.name, server.command(), stop_signal=server.stop_signal))
    if not wait_until_ready(server, process):
        raise ConfigurationError(server.start_failure_message)


def prepare() -> None:
    """Prepare the database in a separate process, unless it is already prepared."""
    command = [sys.executable, str(env.ROOT / "manage.py"), "prepare", "--if-changed"]
    # In its own session, so that Ctrl-C does not interrupt a migration.
    result = subprocess.run(command, check=False, start_new_session=True)
    if result.returncode < 0:
        raise StartInterrupted
    if result.returncode != 0:
        raise PreparationFailed


def component_child(component: str, folder: DataFolder, *, has_beat: bool = False) -> Child:
    environ = {"SVC_PROCESS": component, "PYTHONUNBUFFERED": "1", **MALLOC_ENVIRON}
    if component == "worker" and os.geteuid() == 0:
        # Celery warns about root because of pickle; this worker accepts only JSON.
        environ["PYTHONWARNINGS"] = "ignore:You're running the worker with superuser"
    if component == "web":
        environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder.metrics)
    commands = {"web": WEB_COMMAND, "worker": [*WORKER_COMMAND, *["--beat"] * has_beat], "beat": BEAT_COMMAND}
    return Child(component, commands[component], environ)


def is_responding(environment: Environment) -> bool:
    """Whether the web server answers. No data is sent, so its certificate is not verified."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # a default context would load all authorities, 13 MB
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    # Ignores the proxy for outbound calls that the environment may set.
    handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with urllib.request.build_opener(*handlers).open(environment.local_url + "/healthz", timeout=2):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def print_welcome(report: TextIO, folder: DataFolder, supervisor: Supervisor) -> None:
    with report:
        text = report.read()
    if text and not supervisor.is_stopping:
        print(text, flush=True)
        folder.password_shown_file.touch()


def stop(supervisor: Supervisor, folder: DataFolder, reason: str) -> None:
    """Ctrl-C stops everything within 10 s. On SIGTERM, /readyz reports draining, and requests have 30 s to finish."""
    supervisor.is_stopping = True
    is_draining = reason == "drain"
    has_web = any(child.name == "web" for child in supervisor.children)  # another component may share the folder
    if is_draining and has_web:
        with suppress(OSError):  # the disk may be full, and the components must stop all the same
            folder.draining_file.touch()
    supervisor.log("stopping" + (" after the current requests" if is_draining else ""))
    timeouts = {"web": DRAIN_S + 1, "worker": 20.0, "postgres": 20.0}
    if not is_draining:
        timeouts = dict.fromkeys(timeouts, 2.5)
    supervisor.stop(STOP_ORDER, lambda name: timeouts.get(name, 2.0))
    if has_web:
        folder.draining_file.unlink(missing_ok=True)
        folder.url_file.unlink(missing_ok=True)
    supervisor.log("stopped")
    supervisor.close()

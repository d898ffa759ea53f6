"""Turns DATABASE_URL into Django's settings, with the timeouts of each kind of process."""

from typing import Any

from psycopg import ProgrammingError, conninfo

from config.env import ConfigurationError

# Web requests must not wait long; background work may. Commands have no timeout.
STATEMENT_TIMEOUT_MS = {"web": 5_000, "worker": 60_000, "beat": 60_000}
LOCK_TIMEOUT_MS = {"web": 2_000, "worker": 10_000, "beat": 10_000}
IDLE_IN_TRANSACTION_TIMEOUT_MS = {"web": 10_000, "worker": 300_000, "beat": 60_000}

# After this time, a web request returns 503, because a queue of requests would only grow.
CONNECT_TIMEOUT_S = {"web": 2}
DEFAULT_CONNECT_TIMEOUT_S = 5

# A host that disappears does not close its connections. Without these settings they, and beat's leadership, would last
# two hours; with them they end within a minute, here and on the server. Unix sockets ignore them.
KEEPALIVES = {"idle": "30", "interval": "10", "count": "3"}

DJANGO_NAMES = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}


def session_settings(process: str) -> dict[str, str]:
    settings = {"search_path": "public", "timezone": "UTC", "datestyle": "ISO"}
    settings |= {f"tcp_keepalives_{name}": value for name, value in KEEPALIVES.items()}
    if process in STATEMENT_TIMEOUT_MS:
        settings["statement_timeout"] = str(STATEMENT_TIMEOUT_MS[process])
        settings["lock_timeout"] = str(LOCK_TIMEOUT_MS[process])
        settings["idle_in_transaction_session_timeout"] = str(IDLE_IN_TRANSACTION_TIMEOUT_MS[process])
    return settings


def session_options(process: str) -> str:
    return " ".join(f"-c {name}={value}" for name, value in session_settings(process).items())


def application_name(process: str) -> str:
    return f"servicebase {process}"  # shown in pg_stat_activity


def reconfigure(process: str, former_process: str, entry: dict[str, Any]) -> None:
    """Replace the settings of the parent with those of a forked process, before it connects."""
    options = entry["OPTIONS"]
    options["options"] = options["options"].replace(session_options(former_process), session_options(process))
    options["application_name"] = options["application_name"].replace(
        application_name(former_process), application_name(process)
    )


def database_entry(url: str, process: str, name: str = "DATABASE_URL") -> dict[str, Any]:
    """One entry of Django's DATABASES.

    >>> entry = database_entry("postgresql://me@db.example.com/records?sslmode=require", "web")
    >>> entry["HOST"], entry["NAME"], entry["OPTIONS"]["sslmode"]
    ('db.example.com', 'records', 'require')
    """
    try:
        parameters: dict[str, Any] = dict(conninfo.conninfo_to_dict(url))
    except ProgrammingError:  # its text can quote the password
        raise ConfigurationError(
            f"{name} is not valid. Write it as postgresql://user:password@host:5432/database, "
            "with special characters in the password percent-encoded."
        ) from None
    entry = {setting: str(parameters.pop(name)) for name, setting in DJANGO_NAMES.items() if name in parameters}
    if "NAME" not in entry:
        raise ConfigurationError(f"{name} has no database name. Add it after the last slash.")
    own_options = str(parameters.pop("options", "") or "")
    options: dict[str, Any] = {**parameters, "options": f"{own_options} {session_options(process)}".strip()}
    options.setdefault("application_name", application_name(process))
    options.setdefault("connect_timeout", CONNECT_TIMEOUT_S.get(process, DEFAULT_CONNECT_TIMEOUT_S))
    for setting, value in KEEPALIVES.items():
        options.setdefault(f"keepalives_{setting}", value)
    # No keepalives are sent while a response is pending; this timeout ends the wait for a host that disappeared.
    options.setdefault("tcp_user_timeout", "60000")
    # `system.database_statements` prepares frequent statements; psycopg would close them all after a rollback.
    options.setdefault("prepare_threshold", None)
    return {
        "ENGINE": "config.postgresql",
        # A thread of the web server keeps its connection, because a pool took an eighth of the CPU of a read. Other
        # processes close it after their work.
        "CONN_MAX_AGE": None if process == "web" else 0,
        "CONN_HEALTH_CHECKS": True,
        **entry,
        "OPTIONS": options,
    }

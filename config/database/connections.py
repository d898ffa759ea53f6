"""Turns DATABASE_URL into Django's settings, with the timeouts of each kind of process."""

from typing import Any

from psycopg import ProgrammingError, conninfo

from config.env import ConfigurationError

# Milliseconds. A web request must not wait long; background work may; a person's own command is not cut off.
STATEMENT_TIMEOUT_MS = {"web": 5_000, "worker": 60_000, "beat": 60_000}
LOCK_TIMEOUT_MS = {"web": 2_000, "worker": 10_000, "beat": 10_000}
IDLE_IN_TRANSACTION_MS = {"web": 10_000, "worker": 300_000, "beat": 60_000}

# Seconds to connect: a request answers 503 then, since a queue would only grow.
CONNECT_TIMEOUT_S = {"web": 2}
PATIENT_CONNECT_TIMEOUT_S = 5

# A host that vanished says no goodbye. Without these its connection, and with it beat's lead, would last two hours;
# here and on the server it ends within a minute. Sockets of this machine have no use for them and ignore them.
SILENCE = {"idle": "30", "interval": "10", "count": "3"}

PARTS = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}


def session_settings(process: str) -> dict[str, str]:
    """What every connection of this kind of process starts with."""
    found = {"search_path": "public", "timezone": "UTC", "datestyle": "ISO"}
    found |= {f"tcp_keepalives_{name}": value for name, value in SILENCE.items()}
    if process in STATEMENT_TIMEOUT_MS:
        found["statement_timeout"] = str(STATEMENT_TIMEOUT_MS[process])
        found["lock_timeout"] = str(LOCK_TIMEOUT_MS[process])
        found["idle_in_transaction_session_timeout"] = str(IDLE_IN_TRANSACTION_MS[process])
    return found


def database(url: str, process: str, name: str = "DATABASE_URL") -> dict[str, Any]:
    """One entry of Django's DATABASES.

    >>> found = database("postgresql://me@db.example.com/records?sslmode=require", "web")
    >>> found["HOST"], found["NAME"], found["OPTIONS"]["sslmode"]
    ('db.example.com', 'records', 'require')
    """
    try:
        given: dict[str, Any] = dict(conninfo.conninfo_to_dict(url))
    except ProgrammingError:  # its text can quote the password
        raise ConfigurationError(
            f"{name} cannot be read; write it as postgresql://user:password@host:5432/database, "
            "with special characters of the password percent-encoded."
        ) from None
    parts = {django: str(given.pop(ours)) for ours, django in PARTS.items() if ours in given}
    if "NAME" not in parts:
        raise ConfigurationError(f"{name} names no database; add one after the last slash.")
    own = str(given.pop("options", "") or "")
    settings = " ".join(f"-c {key}={value}" for key, value in session_settings(process).items())
    options: dict[str, Any] = {**given, "options": f"{own} {settings}".strip()}
    options.setdefault("application_name", f"servicebase {process}")  # who is who in pg_stat_activity
    options.setdefault("connect_timeout", CONNECT_TIMEOUT_S.get(process, PATIENT_CONNECT_TIMEOUT_S))
    for setting, value in SILENCE.items():
        options.setdefault(f"keepalives_{setting}", value)
    # Keepalives rest while an answer is awaited; this ends the wait for a host that vanished.
    options.setdefault("tcp_user_timeout", "60000")
    # The Table API binds on the server: a statement that comes often is planned once a connection.
    options.setdefault("prepare_threshold", 5)
    return {
        "ENGINE": "config.postgresql",
        # A thread of the web server keeps its connection: a pool's checkout took an eighth of a read's CPU. What ends
        # with its work gives its connection back.
        "CONN_MAX_AGE": None if process == "web" else 0,
        "CONN_HEALTH_CHECKS": True,
        **parts,
        "OPTIONS": options,
    }

"""Django's PostgreSQL backend with metrics, without a round trip to check that a connection is alive."""

import select
import threading
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django_prometheus.db.backends.postgresql import base

from system.database_statements import ConnectionStatements


class _ConnectionCloser:
    """Ends a connection when nobody holds this any more."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


class _ThreadConnections(threading.local):
    """What goes with its thread at once: the web server ends idle threads, and Django's wrappers refer to themselves,
    so that their connections would stay until Python collects what is in circles."""

    def __init__(self) -> None:
        self.closers: WeakKeyDictionary[Any, _ConnectionCloser] = WeakKeyDictionary()


_thread_connections = _ThreadConnections()


class DatabaseWrapper(base.DatabaseWrapper):  # type: ignore[misc]  # the library is untyped
    """Each thread keeps its connection, and looks at it before each request."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        _thread_connections.closers[self] = _ConnectionCloser(connection)
        self.statements = ConnectionStatements(connection)
        return connection

    def is_usable(self) -> bool:
        """A server that ended a connection has said so on its socket: looking there costs nothing, asking costs a
        round trip with each request."""
        try:
            return not _is_readable(self.connection.fileno()) or bool(super().is_usable())
        except psycopg.OperationalError:
            return False  # closed on this side


def _is_readable(descriptor: int) -> bool:
    """Whether something came that nobody asked for: the end of the connection, or only a notice."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))

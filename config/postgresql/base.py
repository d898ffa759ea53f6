"""Django's PostgreSQL backend with metrics, which checks connections without a round trip."""

import select
import threading
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django_prometheus.db.backends.postgresql import base

from system.database_statements import ConnectionStatements


class _ConnectionCloser:
    """Closes a connection as soon as nothing refers to this object."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


class _ThreadConnections(threading.local):
    """Closes the connections of a thread as soon as it ends. The web server ends idle threads, and Django's wrappers
    are in reference cycles, so their connections would stay open until a garbage collection."""

    def __init__(self) -> None:
        self.closers: WeakKeyDictionary[Any, _ConnectionCloser] = WeakKeyDictionary()


_thread_connections = _ThreadConnections()


class DatabaseWrapper(base.DatabaseWrapper):  # type: ignore[misc]  # the library is untyped
    """Each thread keeps its connection, and checks it before each request."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        _thread_connections.closers[self] = _ConnectionCloser(connection)
        self.statements = ConnectionStatements(connection)
        return connection

    def is_usable(self) -> bool:
        """The socket of a connection that the server has closed is readable. Checking that costs nothing; a query would
        cost a round trip per request."""
        try:
            return not _is_readable(self.connection.fileno()) or bool(super().is_usable())
        except psycopg.OperationalError:
            return False  # closed on this side


def _is_readable(descriptor: int) -> bool:
    """Whether unexpected data has arrived: the end of the connection, or only a notice."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))

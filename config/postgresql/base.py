"""In charge of connections to PostgreSQL: Django's own, with metrics, that need no round trip to be known as alive."""

import select

import psycopg
from django_prometheus.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):  # type: ignore[misc]  # the library is untyped
    """Each thread keeps its connection, and looks at it before each request."""

    def is_usable(self) -> bool:
        """A server that ended a connection has said so on its socket: looking there costs nothing, asking costs a
        round trip with each request."""
        try:
            return not _has_word(self.connection.fileno()) or bool(super().is_usable())
        except psycopg.OperationalError:
            return False  # closed on this side


def _has_word(descriptor: int) -> bool:
    """Whether something came that nobody asked for: the end of the connection, or only a notice."""
    watched = select.poll()
    watched.register(descriptor, select.POLLIN)
    return bool(watched.poll(0))

"""Runs statements with values bound on the server, each with one call of libpq.

A psycopg cursor sends a statement and waits for its result in seven steps, each of which releases the GIL. With busy
threads, every release switches to another thread, which took a quarter of the CPU time of a read.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result

# A statement is prepared after this many uses; the least recently used prepared statements are closed.
PREPARE_AFTER_USES = 5
MAX_PREPARED = 100

# SQLSTATE classes of errors after which a statement is prepared again: its table has changed, or it was closed.
STALE_PLAN_SQLSTATES = ("0A", "26", "42")

PLACEHOLDER_PATTERN = re.compile(r"%\((\w+)\)s")
# The text of a statement and the types of its values.
StatementKey = tuple[bytes, Any]


class StatementResult:
    def __init__(self, result: pq.abc.PGresult, transformer: Any) -> None:
        self._result = result
        self._transformer = transformer

    def rows(self) -> list[tuple[Any, ...]]:
        self._transformer.set_pgresult(self._result)
        rows: list[tuple[Any, ...]] = self._transformer.load_rows(0, self._result.ntuples, tuple)
        return rows

    def byte_rows(self) -> list[tuple[bytes | None, ...]]:
        """The values as bytes, as the database returned them: JSON is not parsed, decoded or copied."""
        get_value, columns = self._result.get_value, range(self._result.nfields)
        return [tuple([get_value(row, column) for column in columns]) for row in range(self._result.ntuples)]


class ConnectionStatements:
    """Runs the statements of one connection, and prepares frequent ones."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.prepare_after_uses: int | None = PREPARE_AFTER_USES
        self._use_counts: OrderedDict[StatementKey, int] = OrderedDict()
        self._prepared_names: OrderedDict[StatementKey, bytes] = OrderedDict()
        self._names_to_close: list[bytes] = []
        self._name_counter = count()

    def run(self, text: bytes, values: Sequence[Any]) -> StatementResult:
        """Run a statement with PostgreSQL's own placeholders ($1), so that its text need not be parsed."""
        connection: Any = self.connection.pgconn
        transformer = Transformer(self.connection)
        parameters = transformer.dump_sequence(values, [PyFormat.AUTO] * len(values))
        if not self.connection.autocommit and connection.transaction_status == pq.TransactionStatus.IDLE:
            self._check(connection.exec_(b"BEGIN"))
        if self._names_to_close and connection.transaction_status != pq.TransactionStatus.INERROR:
            self._check(connection.close_prepared(self._names_to_close.pop()))
        key = (text, transformer.types)
        name = self._prepared_name(key)
        if name is None:
            result = connection.exec_params(text, parameters, transformer.types, transformer.formats)
        else:
            result = connection.exec_prepared(name, parameters, transformer.formats)
        try:
            self._check(result)
        except psycopg.Error as error:
            if name is not None and (error.sqlstate or "")[:2] in STALE_PLAN_SQLSTATES:
                self._names_to_close.append(self._prepared_names.pop(key))
            raise
        return StatementResult(result, transformer)

    def _prepared_name(self, key: StatementKey) -> bytes | None:
        name = self._prepared_names.get(key)
        if name is not None:
            self._prepared_names.move_to_end(key)
            return name
        if self.prepare_after_uses is None:
            return None
        use_count = self._use_counts.pop(key, 0) + 1
        if use_count <= self.prepare_after_uses:
            self._use_counts[key] = use_count
            if len(self._use_counts) > MAX_PREPARED:
                self._use_counts.popitem(last=False)
            return None
        name = f"statement_{next(self._name_counter)}".encode()
        self._check(self.connection.pgconn.prepare(name, *key))
        self._prepared_names[key] = name
        if len(self._prepared_names) > MAX_PREPARED:
            self._names_to_close.append(self._prepared_names.popitem(last=False)[1])
        return name

    def _check(self, result: pq.abc.PGresult) -> None:
        if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            return
        error = error_from_result(result)
        if self.connection.broken and error.sqlstate is None:
            raise psycopg.OperationalError("The connection to the database was lost.")
        raise error


def run_sql(text: bytes, values: Sequence[Any], alias: str = DEFAULT_DB_ALIAS) -> StatementResult:
    connection: Any = connections[alias]
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    with connection.wrap_database_errors:
        return connection.statements.run(text, values)  # type: ignore[no-any-return]


def run_named_sql(sql: str, values: Mapping[str, Any]) -> StatementResult:
    """Run a statement with placeholders such as `%(name)s`."""
    text, names = with_numbered_placeholders(sql)
    return run_sql(text, [values[name] for name in names])


def with_numbered_placeholders(sql: str) -> tuple[bytes, tuple[str, ...]]:
    """The statement with PostgreSQL's placeholders, and the name of the value of each.

    >>> with_numbered_placeholders("SELECT %(a)s, %(b)s, %(a)s")
    (b'SELECT $1, $2, $1', ('a', 'b'))
    """
    names: dict[str, int] = {}
    text = PLACEHOLDER_PATTERN.sub(lambda match: f"${names.setdefault(match[1], len(names) + 1)}", sql)
    return text.encode(), tuple(names)

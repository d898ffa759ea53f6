"""In charge of finding out which SQL a request of the Table API runs: the very text and values, taken at the driver."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psycopg
from django.test import Client

from bench.tableapi.loop import Run


@contextmanager
def noted() -> Iterator[list[Run]]:
    """Every statement that is run through a cursor that binds on the server, as the Table API's is."""
    found: list[Run] = []
    execute = psycopg.Cursor.execute

    def note(cursor: Any, query: Any, params: Any = None, **options: Any) -> Any:
        if not isinstance(cursor, psycopg.ClientCursor):
            sql = query if isinstance(query, bytes) else str(query).encode()
            found.append(Run(sql, params, isinstance(cursor, psycopg.RawCursor)))
        return execute(cursor, query, params, **options)

    with patch.object(psycopg.Cursor, "execute", note):
        yield found


def of_request(path: str, key: str) -> Run:
    """The one statement that answers this read."""
    client = Client(headers={"Authorization": f"Bearer {key}", "Host": "127.0.0.1"})
    for _ in range(2):  # the first one also reads the catalogue
        with noted() as found:
            answer = client.get(path)
    if answer.status_code != 200 or len(found) != 1:
        raise SystemExit(f"{path} answered {answer.status_code} with {len(found)} statements")
    return found[0]

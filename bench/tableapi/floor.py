"""The floor of the comparison: a bare WSGI application that executes `SELECT 1`. `product.Floor` runs it."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

import psycopg

BODY = b'{"status":"OK"}'
HEADERS = [("Content-Type", "application/json"), ("Content-Length", str(len(BODY)))]
of_thread = threading.local()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    if not hasattr(of_thread, "connection"):
        of_thread.connection = psycopg.connect(autocommit=True)  # where to: PGHOST and others
    of_thread.connection.execute("SELECT 1").fetchone()
    start_response("200 OK", HEADERS)
    return [BODY]

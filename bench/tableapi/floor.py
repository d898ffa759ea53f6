"""The floor of the comparison: a bare WSGI application that executes `SELECT 1`. `product.FloorServer` runs it."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

import psycopg

RESPONSE_BODY = b'{"status":"OK"}'
RESPONSE_HEADERS = [("Content-Type", "application/json"), ("Content-Length", str(len(RESPONSE_BODY)))]
thread_state = threading.local()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    if not hasattr(thread_state, "connection"):
        thread_state.connection = psycopg.connect(autocommit=True)  # the server is in PGHOST
    thread_state.connection.execute("SELECT 1").fetchone()
    start_response("200 OK", RESPONSE_HEADERS)
    return [RESPONSE_BODY]

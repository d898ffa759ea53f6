"""Database connections of web threads are kept, checked before use, and replaced if the server closed them."""

import gc
from collections.abc import Iterator
from threading import Thread
from typing import Any

import psycopg
import pytest
from django.db import connection

from tests.config.stack import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def terminate_backend(pid: int) -> None:
    with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other_connection:
        other_connection.execute("SELECT pg_terminate_backend(%s)", [pid])
        while other_connection.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone():
            pass


def test_connection_closed_by_the_server_is_detected_without_a_query(db: Any):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    assert connection.is_usable()

    terminate_backend(pid)

    assert not connection.is_usable()
    connection.close()


def test_connection_with_a_pending_notice_is_kept(db: Any):
    with connection.cursor() as cursor:
        cursor.execute("LISTEN something")
    with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other_connection:
        other_connection.execute("NOTIFY something")

    assert connection.is_usable()


@pytest.fixture
def disabled_garbage_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_connection_is_closed_with_its_thread(disabled_garbage_collection: None):
    """The web server ends idle threads and starts new ones."""
    pids: list[int] = []

    def record_backend_pid() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            pids.append(cursor.fetchone()[0])

    thread = Thread(target=record_backend_pid)
    thread.start()
    thread.join()

    def connection_exists() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", pids)
            return cursor.fetchone() is not None

    eventually(lambda: not connection_exists(), timeout_s=10)


def test_connection_check_sends_no_query(django_assert_num_queries: Any):
    with django_assert_num_queries(0):
        assert connection.is_usable()

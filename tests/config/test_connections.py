"""Connections of the web process's threads: kept, looked at before use, and given up when the server ended them."""

from typing import Any

import psycopg
import pytest
from django.db import connection

pytestmark = pytest.mark.django_db(transaction=True)


def end_by_server(pid: int) -> None:
    with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [pid])
        while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone():
            pass


def test_one_that_the_server_ended_is_known_without_a_question(db: Any):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    assert connection.is_usable()

    end_by_server(pid)

    assert not connection.is_usable()
    connection.close()


def test_one_that_only_got_a_notice_stays(db: Any):
    with connection.cursor() as cursor:
        cursor.execute("LISTEN something")
    with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other:
        other.execute("NOTIFY something")

    assert connection.is_usable()


def test_looking_asks_the_server_nothing(django_assert_num_queries: Any):
    with django_assert_num_queries(0):
        assert connection.is_usable()

"""Statements that run with a single call of libpq."""

from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.utils import DataError
from psycopg.types.json import Jsonb

from system import database_statements
from system.database_statements import run_named_sql, run_sql

NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)


@pytest.fixture
def statements(db: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    connection.ensure_connection()
    statements: Any = connection.statements  # type: ignore[attr-defined]  # of our backend
    # Disabled by default, because tests create and drop tables with the same name.
    monkeypatch.setattr(statements, "prepare_after_uses", database_statements.PREPARE_AFTER_USES)
    return statements


def prepared_statements() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        return {statement for (statement,) in cursor.fetchall()}


@pytest.mark.parametrize(
    ("sql_type", "value"),
    [("int", 7), ("text", "ü\n'"), ("text", None), ("varchar[]", ["a", 'b,"', ""]), ("timestamptz", NOON),
     ("boolean", True), ("bytea", b"\x00\xff")],
)  # fmt: skip
def test_value_round_trips(sql_type: str, value: Any, db: Any):
    assert run_sql(f"SELECT $1::{sql_type}".encode(), [value]).rows() == [(value,)]


def test_json_is_returned_as_the_bytes_of_the_database(db: Any):
    assert run_sql(b"SELECT $1::jsonb, NULL", [Jsonb({"a": [1]})]).byte_rows() == [(b'{"a": [1]}', None)]


def test_repeated_name_is_one_parameter(db: Any):
    assert run_named_sql("SELECT %(a)s::text || %(b)s::text || %(a)s::text, '100 %'", {"b": "-", "a": "x"}).rows() == [
        ("x-x", "100 %")
    ]


@pytest.mark.django_db(transaction=True)
def test_statement_runs_in_the_current_transaction(statements: Any):
    run_sql(b"CREATE TABLE statement_test (a int)", [])
    try:
        with transaction.atomic():
            run_sql(b"INSERT INTO statement_test VALUES (1)", [])
            transaction.set_rollback(True)
        run_sql(b"INSERT INTO statement_test VALUES (2)", [])
        assert run_sql(b"SELECT a FROM statement_test", []).rows() == [(2,)]
    finally:
        run_sql(b"DROP TABLE statement_test", [])


@pytest.mark.django_db(transaction=True)
def test_frequent_statements_stay_prepared_after_a_rollback(statements: Any):
    for _ in range(database_statements.PREPARE_AFTER_USES):
        run_sql(b"SELECT 'frequent', $1::int", [1])
    assert "SELECT 'frequent', $1::int" not in prepared_statements()
    run_sql(b"SELECT 'frequent', $1::int", [1])
    assert "SELECT 'frequent', $1::int" in prepared_statements()
    with transaction.atomic():
        run_sql(b"SELECT 1", [])
        transaction.set_rollback(True)
    assert run_sql(b"SELECT 'frequent', $1::int", [2]).rows() == [("frequent", 2)]


def test_least_recently_used_statement_is_closed(statements: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(database_statements, "MAX_PREPARED", 2)
    monkeypatch.setattr(statements, "_prepared_names", OrderedDict())  # without those of other tests
    monkeypatch.setattr(statements, "prepare_after_uses", 0)
    for statement in (b"SELECT 1", b"SELECT 2", b"SELECT 1", b"SELECT 3", b"SELECT 1"):
        run_sql(statement, [])
    assert {"SELECT 1", "SELECT 3"} <= prepared_statements() and "SELECT 2" not in prepared_statements()


def test_database_errors_are_raised_as_django_errors(statements: Any):
    with pytest.raises(DataError) as exc_info, transaction.atomic():
        run_sql(b"SELECT $1::text::int", ["x"])
    assert getattr(exc_info.value.__cause__, "sqlstate", None) == "22P02"
    run_sql(b"CREATE TEMPORARY TABLE statement_test (a int UNIQUE)", [])
    run_sql(b"INSERT INTO statement_test VALUES (1)", [])
    with pytest.raises(IntegrityError), transaction.atomic():
        run_sql(b"INSERT INTO statement_test VALUES (1)", [])


def test_refused_values_leave_one_prepared_statement(statements: Any):
    run_sql(b"CREATE TEMPORARY TABLE statement_test (a int UNIQUE)", [])
    for number in range(30):
        run_sql(b"INSERT INTO statement_test VALUES ($1::int)", [number])
        with pytest.raises(IntegrityError), transaction.atomic():
            run_sql(b"INSERT INTO statement_test VALUES ($1::int)", [number])
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'INSERT INTO statement_test%'")
        assert cursor.fetchone() == (1,)


def test_statement_whose_plan_became_invalid_is_prepared_again(statements: Any):
    run_sql(b"CREATE TEMPORARY TABLE statement_test (a int)", [])
    for _ in range(database_statements.PREPARE_AFTER_USES + 1):
        run_sql(b"SELECT a FROM statement_test", [])
    run_sql(b"ALTER TABLE statement_test ALTER a TYPE text", [])
    with pytest.raises(Exception, match="result type"), transaction.atomic():
        run_sql(b"SELECT a FROM statement_test", [])
    assert run_sql(b"SELECT a FROM statement_test", []).rows() == []
    assert "SELECT a FROM statement_test" not in prepared_statements()


@pytest.mark.django_db(transaction=True)
def test_lost_connection_is_replaced(statements: Any):
    (lost_pid,) = run_sql(b"SELECT pg_backend_pid()", []).rows()[0]
    with pytest.raises(OperationalError):
        run_sql(b"SELECT pg_terminate_backend(pg_backend_pid())", [])
    connection.close_if_unusable_or_obsolete()
    assert run_sql(b"SELECT pg_backend_pid()", []).rows() != [(lost_pid,)]

"""Timeouts cancel slow statements and lock waits; the caller gets an error, and no change is incomplete."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg import errors

from config.database.connections import session_settings
from tests.config.shared_servers import SharedServers
from tests.config.stack import eventually
from tests.tableapi.stack.callers import (
    WAIT_AT_GATE,
    ApiCaller,
    ComponentStarter,
    closed_gate,
    create_write_trigger,
    wait_for_blocked_connection,
)

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def device(admin: ApiCaller) -> str:
    return admin.create_table("device")


@pytest.fixture
def lamp(device: str, admin: ApiCaller, database: psycopg.Connection) -> str:
    database.execute("DROP TRIGGER IF EXISTS of_test ON records.device")
    database.execute("DELETE FROM records.device")
    (created_record,) = admin.send("POST", "device", {"name": "Lamp"}).records
    return str(created_record["sys_id"])


@pytest.fixture
def other_connection(servers: SharedServers) -> Any:
    """Another connection with its own transaction."""
    with closing(psycopg.connect(servers.postgres.url)) as connection:
        yield connection


def test_connections_of_web_processes_have_timeouts(lamp: str, admin: ApiCaller, database: psycopg.Connection):
    # B48 B49 B50
    setting_names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    settings_sql = " || ' ' || ".join(f"current_setting('{name}')" for name in setting_names)
    create_write_trigger(database, "device", f"NEW.name = {settings_sql}")

    (created_record,) = admin.send("POST", "device", {}).records
    assert created_record["name"] == "5s 2s 10s"


def test_idle_transaction_ends_and_releases_its_locks(servers: SharedServers, lamp: str, other_connection: Any):  # B50
    settings = session_settings("web") | {"idle_in_transaction_session_timeout": "200"}
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    lock_query = "SELECT FROM records.device FOR UPDATE"
    with closing(psycopg.connect(servers.postgres.url, options=options)) as idle_connection:
        idle_connection.execute(lock_query)

        def is_lock_free() -> bool:
            try:
                other_connection.execute(f"{lock_query} NOWAIT")
            except errors.LockNotAvailable:
                other_connection.rollback()
                return False
            return True

        assert not is_lock_free()
        eventually(is_lock_free, timeout_s=20)
        with pytest.raises(errors.IdleInTransactionSessionTimeout):
            idle_connection.execute("SELECT 1")


def test_disconnected_client_leaves_no_open_transaction(
    servers: SharedServers, lamp: str, admin: ApiCaller, database: psycopg.Connection, other_connection: Any
):  # B50
    create_write_trigger(database, "device", WAIT_AT_GATE)
    with closed_gate(servers):
        client_connection = admin.send_and_disconnect("PATCH", f"device/{lamp}", {"name": "Other"})
        wait_for_blocked_connection(database, "web")
        client_connection.close()

    open_transactions_query = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'servicebase web' AND xact_start IS NOT NULL"
    )
    eventually(lambda: database.execute(open_transactions_query).fetchone() == (0,))
    other_connection.execute("SELECT FROM records.device FOR UPDATE NOWAIT")
    assert admin.list_names("device") in (["Lamp"], ["Other"]), "the change is complete or absent"


def test_locked_record_is_503_until_released(lamp: str, admin: ApiCaller, other_connection: Any):  # B49
    other_connection.execute("SELECT FROM records.device FOR UPDATE")
    for method in ("PATCH", "PUT", "DELETE"):
        assert admin.send(method, f"device/{lamp}", {"name": "Other"} if method != "DELETE" else None).is_retry_response
    other_connection.rollback()

    (record,) = admin.send("GET", f"device/{lamp}").records
    assert (record["name"], record["sys_version"]) == ("Lamp", 0)
    # Often enough to use every connection, as refused statements must not break any.
    for _ in range(8):
        assert admin.send("PATCH", f"device/{lamp}", {"name": "Mine"}).status == 200


def test_locked_table_is_503_for_reads(lamp: str, admin: ApiCaller, other_connection: Any):  # B49
    other_connection.execute("LOCK TABLE records.device IN ACCESS EXCLUSIVE MODE")
    assert admin.send("GET", "device").is_retry_response
    other_connection.rollback()
    assert admin.list_names("device") == ["Lamp"]


@pytest.fixture
def reset_slow_statements(database: psycopg.Connection) -> Iterator[None]:
    """Lift the limit of one request at a time for the administrator after the test."""
    yield
    database.execute('UPDATE "user" SET slow_statements = 0')


@pytest.mark.usefixtures("reset_slow_statements")
def test_slow_statement_is_422_and_changes_nothing(lamp: str, admin: ApiCaller, database: psycopg.Connection):  # B48
    key_header = {"Idempotency-Key": "slow"}
    create_write_trigger(database, "device", "PERFORM pg_sleep(60)")
    for response in (
        admin.send("POST", "device", {"name": "Slow"}),
        admin.send("PATCH", f"device/{lamp}", {"name": "Slow"}),
        admin.send("POST", "device", {"name": "Slow"}, key_header),
    ):
        assert (
            response.status == 422 and b"query_too_slow" in response.content and "retry-after" not in response.headers
        )

    database.execute("DROP TRIGGER of_test ON records.device")
    assert admin.list_names("device") == ["Lamp"]
    assert admin.send("POST", "device", {"name": "Slow"}, key_header).status == 201, "its first response is not stored"
    assert sorted(admin.list_names("device")) == ["Lamp", "Slow"]


@pytest.mark.usefixtures("reset_slow_statements")
def test_user_with_slow_statements_is_limited_by_every_process_of_every_host(
    servers: SharedServers, lamp: str, admin: ApiCaller, database: psycopg.Connection, start_component: ComponentStarter
):
    other_host_caller = ApiCaller(start_component("web", SVC_WEB_PROCESSES="2").wait_until_up(), admin.key)
    create_write_trigger(database, "device", "PERFORM pg_sleep(60)")
    for _ in range(2):
        assert admin.send("POST", "device", {"name": "Slow"}).status == 422

    create_write_trigger(database, "device", WAIT_AT_GATE)
    with closed_gate(servers):
        client_connection = admin.send_and_disconnect("PATCH", f"device/{lamp}", {"name": "Other"})
        wait_for_blocked_connection(database, "web")
        responses = [caller.send("GET", "device") for caller in (admin, *[other_host_caller] * 8)]
    assert {response.status for response in responses} == {429}
    assert all(int(response.headers["retry-after"]) > 0 for response in responses)
    assert client_connection.getresponse().status == 200
    client_connection.close()

    database.execute("DROP TRIGGER of_test ON records.device")
    assert admin.list_names("device") == other_host_caller.list_names("device") == ["Other"]

"""DATABASE_URL as Django settings: timeouts per kind of process, and options of the operator."""

import pytest

from config.database import connections

DATABASE_URL = "postgresql://me@db.example.com/records"


def options_of(url: str, process: str = "web") -> dict[str, str]:
    options: dict[str, str] = connections.database_entry(url, process)["OPTIONS"]
    return options


@pytest.mark.parametrize("process", ["web", "worker", "beat"])
def test_each_process_has_its_timeouts_and_name(process: str):
    options = options_of(DATABASE_URL, process)

    assert f"statement_timeout={connections.STATEMENT_TIMEOUT_MS[process]}" in options["options"]
    assert f"lock_timeout={connections.LOCK_TIMEOUT_MS[process]}" in options["options"]
    assert options["application_name"] == f"servicebase {process}"


def test_web_request_waits_no_longer_than_two_seconds_to_connect():
    assert [int(options_of(DATABASE_URL, process)["connect_timeout"]) for process in ("web", "worker")] == [2, 5]


def test_only_web_server_threads_keep_their_connection():
    max_ages = {
        process: connections.database_entry(DATABASE_URL, process)["CONN_MAX_AGE"]
        for process in ("web", "worker", "command")
    }

    assert max_ages == {"web": None, "worker": 0, "command": 0}


def test_interactive_commands_have_no_timeout():
    assert "statement_timeout" not in options_of(DATABASE_URL, "command")["options"]


def test_vanished_host_is_detected_on_both_ends_within_a_minute():
    options = options_of(DATABASE_URL, "beat")

    keepalives = {name: int(options[f"keepalives_{name}"]) for name in ("idle", "interval", "count")}
    assert keepalives["idle"] + keepalives["interval"] * keepalives["count"] <= 60
    for name, value in keepalives.items():
        assert f"-c tcp_keepalives_{name}={value}" in options["options"]


def test_options_in_the_database_url_take_precedence():
    url = "postgresql://me@db.example.com/records?connect_timeout=1&application_name=mine&options=-c%20work_mem%3D64MB"
    options = options_of(url)

    assert (options["connect_timeout"], options["application_name"]) == ("1", "mine")
    assert options["options"].startswith("-c work_mem=64MB -c ")

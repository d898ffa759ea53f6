"""Exports of complete lists as CSV or JSON Lines, with the same access rules as the lists."""

import csv
import io
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from accounts.models import User
from system import properties
from system.property_definitions import EXPORT_RECORDS
from tableapi.database import statement_runner
from tableapi.models import Table
from tableapi.read import export, xlsx_writer
from tests.tableapi.world import api, data_of, error_of, field, record, rule, table

pytestmark = pytest.mark.django_db
CSV, JSON_LINES, XLSX = ({"Accept": media_type} for media_type in export.MEDIA_TYPES)


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def device(db: Any) -> Table:
    device = table("device")
    field("device", "name")
    field("device", "rank", "integer")
    field("device", "state", choices={"1": "New", "2": "=Old"})
    field("device", "maker", target="company")
    field("device", "owners", "list", target="user")
    field("device", "data", "json")
    rule("read", "device")
    return device


def content_of(response: Any) -> str:
    assert response.status_code == 200, response.content
    return b"".join(response.streaming_content).decode()


def rows_of(response: Any) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content_of(response))))


def test_json_lines_equal_the_records_of_the_list(device: Table, bob: User, temporary_folder: Path):
    for number in range(60):
        record("device", name=f'"{number}"\n\\ä\t🙂', rank=number % 7, data={"a": [1, None]})
    params: dict[str, Any] = {"query": "rank<5^ORDERBYDESCrank", "fields": "sys_id,name,rank,data", "limit": 100}

    lines = content_of(api(bob).get("device", headers=JSON_LINES, **params)).splitlines()

    assert [json.loads(line) for line in lines] == data_of(api(bob).get("device", **params))
    assert os.listdir(temporary_folder) == []


def test_csv_has_a_header_and_quoted_values(device: Table, bob: User):
    record("device", name='a "b", c\nd', rank=-5, state="1", owners=[bob.pk], data={"a": 1})
    response = api(bob).get("device", headers=CSV, fields="name,rank,state,owners,data,maker")

    assert response["Content-Type"] == "text/csv"
    assert rows_of(response) == [
        ["name", "rank", "state", "owners", "data", "maker"],
        ['a "b", c\nd', "-5", "1", bob.pk, '{"a": 1}', ""],
    ]


@pytest.mark.parametrize("prefix", ["=", "+", "-", "@", "\t", "\r"])
def test_formulas_are_escaped_unless_the_request_keeps_them(prefix: str, device: Table, bob: User):
    record("device", name=f"{prefix}1+1")

    assert rows_of(api(bob).get("device", headers=CSV, fields="name"))[1] == [f"'{prefix}1+1"]
    unescaped_csv = content_of(api(bob).get("device", headers=CSV, fields="name", keep_formulas=1))
    assert next(csv.reader(io.StringIO(unescaped_csv.partition("\n")[2], newline=""))) == [f"{prefix}1+1"]


def test_display_values_equal_those_of_the_list(device: Table, alice: User, bob: User):
    rule("read", "company")
    maker_id = data_of(api(alice).post("company", {"name": "Acme, Inc."}))[0]["sys_id"]
    record("device", name="a", state="2", maker=maker_id, owners=[bob.pk, alice.pk])

    row = rows_of(api(bob).get("device", headers=CSV, fields="state,maker,owners,maker.name", display_value=1))[1]

    values = data_of(api(bob).get("device", fields="state,maker,owners", display_value=1, exclude_reference_link=1))[0]
    assert row == [f"'{values['state']}", "Acme, Inc.", ", ".join(values["owners"]), "Acme, Inc."]


def test_query_values_are_quoted(device: Table, bob: User):
    record("device", name="it's; DROP TABLE x --")
    record("device", name="other\\'")

    for name in ("it's; DROP TABLE x --", "other\\'"):
        assert rows_of(api(bob).get("device", headers=CSV, query=f"name={name}", fields="name"))[1:] == [[name]]


def test_hidden_records_and_columns_are_not_exported(device: Table, bob: User):
    rule("read", "device", "rank", roles=["itil"])
    record("device", name="a", rank=1)
    unknown_response = api(bob).get("device", headers=CSV, fields="name,nothing")
    hidden_response = api(bob).get("device", headers=CSV, fields="name,rank")
    assert content_of(unknown_response) == content_of(hidden_response) == "name\na\n"
    assert unknown_response.get("X-Ignored-Fields") is None or "rank" in hidden_response["X-Ignored-Fields"]
    assert error_of(api(bob).get("device", headers=CSV, query="rank=1"))[:2] == (400, "unknown_field")

    table("vault")
    assert error_of(api(bob).get("vault", headers=CSV))[:2] == (404, "table_not_found")
    rule("create", "vault")
    assert rows_of(api(bob).get("vault", headers=CSV)) in ([], [[]])
    assert content_of(api(bob).get("vault", headers=JSON_LINES)) == ""


def test_too_many_records_are_refused_unless_limited(device: Table, bob: User, temporary_folder: Path):
    for number in range(5):
        record("device", name=str(number))
    properties.put(EXPORT_RECORDS, "4")

    assert error_of(api(bob).get("device", headers=JSON_LINES))[:2] == (413, "too_large")
    assert content_of(api(bob).get("device", headers=JSON_LINES, limit=3)).count("\n") == 3
    assert error_of(api(bob).get("device", headers=JSON_LINES, limit=5))[:2] == (400, "invalid_parameter")
    properties.put(EXPORT_RECORDS, "5")
    assert content_of(api(bob).get("device", headers=JSON_LINES)).count("\n") == 5
    assert os.listdir(temporary_folder) == []


def test_large_result_is_refused(device: Table, bob: User, temporary_folder: Path, monkeypatch: pytest.MonkeyPatch):
    record("device", name="a" * 100)
    monkeypatch.setattr(export, "MAX_EXPORT_BYTES", 50)

    assert error_of(api(bob).get("device", headers=CSV))[:2] == (413, "too_large")
    assert os.listdir(temporary_folder) == []


@pytest.mark.parametrize(
    ("params", "parameter"),
    [
        ({"page": "2"}, "sysparm_page"),
        ({"cursor": "a"}, "sysparm_cursor"),
        ({"count": "exact"}, "sysparm_count"),
        ({"limit": "0"}, "sysparm_limit"),
        ({"display_value": "all"}, "sysparm_display_value"),
        ({"keep_formulas": "x"}, "sysparm_keep_formulas"),
    ],
)
def test_invalid_parameter_is_refused(params: dict[str, str], parameter: str, device: Table, bob: User):
    assert error_of(api(bob).get("device", headers=CSV, **params)) == (400, "invalid_parameter", parameter)


def test_second_concurrent_export_is_refused(device: Table, bob: User):
    with export.EXPORT_SLOTS:
        response = api(bob).get("device", headers=CSV)
    assert error_of(response)[:2] == (429, "too_many_requests") and int(response["Retry-After"]) > 0
    assert rows_of(api(bob).get("device", headers=CSV))


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "application/json"), ("", "application/json"), ("image/png", "application/json"),
        ("text/csv;q=0.5, application/json", "application/json"), ("text/csv, */*;q=0.1", "text/csv"),
        ("application/x-ndjson", "application/x-ndjson"), ("application/json, text/csv", "application/json"),
    ],
)  # fmt: skip
def test_preferred_media_type_is_returned(accept: str, media_type: str, device: Table, bob: User):
    response = api(bob).get("device", headers={"Accept": accept})

    assert response["Content-Type"] == media_type
    b"".join(response)  # closes the response


def test_error_during_an_export_leaves_no_file(device: Table, bob: User, temporary_folder: Path, monkeypatch: Any):
    record("device", name="a")

    def raise_disk_full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(statement_runner, "copy_lines", raise_disk_full)

    assert api(bob).get("device", headers=CSV).status_code in (503, 507)
    assert os.listdir(temporary_folder) == []


def test_new_column_is_exported(device: Table, bob: User):
    record("device", name="a")
    content_of(api(bob).get("device", headers=CSV))
    field("device", "added")

    assert "added" in content_of(api(bob).get("device", headers=CSV))


def test_batch_refuses_exports_and_downloads(device: Table, bob: User):
    lamp = record("device", name="a")
    batch_items = [
        {"id": 1, "method": "GET", "url": "/rest/v1/table/device", "headers": {"Accept": "text/csv"}},
        {"id": 2, "method": "GET", "url": f"/rest/v1/table/device/{lamp}/attachments"},
        {"id": 3, "method": "POST", "url": f"/rest/v1/table/device/{lamp}/comments", "body": {"text": "a"}},
        {"id": 4, "method": "GET", "url": f"/rest/v1/table/device/{lamp}/attachments/1/content"},
    ]
    response = api(bob).post("/rest/v1/batch", {"requests": batch_items})

    assert [entry["status"] for entry in data_of(response)] == [400, 200, 201, 400]


def test_patterns_and_relative_times_match_as_in_a_list(device: Table, bob: User):
    record("device", name="100 % wool")
    record("device", name="other")
    query = "nameLIKE0 % w^sys_created_atRELATIVEGE@day@ago@1"

    assert rows_of(api(bob).get("device", headers=CSV, query=query, fields="name"))[1:] == [["100 % wool"]]


def sheet_rows(response: Any) -> list[list[Any]]:
    assert response.status_code == 200, response.content
    workbook = load_workbook(io.BytesIO(b"".join(response.streaming_content)), read_only=True)
    return [list(row) for row in workbook.active.iter_rows(values_only=True)]


def test_xlsx_cells_have_the_type_of_their_column(device: Table, bob: User):
    field("device", "bought", "date")
    field("device", "checked", "datetime")
    field("device", "price", "decimal")
    record("device", name="a < b & \ud7ff", rank=3, price="1.50", bought="2024-05-09", checked="2024-05-09 12:30:00")
    record("device", name="12345678901234567890", rank=10**17)
    names = "name,rank,price,bought,checked,state"

    header, first, second = sheet_rows(api(bob).get("device", headers=XLSX, fields=names, query="ORDERBYrank"))

    assert header == names.split(",")
    assert first == ["a < b & \ud7ff", 3, 1.5, datetime(2024, 5, 9), datetime(2024, 5, 9, 12, 30), None]
    assert second[:2] == ["12345678901234567890", str(10**17)]  # spreadsheets would round the number


def test_xlsx_with_display_values_has_text_and_times(device: Table, bob: User, alice: User):
    record("device", name="x", state="1", owners=[bob.pk, alice.pk], data={"a": 1})

    field("device", "bought", "date")
    field("device", "lasts", "duration")
    record("device", name="y", rank=7, bought="2024-05-09", lasts=90)

    rows = sheet_rows(api(bob).get("device", headers=XLSX, fields="state,owners,data", display_value=1))
    others = sheet_rows(
        api(bob).get("device", headers=XLSX, fields="rank,bought,lasts", display_value=1, query="name=y")
    )

    assert rows[1] == ["New", "bob, alice", '{"a": 1}']
    assert others[1] == [7, datetime(2024, 5, 9), "1m 30s"]


def test_xlsx_escapes_formulas_unless_asked_not_to(device: Table, bob: User):
    record("device", name="=1+1", state="2")

    escaped, kept = (
        sheet_rows(api(bob).get("device", headers=XLSX, fields="name,state", display_value=1, keep_formulas=value))
        for value in (0, 1)
    )

    assert escaped[1] == ["'=1+1", "'=Old"] and kept[1] == ["=1+1", "=Old"]


@pytest.mark.parametrize("text", ["\x01\x1f\ufffe", "x\r\ny", " a ", '"', "_x0041_", "\t"])
def test_xlsx_holds_any_text(device: Table, bob: User, text: str):
    record("device", name=text)

    rows = sheet_rows(api(bob).get("device", headers=XLSX, fields="name", keep_formulas=1))

    assert (rows[1][0] or "").replace("\n", "").replace("\r", "") in (text.replace("\r\n", ""), "")


def test_xlsx_refuses_what_the_format_cannot_hold(device: Table, bob: User, monkeypatch: pytest.MonkeyPatch):
    field("device", "notes", "text", max_length=100_000)
    record("device", notes="x" * (xlsx_writer.MAX_CELL_LENGTH + 1))

    assert error_of(api(bob).get("device", headers=XLSX, fields="notes"))[0] == 413
    monkeypatch.setattr(xlsx_writer, "MAX_ROWS", 1)
    assert error_of(api(bob).get("device", headers=XLSX, fields="name"))[0] == 413


def test_xlsx_has_one_value_in_each_cell(device: Table, bob: User):
    assert error_of(api(bob).get("device", headers=XLSX, display_value="all"))[0] == 400


def test_dates_that_spreadsheets_count_differently_are_text(device: Table, bob: User):
    field("device", "bought", "date")
    for day in ("0001-01-01", "1900-02-28", "1900-03-01"):
        record("device", bought=day)

    rows = sheet_rows(api(bob).get("device", headers=XLSX, fields="bought", query="ORDERBYbought"))

    assert [row[0] for row in rows[1:]] == ["0001-01-01", "1900-02-28", datetime(1900, 3, 1)]

"""The formats of files: encodings, delimiters, sheets, types of values."""

import datetime
import io
import json
import zipfile
from typing import Any

import pytest

from accounts.models import User
from tableapi.models import Table
from tests.tableapi.designs import query_rows
from tests.tableapi.imports.files import CSV, JSON_LINES, XLSX, counts, line_errors, run, send, workbook
from tests.tableapi.world import error_of, record

pytestmark = pytest.mark.django_db


def stored(columns: str = "name") -> list[Any]:
    return query_rows(f"SELECT {columns} FROM records.part ORDER BY number")


@pytest.mark.parametrize(
    ("content", "encoding", "delimiter"),
    [("name,quantity\nBüro,2\n".encode(), "utf-8", ","),
     ("\ufeffname;quantity\r\nBüro;2\r\n".encode(), "utf-8-sig", ";"),
     ("name\tquantity\nBüro\t2\n".encode("utf-16"), "utf-16", "\t"),
     ("name|quantity\nBüro|2\n".encode("cp1252"), "cp1252", "|"),
     (b"name,quantity\n" + b"\n" * 260_000 + "Büro,2\n".encode("cp1252"), "cp1252", ",")],
)  # fmt: skip
def test_encoding_and_delimiter_are_guessed(part: Table, bob: User, content: bytes, encoding: str, delimiter: str):
    state = run(bob, "part", content)
    assert (state["format"]["encoding"], state["format"]["delimiter"]) == (encoding, delimiter)
    assert stored("name, quantity")[-1] == ("Büro", 2)


def test_types_are_guessed_and_shown(part: Table, bob: User):
    header = "name,code,quantity,price,is_spare,bought_on,checked_at\n"
    state = run(bob, "part", header + "a,x1,1,1.5,yes,2024-05-01,2024-05-01 10:00\nb,x2,2,2.5,no,2024-05-02,\n")
    assert [(item["name"], item["type"]) for item in state["columns"]] == [
        ("name", "text"), ("code", "text"), ("quantity", "whole number"), ("price", "number"),
        ("is_spare", "yes or no"), ("bought_on", "date"), ("checked_at", "date and time"),
    ]  # fmt: skip
    assert counts(state) == (2, 0, 0, 0) and state["state"] == "done" and state["lines"] == 2


def test_values_are_read_in_the_usual_forms(part: Table, bob: User):
    bob.time_zone = "Europe/Berlin"
    bob.save()
    content = (
        "name;quantity;price;state;is_spare;bought_on;checked_at\n"
        "a;1.200;1.234,50;In use;Yes;31.12.2024;31.12.2024 23:30\n"
        "b;+7;2,5;1;0;2024-05-01;2024-05-01T10:00:00Z\n"
        'c;;;new;n;5 May 2024;"May 6, 2024 3:04 PM"\n'
    )
    state = run(bob, "part", content)
    assert line_errors(state) == []
    rows = stored("quantity, price::text, state, is_spare, bought_on::text, checked_at::text")
    assert rows == [
        (1200, "1234.50", "2", True, "2024-12-31", "2024-12-31 22:30:00+00"),
        (7, "2.5", "1", False, "2024-05-01", "2024-05-01 10:00:00+00"),
        (1, None, "1", False, "2024-05-05", "2024-05-06 13:04:00+00"),
    ]


def test_misplaced_separators_are_errors(part: Table, bob: User):
    state = run(bob, "part", "name;price\na;1.5\nb;1,5\nc;1,50,000\n", on_error="continue", decimal=".")
    assert stored("name, price::text") == [("a", "1.5")]
    assert line_errors(state) == [(line, [("invalid_value", "price")]) for line in (3, 4)]


def test_numbers_of_a_workbook_do_not_depend_on_the_decimal_sign(part: Table, bob: User):
    content = workbook(["name", "price", "code"], [7, 1.234, 5], ["b", "1,5", 6.5])
    assert line_errors(run(bob, "part", content, XLSX, decimal=",")) == []
    assert stored("name, price::text, code") == [("7", "1.234", "5"), ("b", "1.5", "6.5")]


@pytest.mark.parametrize(
    ("dates", "options", "expected"),
    [(("1/2/2024", "13/2/2024"), {}, "2024-02-01"), (("1/2/2024", "1/13/2024"), {}, "2024-01-02"),
     (("1/2/2024",), {"date_order": "mdy"}, "2024-01-02")],
)  # fmt: skip
def test_order_of_day_and_month_is_guessed(part: Table, bob: User, dates: Any, options: Any, expected: str):
    run(bob, "part", "name,bought_on\n" + "".join(f"a,{date}\n" for date in dates), **options)
    assert stored("bought_on::text")[0] == (expected,)


def test_workbook_is_read_from_the_chosen_sheet(part: Table, bob: User):
    shop_id = record("shop", name="North")
    content = workbook(
        ["nothing"],
        Parts=[["Name", "Quantity", "Price", "Is_spare", "Bought_on", "Checked_at", "Shop"], [],
               ["a", 3, 1.5, True, datetime.date(2024, 5, 1), datetime.datetime(2024, 5, 1, 10), "North"]],
    )  # fmt: skip
    state = run(bob, "part", content, XLSX, sheet="Parts")
    assert state["format"]["sheets"] == ["Sheet", "Parts"] and line_errors(state) == []
    assert stored("name, quantity, price::text, is_spare, bought_on::text, checked_at::text, shop") == [
        ("a", 3, "1.5", True, "2024-05-01", "2024-05-01 10:00:00+00", shop_id)
    ]


def test_json_lines_may_have_different_names(part: Table, bob: User):
    lines = [{"name": "a", "quantity": 3}, {"name": "b", "data": {"x": [1]}, "is_spare": True}, ["no object"]]
    content = "\n".join(map(json.dumps, lines))
    state = run(bob, "part", content, JSON_LINES, on_error="continue")
    assert line_errors(state) == [(3, [("invalid_line", None)])]
    assert stored("name, quantity, data::text, is_spare") == [("a", 3, None, None), ("b", 1, '{"x": [1]}', True)]


def test_line_with_too_many_values_is_an_error_and_empty_lines_are_skipped(part: Table, bob: User):
    state = run(bob, "part", 'name\n\n"a\nb"\nc,d\n\ne\n', on_error="continue", delimiter=",")
    assert line_errors(state) == [(5, [("invalid_line", None)])]
    assert stored() == [("a\nb",), ("e",)]


def zip_bomb() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 50_000_000)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "content_type", "options", "message"),
    [(b"no workbook", XLSX, {}, "The file is damaged, or its content does not match its type."),
     (workbook(["name"])[:-200], XLSX, {}, "The file is damaged, or its content does not match its type."),
     (zip_bomb(), XLSX, {}, "The workbook unpacks to too much data."),
     (workbook(["name"], ["a"]), XLSX, {"sheet": "None"}, "The workbook has no sheet with this name."),
     ("name\nBüro".encode("cp1252"), CSV, {"encoding": "utf-8"}, "The file is not valid utf-8. Set its encoding."),
     (b"\n\n", CSV, {}, "The file has no header row."),
     (b"name,NAME\na,b\n", CSV, {}, "The header row contains a name more than once."),
     (b'{"co\\u0000de": 1}', JSON_LINES, {}, "The header row contains a character that cannot be stored.")],
)  # fmt: skip
def test_unreadable_file_is_a_failed_import(
    part: Table, bob: User, content: bytes, content_type: str, options: dict[str, str], message: str
):
    state = run(bob, "part", content, content_type, **options)
    assert state["state"] == "failed"
    assert state["error"] == [{"message": message, "code": "unreadable_file"}]


def test_form_with_a_file_is_accepted(part: Table, bob: User):
    body = (
        '--b\r\nContent-Disposition: form-data; name="file"; filename="parts.csv"\r\n'
        "Content-Type: application/vnd.ms-excel\r\n\r\nname\na\n\r\n--b--\r\n"
    )
    state = run(bob, "part", body, "multipart/form-data; boundary=b")
    assert (state["file_name"], state["created"], state["format"]["type"]) == ("parts.csv", 1, "csv")


def test_file_name_decides_if_the_content_type_does_not(part: Table, bob: User):
    state = run(bob, "part", "name\na\n", "application/octet-stream", file_name="parts.csv")
    assert (state["file_name"], state["created"]) == ("parts.csv", 1)
    assert error_of(send(bob, "part", "x", "application/octet-stream", file_name="parts.doc"))[0] == 415


def test_other_types_and_large_files_are_refused(part: Table, bob: User, settings: Any):
    assert error_of(send(bob, "part", "x", "application/pdf")) == (415, "unsupported_media_type", "file")
    settings.IMPORT_LIMIT = 10
    assert error_of(send(bob, "part", "name\n" + "a" * 20)) == (413, "too_large", "file")


def test_declared_charset_is_used(part: Table, bob: User):
    run(bob, "part", "name\nMüßig\n".encode("latin-1"), "text/csv; charset=iso-8859-1")
    assert stored() == [("Müßig",)]


def test_columns_of_other_records_in_an_export_are_left_out(part: Table, bob: User):
    state = run(bob, "part", "name,Shop \u203a Name,shop.name\nBolt,Lux,Lux\n")
    assert counts(state) == (1, 0, 0, 0)
    assert [column["column"] for column in state["columns"]] == ["name", None, None]
    assert run(bob, "part", "name,No. of shops\nNut,2\n")["state"] == "failed"

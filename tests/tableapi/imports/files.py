"""Helper functions that make files and send them to the import endpoint."""

import io
from typing import Any
from urllib.parse import urlencode

import openpyxl

from accounts.models import User
from tests.tableapi.world import api, data_of

CSV, JSON_LINES = "text/csv", "application/x-ndjson"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def send(user: User | None, table: str, content: str | bytes, content_type: str = CSV, **options: Any) -> Any:
    data = content.encode() if isinstance(content, str) else content
    path = f"/rest/v1/import/{table}?{urlencode(options)}"
    return api(user).post(path, data, headers={"Content-Type": content_type})


def run(user: User, table: str, content: str | bytes, content_type: str = CSV, **options: Any) -> dict[str, Any]:
    """Import a small file in the request; return its state."""
    (state,) = data_of(send(user, table, content, content_type, **options))
    return dict(state)


def workbook(*rows: list[Any], **other_sheets: list[list[Any]]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for name, sheet_rows in other_sheets.items():
        sheet = book.create_sheet(name)
        for row in sheet_rows:
            sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def counts(state: dict[str, Any]) -> tuple[int, int, int, int]:
    return state["created"], state["updated"], state["unchanged"], state["failed"]


def line_errors(state: dict[str, Any]) -> list[tuple[int, list[tuple[str, str | None]]]]:
    return [
        (item["line"], [(error["code"], error.get("field")) for error in item["errors"]])
        for item in state["line_errors"]
    ]

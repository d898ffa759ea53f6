"""Reads the records of a designed table for its admin page, with the permissions of the administrator."""

import json
from dataclasses import dataclass, field
from typing import Any

from django.db import OperationalError
from django.utils.datastructures import MultiValueDict
from django.utils.html import strip_tags

from accounts.models import User
from system.errors import ServiceError
from system.http.error_responses import to_service_error
from tableapi import models
from tableapi.database import catalogue_loader
from tableapi.read import pipeline
from tableapi.read.context import Caller

PAGE_SIZE = 50
# The list omits empty columns; the page of a single record shows all columns.
MAX_COLUMNS = 20
MAX_VALUE_LENGTH = 200
OUTPUT_OPTIONS = {"sysparm_display_value": "all", "sysparm_exclude_reference_link": "1"}


@dataclass(frozen=True)
class RecordRow:
    sys_id: str
    values: list[tuple[str, str]]


@dataclass(frozen=True)
class RecordList:
    columns: list[str] = field(default_factory=list)
    rows: list[RecordRow] = field(default_factory=list)
    next_page: int | None = None
    # Why the query was refused.
    error: str = ""
    page: int = 1


def read_list(user: User, table_name: str, query: str, page: str) -> RecordList:
    values = {"sysparm_query": query, "sysparm_page": page or "1", "sysparm_limit": str(PAGE_SIZE), **OUTPUT_OPTIONS}
    try:
        result = pipeline.read_list(Caller.of(user), table_name, _query_parameters(values))
    except (ServiceError, OperationalError) as error:
        refusal = to_service_error(error, user)
        assert refusal is not None
        return RecordList(error=refusal.message)
    table = catalogue_loader.cached_catalogue().tables[table_name]
    html_columns = frozenset(column.name for column in table.columns.values() if column.column_type.is_html)
    records = [
        {name: strip_tags(as_text(value)) if name in html_columns else as_text(value) for name, value in record.items()}
        for record in json.loads(b"[" + b",".join(result.blocks) + b"]")
    ]
    designed_columns = [column.name for column in table.columns.values() if column.is_readable and not column.is_sys]
    filled_columns = [name for name in designed_columns if any(record.get(name) for record in records)]
    names = [*filled_columns[:MAX_COLUMNS], "sys_updated_at"]
    rows = [
        RecordRow(record.get("sys_id", ""), [(name, record.get(name, "")[:MAX_VALUE_LENGTH]) for name in names])
        for record in records
    ]
    page_number = int(page or 1)
    return RecordList(names, rows, page_number + 1 if result.next_page else None, page=page_number)


def hidden_columns(table: models.Table) -> list[str]:
    """The names of password and secret columns, which cannot be read."""
    catalogue = catalogue_loader.reload_if_changed()
    return [column.name for column in catalogue.tables[table.name].columns.values() if not column.is_readable]


def read_values(user: User, table_name: str, sys_id: str) -> list[tuple[str, str]]:
    """The columns of a record and their values; raises NotFound."""
    result = pipeline.read_record(Caller.of(user), table_name, sys_id, _query_parameters(OUTPUT_OPTIONS))
    return [(column, as_text(value)) for column, value in json.loads(result.body).items()]


def _query_parameters(values: dict[str, str]) -> MultiValueDict[str, str]:
    return MultiValueDict({name: [value] for name, value in values.items()})


def as_text(output: Any) -> str:
    """The display value as text, or the value if there is no display value.

    >>> as_text({"value": "1", "display_value": "New"}), as_text({"value": "17161234", "display_value": None})
    ('New', '17161234')
    >>> as_text(None)
    ''
    """
    if isinstance(output, list):
        return ", ".join(map(as_text, output))
    if not isinstance(output, dict):
        return "" if output is None else str(output)
    value, display = output["value"], output["display_value"]
    text = value if display is None else display
    if text is None:
        return ""
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)

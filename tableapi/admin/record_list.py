"""The page of a designed table's records: what the Table API answers to this administrator, to look at."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.http import QueryDict
from django.utils.html import strip_tags

from accounts.models import User
from system.errors import ServiceError
from tableapi import models
from tableapi.access.caller_view import caller_view
from tableapi.catalogue.definitions import Catalogue, Table
from tableapi.database import catalogue_loader, statement_runner
from tableapi.query import parameters
from tableapi.read import pipeline
from tableapi.read.pipeline import ReadContext

PER_PAGE = 50
# So many columns stand beside one another, those with nothing in them left out; the page of one record has all.
MOST_COLUMNS = 20
LONGEST_VALUE = 200
NO_SUCH_VALUE = "No record is like that. Neither a choice nor the id of a record: "
Answer = TypeVar("Answer")
SHOWN = {"sysparm_display_value": "all", "sysparm_exclude_reference_link": "1"}


@dataclass(frozen=True)
class Row:
    sys_id: str
    values: list[tuple[str, str]]


@dataclass(frozen=True)
class Listed:
    columns: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    next_page: int | None = None
    # Why the query is not answered, or what is doubtful about one that finds nothing.
    said: str = ""
    page: int = 1


def listed(user: User, name: str, query: str, page: str) -> Listed:
    given = {"sysparm_query": query, "sysparm_page": page or "1", "sysparm_limit": str(PER_PAGE), **SHOWN}
    try:
        asked = parameters.parse_list(_parameters(given))
        table, found = _read(user, name, lambda request, table: pipeline.read_records(request, table, asked))
    except ServiceError as error:
        return Listed(said=error.message)
    formatted = frozenset(each.name for each in table.columns.values() if each.type == "wysiwyg")
    records = [
        {
            name: strip_tags(told(value)) if name in formatted else told(value)
            for name, value in json.loads(body).items()
        }
        for body in found.bodies
    ]
    designed = [each.name for each in table.columns.values() if each.is_readable and not each.is_sys]
    filled = [name for name in designed if any(each.get(name) for each in records)]
    names = [*filled[:MOST_COLUMNS], "sys_updated_at"]
    rows = [
        Row(each.get("sys_id", ""), [(name, each.get(name, "")[:LONGEST_VALUE]) for name in names]) for each in records
    ]
    said = NO_SUCH_VALUE + ", ".join(found.doubtful) if found.doubtful else ""
    return Listed(names, rows, asked.page + 1 if found.next_page else None, said, asked.page)


def never_shown(table: models.Table) -> list[str]:
    """Its columns of secrets, which nobody reads."""
    catalogue = catalogue_loader.reload_if_changed()
    return [each.name for each in catalogue.tables[table.name].columns.values() if not each.is_readable]


def one(user: User, name: str, sys_id: str) -> list[tuple[str, str]]:
    """The columns of a record with what stands in them; raises NotFound."""
    shown = parameters.parse_shown(_parameters(SHOWN))
    _, found = _read(user, name, lambda request, table: pipeline.read_record(request, table, sys_id, shown))
    return [(column, told(value)) for column, value in json.loads(found.body).items()]


def _parameters(given: dict[str, str]) -> QueryDict:
    found = QueryDict(mutable=True)
    found.update(given)
    return found


def _read(user: User, name: str, read: Callable[[ReadContext, Table], Answer]) -> tuple[Table, Answer]:
    def work(catalogue: Catalogue) -> tuple[Table, Answer]:
        request = ReadContext(user.pk, caller_view(catalogue, frozenset(user.role_names)), pipeline.now(), "")
        table = request.sight.open_table(name)
        return table, read(request, table)

    return statement_runner.with_current_catalogue(work)


def told(both: Any) -> str:
    """A value and its display value, as people read them.

    >>> told({"value": "1", "display_value": "New"}), told({"value": "17161234", "display_value": None}), told(None)
    ('New', '17161234', '')
    """
    if isinstance(both, list):
        return ", ".join(map(told, both))
    if not isinstance(both, dict):
        return "" if both is None else str(both)
    value, display = both["value"], both["display_value"]
    found = value if display is None else display
    if found is None:
        return ""
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

"""The page of a designed table's records: what the Table API answers to this administrator, to look at."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict
from django.utils.html import strip_tags

from accounts.models import User
from system.errors import ServiceError
from tableapi import models
from tableapi.database import catalogue_loader
from tableapi.read import pipeline
from tableapi.read.context import Caller

PER_PAGE = 50
# So many columns stand beside one another, those with nothing in them left out; the page of one record has all.
MOST_COLUMNS = 20
LONGEST_VALUE = 200
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
    # Why the query is refused.
    said: str = ""
    page: int = 1


def listed(user: User, name: str, query: str, page: str) -> Listed:
    given = {"sysparm_query": query, "sysparm_page": page or "1", "sysparm_limit": str(PER_PAGE), **SHOWN}
    try:
        found = pipeline.read_list(_caller(user), name, _parameters(given))
    except ServiceError as error:
        return Listed(said=error.message)
    table = catalogue_loader.cached_catalogue().tables[name]
    formatted = frozenset(each.name for each in table.columns.values() if each.column_type.is_html)
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
    number = int(page or 1)
    return Listed(names, rows, number + 1 if found.next_page else None, page=number)


def never_shown(table: models.Table) -> list[str]:
    """Its columns of secrets, which nobody reads."""
    catalogue = catalogue_loader.reload_if_changed()
    return [each.name for each in catalogue.tables[table.name].columns.values() if not each.is_readable]


def one(user: User, name: str, sys_id: str) -> list[tuple[str, str]]:
    """The columns of a record with what stands in them; raises NotFound."""
    found = pipeline.read_record(_caller(user), name, sys_id, _parameters(SHOWN))
    return [(column, told(value)) for column, value in json.loads(found.body).items()]


def _parameters(given: dict[str, str]) -> QueryDict:
    found = QueryDict(mutable=True)
    found.update(given)
    return found


def _caller(user: User) -> Caller:
    return Caller(user.pk, frozenset(user.role_names))


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

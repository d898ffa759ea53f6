"""Labels of columns, and the texts of values that the Table API returned, with times in the caller's zone. Pure."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any

from django.utils.html import strip_tags

from system.encoded_query import ComparisonKind
from system.templatetags.moments import MINUTE_FORMAT
from tableapi.catalogue.definitions import Column
from tableapi.query.expressions import ResolvedPath

PATH_SEPARATOR = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "


def column_label(column: Column) -> str:
    return column.label or column.name


def path_label(path: ResolvedPath) -> str:
    return PATH_SEPARATOR.join(map(column_label, [*(step.column for step in path.steps), path.column]))


def display_text(column: Column, field: Any, zone: tzinfo) -> str:
    """The text of a field that was read with `sysparm_display_value=all`.

    >>> from datetime import timedelta, timezone
    >>> time = {"value": "2024-05-09 23:30:00", "display_value": "9 May 2024 23:30:00"}
    >>> display_text(Column("due", "datetime", "task", "due"), time, timezone(timedelta(hours=2)))
    '10 May 2024, 01:30'
    >>> display_text(Column("state", "choice", "task", "state"), {"value": "1", "display_value": "New"}, UTC)
    'New'
    """
    if isinstance(field, list):
        return ", ".join(display_text(column, item, zone) for item in field)
    if not isinstance(field, Mapping) or field.get("value") is None:
        return ""
    value, display = field["value"], field.get("display_value")
    if column.compare_as is ComparisonKind.DATETIME:
        return MINUTE_FORMAT.format(local_time(value, zone))
    text = value if display is None else display
    if column.column_type.is_html:
        return strip_tags(str(text))
    if isinstance(text, Decimal):
        return format(text, "f")
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, default=float)


def local_time(value: str, zone: tzinfo) -> datetime:
    """A time as the Table API returns it, in UTC, on the clock of the zone."""
    return datetime.fromisoformat(value).replace(tzinfo=UTC).astimezone(zone)

"""Groups the records of a list by one column, with counts: what the statistics of the Table API return."""

import json
from datetime import date
from typing import Any

from system.encoded_query import ComparisonKind
from tableapi.catalogue.definitions import Table
from tableapi.query.path_resolver import required_path
from tableapi.read.context import ReadContext
from tableapi.statistics import pipeline
from workspace.forms.display import display_text, path_label
from workspace.forms.parameters import parameters, quoted_value

from . import query_tree
from .list_state import ListState

MAX_GROUPS = 200


def read_groups(context: ReadContext, table: Table, state: ListState) -> dict[str, Any]:
    """The label of the column, and the largest groups. Times are grouped by day."""
    path = state.parameters["group"]
    resolved = required_path(context.view, table, tuple(path.split(".")))
    is_time = resolved.column.compare_as is ComparisonKind.DATETIME
    key = f"{path}:day" if is_time else path
    raw = parameters(
        sysparm_query=query_tree.with_order(state.query),
        sysparm_group_by=key,
        sysparm_count="true",
        sysparm_order_by="-count",
        sysparm_display_value="all",
        sysparm_limit=MAX_GROUPS + 1,
    )
    text = pipeline.read_statistics(context.caller, table.name, raw) or b""
    entries = json.loads(b"[" + text + b"]")
    groups = []
    for entry in entries[:MAX_GROUPS]:
        field = entry["group"][key]
        label = _day_label(field) if is_time else display_text(resolved.column, field, context.caller.time_zone)
        query = query_tree.with_condition(state.query, f"{path}{_condition(field['value'], is_time=is_time)}")
        url = state.first_page(sysparm_query=query, group="").url
        groups.append({"label": label or "(empty)", "count": int(entry["count"]), "url": url})
    return {
        "label": path_label(resolved),
        "groups": groups,
        "is_cut": len(entries) > MAX_GROUPS,
        "list_url": state.first_page(group="").url,
    }


def _day_label(field: dict[str, Any]) -> str:
    if field["value"] is None:
        return ""
    day = date.fromisoformat(field["value"])
    return f"{day.day} {day:%b %Y}"


def _condition(value: Any, *, is_time: bool) -> str:
    """The operator and value for the records of a group."""
    if value is None:
        return "ISEMPTY"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{'ON' if is_time else '='}{quoted_value(text)}"

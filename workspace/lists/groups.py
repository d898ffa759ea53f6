"""Groups the records of a list by one column, with counts: what the statistics of the Table API return."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from system.encoded_query import ComparisonKind
from tableapi.catalogue.definitions import Table
from tableapi.query.path_resolver import unknown_column_error
from tableapi.read.context import ReadContext
from tableapi.statistics import pipeline
from workspace.forms.display import display_text
from workspace.forms.parameters import parameters, quoted_value

from . import columns, query_tree
from .list_state import ListState

MAX_GROUPS = 200


@dataclass(frozen=True)
class RecordGroup:
    label: str
    count: int
    url: str


@dataclass(frozen=True)
class Grouping:
    label: str
    groups: list[RecordGroup]
    is_cut: bool


def read_groups(context: ReadContext, table: Table, state: ListState) -> Grouping:
    """The largest groups. Times are grouped by day."""
    view, path = context.view, state.group
    resolved = columns.resolve(view, table, path)
    if resolved is None:
        raise unknown_column_error(tuple(path.split(".")))
    is_time = resolved.column.compare_as is ComparisonKind.DATETIME
    key = f"{path}:day" if is_time else path
    raw = parameters(
        sysparm_query=query_tree.with_order(state.query, "", None),
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
        url = _group_state(state, path, field, is_time=is_time).url()
        groups.append(RecordGroup(label or "(empty)", int(entry["count"]), url))
    label = columns.path_labels(view, table, [path])[path]
    return Grouping(label, groups, len(entries) > MAX_GROUPS)


def _day_label(field: Mapping[str, Any]) -> str:
    if field["value"] is None:
        return ""
    day = date.fromisoformat(field["value"])
    return f"{day.day} {day:%b %Y}"


def _group_state(state: ListState, path: str, field: Mapping[str, Any], *, is_time: bool) -> ListState:
    """The list of one group: those of the records that have its value."""
    value = field["value"]
    if isinstance(value, bool):
        value = str(value).lower()
    operator = "ISEMPTY" if value is None else f"{'ON' if is_time else '='}{quoted_value(str(value))}"
    query = query_tree.with_condition(state.query, f"{path}{operator}")
    return replace(state, query=query, group="", position={})

"""Finds records by their display value, for reference controls. It reads lists, so it finds only what they contain."""

import json
from collections.abc import Iterable

from tableapi.catalogue.definitions import Table
from tableapi.query.parameters import parse_list
from tableapi.read import pipeline
from tableapi.read.context import ReadContext

from .parameters import parameters, quoted_value

MAX_OPTIONS = 20
# The length of a query is limited.
MAX_IDS_PER_QUERY = 400


def find_options(context: ReadContext, table: Table, text: str) -> list[dict[str, str]]:
    """Records whose display value starts with the text or, if there is none, contains it: `{"id": …, "label": …}`."""
    name = display_name(context, table)
    if name is None:
        return []
    queries = [f"{name}STARTSWITH{quoted_value(text)}", f"{name}LIKE{quoted_value(text)}"] if text else [""]
    for query in queries:
        if options := _read_options(context, table, name, f"{query}^ORDERBY{name}"):
            return options
    return []


def labels_of(context: ReadContext, table: Table, ids: Iterable[str]) -> dict[str, str]:
    """The display values of these records, without those that the caller cannot read."""
    name, wanted = display_name(context, table), list(dict.fromkeys(ids))
    if name is None or not wanted:
        return {}
    options = [
        option
        for ids_text in _batches(wanted)
        for option in _read_options(context, table, name, f"sys_idIN{ids_text}", limit=MAX_IDS_PER_QUERY)
    ]
    return {option["id"]: option["label"] for option in options}


def readable_ids(context: ReadContext, table: Table, ids: Iterable[str]) -> set[str]:
    """Those of the ids that belong to records that the caller can read, if they can read ids."""
    wanted = list(dict.fromkeys(ids))
    if not wanted or not context.view.can_read(table) or context.view.column(table, "sys_id") is None:
        return set()
    found: set[str] = set()
    for ids_text in _batches(wanted):
        raw = parameters(sysparm_query=f"sys_idIN{ids_text}", sysparm_fields="sys_id", sysparm_limit=MAX_IDS_PER_QUERY)
        result = pipeline.fetch_list(context, table.name, parse_list(raw))
        found |= {record["sys_id"] for record in json.loads(b"[" + b",".join(result.blocks) + b"]")}
    return found


def _batches(ids: list[str]) -> list[str]:
    return [",".join(ids[start : start + MAX_IDS_PER_QUERY]) for start in range(0, len(ids), MAX_IDS_PER_QUERY)]


def display_name(context: ReadContext, table: Table) -> str | None:
    """The name of the display column, if the caller can read it and the ids of the records."""
    column, view = table.display_column, context.view
    if column is None or not view.can_read(table):
        return None
    return column.name if all(view.column(table, name) is not None for name in (column.name, "sys_id")) else None


def _read_options(
    context: ReadContext, table: Table, name: str, query: str, limit: int = MAX_OPTIONS
) -> list[dict[str, str]]:
    raw = parameters(
        sysparm_query=query, sysparm_fields=f"sys_id,{name}", sysparm_display_value="all", sysparm_limit=limit
    )
    result = pipeline.fetch_list(context, table.name, parse_list(raw))
    records = json.loads(b"[" + b",".join(result.blocks) + b"]")
    return [{"id": record["sys_id"]["value"], "label": label(record[name])} for record in records if "sys_id" in record]


def label(field: dict[str, object]) -> str:
    """The text of a field that was read with `sysparm_display_value=all`."""
    display, value = field.get("display_value"), field.get("value")
    return str(value if display is None else display) if value is not None else "(empty)"

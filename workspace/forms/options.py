"""Finds records by their display value, for reference controls. It reads lists, so it finds only what they contain."""

from collections.abc import Iterable, Mapping
from typing import Any

from tableapi.catalogue.definitions import USER_TABLE, Table
from tableapi.read.context import ReadContext

from .parameters import quoted_value, read_list

MAX_OPTIONS = 20
PERSON_COLUMNS = ("first_name", "last_name", "email")
# The length of a query is limited.
MAX_IDS_PER_QUERY = 400


def find_options(context: ReadContext, table: Table, text: str) -> list[dict[str, str]]:
    """Records whose display value starts with the text or, if there is none, contains it: `{"id": …, "label": …}`.

    People are also found by their names and email address; `detail` is their name.
    """
    name = _display_name(context, table)
    if name is None:
        return []
    others = [other for other in PERSON_COLUMNS if table.name == USER_TABLE and context.view.column(table, other)]
    for operator in ("STARTSWITH", "LIKE") if text else ("",):
        query = "^OR".join(f"{column}{operator}{quoted_value(text)}" for column in [name, *others] if operator)
        if records := _read(context, table, [name, *others], f"{query}^ORDERBY{name}", MAX_OPTIONS):
            return [_option(record, name) for record in records if name in record]
    return []


def _option(record: Mapping[str, Any], name: str) -> dict[str, str]:
    names = [record.get(part, {}).get("value") for part in PERSON_COLUMNS[:2]]
    return {"id": record["sys_id"]["value"], "label": label(record[name]), "detail": " ".join(filter(None, names))}


def labels_of(context: ReadContext, table: Table, ids: Iterable[str]) -> dict[str, str]:
    """The display values of these records, without those that the caller cannot read."""
    name = _display_name(context, table)
    if name is None:
        return {}
    records = _read_ids(context, table, name, ids)
    return {record["sys_id"]["value"]: label(record[name]) for record in records if name in record}


def readable_ids(context: ReadContext, table: Table, ids: Iterable[str]) -> set[str]:
    """Those of the ids that belong to records that the caller can read, if they can read ids."""
    is_readable = context.view.can_read(table) and context.view.column(table, "sys_id") is not None
    records = _read_ids(context, table, "sys_id", ids) if is_readable else []
    return {record["sys_id"]["value"] for record in records}


def _display_name(context: ReadContext, table: Table) -> str | None:
    """The name of the display column, if the caller can read it and the ids of the records."""
    column, view = table.display_column, context.view
    if column is None or not view.can_read(table):
        return None
    return column.name if all(view.column(table, name) is not None for name in (column.name, "sys_id")) else None


def _read_ids(context: ReadContext, table: Table, name: str, ids: Iterable[str]) -> list[dict[str, Any]]:
    wanted, records = list(dict.fromkeys(ids)), []
    for start in range(0, len(wanted), MAX_IDS_PER_QUERY):
        query = f"sys_idIN{','.join(wanted[start : start + MAX_IDS_PER_QUERY])}"
        records += _read(context, table, [name], query, MAX_IDS_PER_QUERY)
    return records


def _read(context: ReadContext, table: Table, names: list[str], query: str, limit: int) -> list[dict[str, Any]]:
    """The records with their ids and these columns."""
    records = read_list(context, table, ["sys_id", *names], sysparm_query=query, sysparm_limit=limit).records()
    return [record for record in records if "sys_id" in record]


def label(field: dict[str, object]) -> str:
    """The text of a field that was read with `sysparm_display_value=all`."""
    display, value = field.get("display_value"), field.get("value")
    return str(value if display is None else display) if value is not None else "(empty)"

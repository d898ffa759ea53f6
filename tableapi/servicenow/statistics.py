"""Statistics in the dialect, computed by the statistics of the Table API."""

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from system.errors import InvalidParameter
from tableapi.catalogue.definitions import Catalogue
from tableapi.query.parameters import MAX_RECORDS, DisplayMode, RawParameters, parse_names, parse_text
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller
from tableapi.statistics.parameters import (
    COUNT,
    MAX_AGGREGATES,
    MAX_GROUP_KEYS,
    MAX_HAVING_CONDITIONS,
    Aggregate,
    GroupKey,
    HavingCondition,
    SortKey,
    StatisticsRequest,
    StatisticsShape,
)
from tableapi.statistics.pipeline import fetch_statistics

from . import parameters
from .queried_table import QueriedTable
from .records import current_names, open_table

FUNCTIONS = ("avg", "sum", "min", "max")
# Returns the native path of a name; None if the caller cannot see it.
FindPath = Callable[[str], str | None]
HAVING = re.compile(
    r"(count|avg|sum|min|max)\^([a-z0-9_.]*)\^(>=|<=|!=|=|>|<)\^(-?\d{1,30}(?:\.\d{1,30})?)", re.IGNORECASE
)


@on_current_catalogue
def read_statistics(catalogue: Catalogue, caller: Caller, table_name: str, raw: RawParameters) -> Any:
    """Return the result: an object, or a list of one for each group."""
    context, names = caller.context(catalogue), current_names()
    table = open_table(context.view, names, table_name)
    queried_table = QueriedTable(context.view, table, names)
    find_path = queried_table.only_path
    aggregates = _aggregates(raw, find_path)
    group_names = [name for name in parse_names(raw, "sysparm_group_by", MAX_GROUP_KEYS) if find_path(name)]
    if not aggregates:
        return [] if group_names else {"stats": {}}
    group_keys = tuple(_group_key(find_path(name) or "") for name in group_names)
    having, having_values = _having(parse_text(raw, "sysparm_having"), find_path)
    mode = parameters.parse_output(raw, names).display_mode
    shape = StatisticsShape(
        tuple(dict.fromkeys(aggregates.values())),
        group_keys,
        having,
        tuple(_sort_keys(raw, find_path, group_keys)),
        MAX_RECORDS,
        DisplayMode.VALUE if mode == DisplayMode.VALUE else DisplayMode.BOTH,
    )
    query = parameters.parse_query(raw, queried_table)
    groups = fetch_statistics(context, table.name, StatisticsRequest(query, shape, having_values))
    results = [
        _group_result(group, aggregates, group_names, group_keys, mode)
        for group in json.loads(b"[" + (groups or b"") + b"]", parse_float=Decimal)
    ]
    return results if group_names else results[0] if results else {"stats": {}}


def _aggregates(raw: RawParameters, find_path: FindPath) -> dict[tuple[str, str], Aggregate]:
    """The aggregates by function and requested name. Unknown columns are left out."""
    aggregates = {("count", ""): Aggregate(COUNT)} if parameters.is_true(raw, "sysparm_count") else {}
    for function in FUNCTIONS:
        for name in parse_names(raw, f"sysparm_{function}_fields", MAX_AGGREGATES):
            if path := find_path(name):
                aggregates[function, name] = Aggregate(function, tuple(path.split(".")))
    if len(aggregates) > MAX_AGGREGATES:
        raise InvalidParameter(f"You can request at most {MAX_AGGREGATES} aggregates.", field="sysparm_sum_fields")
    return aggregates


def _group_key(path: str) -> GroupKey:
    return GroupKey(path, tuple(path.split(".")))


def _aggregate(function: str, name: str, find_path: FindPath, parameter: str) -> Aggregate:
    if function.lower() == COUNT:
        return Aggregate(COUNT)
    path = find_path(name)
    if path is None or function.lower() not in FUNCTIONS:
        raise InvalidParameter(f"Invalid {parameter}: {function}^{name[:80]}", field=parameter)
    return Aggregate(function.lower(), tuple(path.split(".")))


def _having(text: str, find_path: FindPath) -> tuple[tuple[tuple[HavingCondition, ...], ...], tuple[Decimal, ...]]:
    """Read conditions such as `count^priority^>^3`, joined by commas."""
    conditions: list[tuple[HavingCondition, ...]] = []
    values: list[Decimal] = []
    for part in filter(None, text.split(",")):
        match = HAVING.fullmatch(part.strip())
        if match is None or len(values) == MAX_HAVING_CONDITIONS:
            raise InvalidParameter(f"Invalid sysparm_having: {part[:80]}", field="sysparm_having")
        aggregate = _aggregate(match[1], match[2], find_path, "sysparm_having")
        conditions.append((HavingCondition(aggregate, match[3]),))
        values.append(Decimal(match[4]))
    return tuple(conditions), tuple(values)


def _sort_keys(raw: RawParameters, find_path: FindPath, group_keys: tuple[GroupKey, ...]) -> Iterator[SortKey]:
    """Read sort keys such as `state`, `AVG^price` or `COUNT^DESC`."""
    for text in parse_names(raw, "sysparm_orderby", MAX_AGGREGATES):
        *parts, direction = text.split("^") if text.upper().endswith(("^DESC", "^ASC")) else (*text.split("^"), "")
        name = parts[-1] if parts else ""
        path = find_path(name)
        key = _group_key(path) if path else None
        if len(parts) == 1 and key in group_keys:
            yield SortKey(group_keys.index(key), direction.upper() == "DESC")
        else:
            yield SortKey(_aggregate(parts[0], name, find_path, "sysparm_orderby"), direction.upper() == "DESC")


def _group_result(
    group: dict[str, Any],
    aggregates: dict[tuple[str, str], Aggregate],
    group_names: list[str],
    group_keys: tuple[GroupKey, ...],
    mode: DisplayMode,
) -> dict[str, Any]:
    stats: dict[str, Any] = {}
    for (function, name), aggregate in aggregates.items():
        if function == COUNT:
            stats[COUNT] = str(group[COUNT])
        else:
            stats.setdefault(function, {})[name] = _text(group[function][".".join(aggregate.path)])
    result: dict[str, Any] = {"stats": stats}
    if group_names:
        values = [group["group"][key.text] for key in group_keys]
        result["groupby_fields"] = [
            {"field": name, **_group_value(value, mode)} for name, value in zip(group_names, values, strict=True)
        ]
    return result


def _group_value(value: Any, mode: DisplayMode) -> dict[str, str]:
    if mode == DisplayMode.VALUE:
        return {"value": _text(value)}
    if mode == DisplayMode.DISPLAY:
        return {"value": _text(value["display_value"])}
    return {"value": _text(value["value"]), "display_value": _text(value["display_value"])}


def _text(value: Any) -> str:
    """
    >>> [_text(value) for value in (None, True, Decimal("2.50"), "x")]
    ['', 'true', '2.50', 'x']
    """
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

"""Statistics in the dialect, requested from the statistics of the Table API."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from django.utils.datastructures import MultiValueDict

from system.errors import InvalidParameter
from tableapi.catalogue.definitions import Catalogue
from tableapi.query.parameters import MAX_FIELDS, MAX_RECORDS, DisplayMode, RawParameters, parse_names, parse_text
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller
from tableapi.statistics.parameters import COUNT, MAX_AGGREGATES, parse_statistics
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
    """Return the result: an object, or a list of one for each group. Unknown columns are left out."""
    context, names = caller.context(catalogue), current_names()
    queried_table = QueriedTable(context.view, open_table(context.view, names, table_name), names)
    find_path = queried_table.only_path
    mode = parameters.parse_output(raw, names).display_mode
    has_count = parameters.is_true(raw, "sysparm_count")
    group_paths = _paths(raw, "sysparm_group_by", find_path)
    paths = {function: _paths(raw, f"sysparm_{function}_fields", find_path) for function in FUNCTIONS}
    if not has_count and not any(paths.values()):
        return [] if group_paths else {"stats": {}}
    native = {
        "sysparm_count": str(has_count).lower(),
        "sysparm_group_by": ",".join(group_paths.values()),
        "sysparm_having": "^".join(_having(raw, find_path)),
        "sysparm_order_by": ",".join(_sort_keys(raw, find_path, group_paths)),
        "sysparm_limit": str(MAX_RECORDS),
        "sysparm_display_value": "false" if mode == DisplayMode.VALUE else "all",
    } | {f"sysparm_{function}_fields": ",".join(paths[function].values()) for function in FUNCTIONS}
    request = parse_statistics(MultiValueDict({name: [value] for name, value in native.items()}))
    request = replace(request, query=parameters.parse_query(raw, queried_table))
    groups = fetch_statistics(context, queried_table.table.name, request)
    results = []
    for group in json.loads(b"[" + (groups or b"") + b"]", parse_float=Decimal):
        stats: dict[str, Any] = {COUNT: str(group[COUNT])} if has_count else {}
        for function, function_paths in paths.items():
            if function_paths:
                stats[function] = {name: _text(group[function][path]) for name, path in function_paths.items()}
        result: dict[str, Any] = {"stats": stats}
        if group_paths:
            result["groupby_fields"] = [
                {"field": name, **_group_value(group["group"][path], mode)} for name, path in group_paths.items()
            ]
        results.append(result)
    return results if group_paths else results[0] if results else {"stats": {}}


def _paths(raw: RawParameters, parameter: str, find_path: FindPath) -> dict[str, str]:
    return {name: path for name in parse_names(raw, parameter, MAX_FIELDS) if (path := find_path(name))}


def _having(raw: RawParameters, find_path: FindPath) -> Iterator[str]:
    """Translate conditions such as `count^priority^>^3`, joined by commas."""
    for part in filter(None, parse_text(raw, "sysparm_having").split(",")):
        match = HAVING.fullmatch(part.strip())
        aggregate = _aggregate(match[1], match[2], find_path) if match else None
        if match is None or aggregate is None:
            raise InvalidParameter(f"Invalid sysparm_having: {part[:80]}", field="sysparm_having")
        yield f"{aggregate}{match[3]}{match[4]}"


def _sort_keys(raw: RawParameters, find_path: FindPath, group_paths: Mapping[str, str]) -> Iterator[str]:
    """Translate sort keys such as `state`, `AVG^price` or `COUNT^DESC`."""
    for text in parse_names(raw, "sysparm_orderby", MAX_AGGREGATES):
        *parts, direction = text.split("^") if text.upper().endswith(("^DESC", "^ASC")) else (*text.split("^"), "")
        path = find_path(parts[-1])
        is_group = len(parts) == 1 and path in group_paths.values()
        key = path if is_group else _aggregate(parts[0], parts[-1], find_path)
        if key is None:
            raise InvalidParameter(f"Invalid sysparm_orderby: {text[:80]}", field="sysparm_orderby")
        yield f"-{key}" if direction.upper() == "DESC" else key


def _aggregate(function: str, name: str, find_path: FindPath) -> str | None:
    """The aggregate as the Table API writes it; None if it is invalid."""
    function, path = function.lower(), find_path(name)
    return COUNT if function == COUNT else f"{function}({path})" if path and function in FUNCTIONS else None


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

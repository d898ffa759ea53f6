"""Reads the parameters of the dialect. Pure, except for the property of invalid queries."""

from collections.abc import Iterator

from system import properties
from system.encoded_query import RECORDS, QueryError, parse
from system.errors import BadRequest
from system.property_definitions import SERVICENOW_INVALID_QUERY
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import Table
from tableapi.query.parameters import (
    MAX_FIELDS,
    MAX_PAGED_RECORDS,
    MAX_RECORDS,
    DisplayMode,
    ListRequest,
    OutputOptions,
    RawParameters,
    invalid_query,
    parse_names,
    parse_text,
)
from tableapi.query.parsed_query import ParsedQuery, QueryShape

from .names import ServiceNowNames
from .queried_table import QueriedTable
from .query_text import translate

TRUE_VALUES = ("true", "1")
NO_RECORDS = parse("sys_idNOTHING")


def parse_list(raw: RawParameters, view: CallerView, table: Table, names: ServiceNowNames) -> ListRequest:
    offset, limit = parse_page(raw)
    return ListRequest(
        output=parse_output(raw, names),
        query=parse_query(raw, QueriedTable(view, table, names)),
        limit=limit,
        offset=offset,
        count="" if is_true(raw, "sysparm_no_count") else "exact",
        allows_replica=parse_text(raw, "sysparm_query_category") != "",
    )


def parse_page(raw: RawParameters) -> tuple[int, int]:
    """The number of records to skip, and the number to return."""
    limit = min(_number(raw, "sysparm_limit", MAX_RECORDS), MAX_RECORDS) or 1
    offset = _number(raw, "sysparm_offset", 0)
    if offset > MAX_PAGED_RECORDS:
        raise BadRequest(f"sysparm_offset can be at most {MAX_PAGED_RECORDS:,}.", field="sysparm_offset")
    return offset, limit


def parse_output(raw: RawParameters, names: ServiceNowNames) -> OutputOptions:
    mode = parse_text(raw, "sysparm_display_value").lower()
    return OutputOptions(
        parse_names(raw, "sysparm_fields", MAX_FIELDS),
        parse_text(raw, "sysparm_view"),
        DisplayMode.BOTH if mode == "all" else DisplayMode.DISPLAY if mode in TRUE_VALUES else DisplayMode.VALUE,
        not is_true(raw, "sysparm_exclude_reference_link"),
        names,
    )


def parse_query(raw: RawParameters, queried_table: QueriedTable) -> ParsedQuery:
    """Parse the query, or the filters if there is none. What is invalid for the caller is left out."""
    text = parse_text(raw, "sysparm_query")
    try:
        translation = translate(text or "^".join(_filters(raw)), queried_table)
        query, invalid_parts = translation.query, translation.invalid_parts if text else []
        reaction = properties.get(SERVICENOW_INVALID_QUERY)
        if invalid_parts and reaction == "error":
            raise BadRequest(f"Invalid query: {invalid_parts[0][:80]}", code="invalid_query")
        if invalid_parts and reaction == "no_rows":
            query = NO_RECORDS
        conditions = tuple(query.conditions())
        if len(conditions) > RECORDS.max_conditions or len(query.order) > RECORDS.max_sort_keys:
            message = f"more than {RECORDS.max_conditions} conditions or {RECORDS.max_sort_keys} sort keys"
            raise QueryError(message)
    except QueryError as error:
        raise invalid_query(error) from None
    return ParsedQuery(text, QueryShape(query), conditions)


def _filters(raw: RawParameters) -> Iterator[str]:
    """The conditions of parameters such as `active=true`."""
    for name in raw:
        if not name.startswith("sysparm_"):
            yield f"{name}={raw.getlist(name)[-1]}".replace("^", "^^")


def _number(raw: RawParameters, name: str, default: int) -> int:
    text = parse_text(raw, name)
    if not text:
        return default
    if not text.isascii() or not text.isdigit():
        raise BadRequest(f"Invalid {name}: {text[:40]}", field=name)
    return int(text[:12])


def is_true(raw: RawParameters, name: str) -> bool:
    return parse_text(raw, name).lower() in TRUE_VALUES

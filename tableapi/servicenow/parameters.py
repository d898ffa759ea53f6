"""Reads the parameters of the dialect. Pure, except for the property of invalid queries."""

from collections.abc import Iterator
from dataclasses import dataclass

from system import properties
from system.encoded_query import RECORDS, Condition, Group, Path, Query, QueryError, RelatedQuery, Term, parse
from system.errors import BadRequest, ServiceError
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
from tableapi.query.path_resolver import resolve_condition, resolve_path, resolve_query

from .names import ServiceNowNames
from .query_text import QueriedTable, translate

TRUE_VALUES = ("true", "1")
NO_RECORDS = parse("sys_idNOTHING")


@dataclass(frozen=True)
class ServiceNowQuery:
    """A query as the caller's columns allow it. `is_complete` is false if a part was left out."""

    parsed: ParsedQuery
    is_complete: bool


def parse_list(raw: RawParameters, view: CallerView, table: Table, names: ServiceNowNames) -> ListRequest:
    query = parse_query(raw, view, table, names)
    offset, limit = parse_page(raw)
    return ListRequest(
        output=parse_output(raw, names),
        query=query.parsed,
        limit=limit,
        offset=offset,
        count="" if is_true(raw, "sysparm_no_count") else "exact",
        allows_replica=parse_text(raw, "sysparm_query_category") != "",
    )


def parse_page(raw: RawParameters) -> tuple[int, int]:
    """The number of records to skip, and the number to return."""
    limit = min(_number(raw, "sysparm_limit", MAX_RECORDS), MAX_RECORDS) or 1
    return min(_number(raw, "sysparm_offset", 0), MAX_PAGED_RECORDS), limit


def parse_output(raw: RawParameters, names: ServiceNowNames) -> OutputOptions:
    mode = parse_text(raw, "sysparm_display_value").lower()
    return OutputOptions(
        parse_names(raw, "sysparm_fields", MAX_FIELDS),
        parse_text(raw, "sysparm_view"),
        DisplayMode.BOTH if mode == "all" else DisplayMode.DISPLAY if mode in TRUE_VALUES else DisplayMode.VALUE,
        not is_true(raw, "sysparm_exclude_reference_link"),
        names,
    )


@dataclass(frozen=True)
class CallersTable:
    """A table with the names of the dialect: a column that the caller cannot read does not exist. A `QueriedTable`."""

    view: CallerView
    table: Table
    names: ServiceNowNames
    is_related: bool = False

    @property
    def native_name(self) -> str:
        return self.table.name

    def is_named(self, name: str) -> bool:
        return self.names.native_table(self.view.catalogue, name) == self.table.name

    def paths(self, name: str) -> list[Path]:
        paths = self.names.paths(self.view.catalogue, self.table, name)
        return [path for path in paths if resolve_path(self.view, self.table, path)]

    def only_path(self, name: str) -> str | None:
        paths = self.paths(name)
        return ".".join(paths[0]) if len(paths) == 1 else None

    def condition(self, text: str) -> Condition | None:
        try:
            (condition,) = parse(text).conditions()
            resolve_condition(self.view, self.table, condition, None)
        except (QueryError, ServiceError):
            return None
        return condition

    def related(self, name: str) -> "CallersTable | None":
        table = self.view.table(self.names.native_table(self.view.catalogue, name))
        return CallersTable(self.view, table, self.names, is_related=True) if table and not self.is_related else None

    def can_relate(self, path: Path, related: QueriedTable, column: Path) -> bool:
        query = RelatedQuery((), path=path, table=related.native_name, column=column)
        try:
            resolve_query(self.view, self.table, Query((Group((Term((query,)),)),)))
        except (QueryError, ServiceError):
            return False
        return True


def parse_query(raw: RawParameters, view: CallerView, table: Table, names: ServiceNowNames) -> ServiceNowQuery:
    callers_table = CallersTable(view, table, names)
    text = parse_text(raw, "sysparm_query")
    if text:
        translation = translate(text, callers_table)
    else:
        translation = translate("^".join(_filters(raw)), callers_table)
        translation.invalid_parts.clear()  # any other parameter is ignored
    if translation.invalid_parts:
        reaction = properties.get(SERVICENOW_INVALID_QUERY)
        if reaction == "error":
            raise BadRequest(f"Invalid query: {translation.invalid_parts[0][:80]}", code="invalid_query")
        if reaction == "no_rows":
            translation.query = NO_RECORDS
    query = translation.query
    conditions = tuple(query.conditions())
    if len(conditions) > RECORDS.max_conditions or len(query.order) > RECORDS.max_sort_keys:
        message = f"more than {RECORDS.max_conditions} conditions or {RECORDS.max_sort_keys} sort keys"
        raise invalid_query(QueryError(message))
    return ServiceNowQuery(ParsedQuery(text, QueryShape(query), conditions), not translation.invalid_parts)


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

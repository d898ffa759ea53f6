"""The Table API in the OpenAPI document: any table for everybody, and beside it the tables that the caller may see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rest_framework.request import Request

from system import errors
from system.errors import ServiceError

from . import load
from .access import Sight, sight
from .catalogue import CREATE, DELETE, NUMBER, WRITE, Column, Table
from .expressions import NEVER
from .openapi_types import read_schema, written_schema
from .params import DEFAULT_LIMIT, MOST_RECORDS

BASE = "/rest/v1/table/"
ANY = "{tableName}"
TAG = "Table API"
Object = dict[str, Any]

ALWAYS_POSSIBLE = (
    errors.BadRequest,
    errors.Unauthenticated,
    errors.NotFound,
    errors.QueryTooLong,
    errors.TooMany,
    errors.Unavailable,
)
OF_WRITES = (errors.AccessDenied, errors.Conflict)
OF_CHANGES = (errors.Stale,)
OF_BODIES = (errors.TimedOut, errors.LengthRequired, errors.TooLarge, errors.UnsupportedMedia, errors.Invalid)
SECURITY: list[Object] = [{"access_key": []}, {"password": []}]


def parameter(name: str, schema: Object, about: str, place: str = "query") -> Object:
    found = {"name": name, "in": place, "schema": schema, "description": about}
    return found | ({"required": True} if place == "path" else {})


SWITCH = {"type": "string", "enum": ["0", "1", "false", "true"], "default": "0"}
PARAMETERS: dict[str, Object] = {
    "tableName": parameter("tableName", {"type": "string"}, "The name of a table.", "path"),
    "sysId": parameter("sys_id", {"type": "string", "pattern": "^[0-9a-z]{1,32}$"}, "The id of a record.", "path"),
    "query": parameter("sysparm_query", {"type": "string"}, "An encoded query: which records, in which order."),
    "limit": parameter(
        "sysparm_limit",
        {"type": "integer", "minimum": 1, "maximum": MOST_RECORDS, "default": DEFAULT_LIMIT},
        "How many records at most.",
    ),
    "page": parameter(
        "sysparm_page",
        {"type": "integer", "minimum": 1, "default": 1},
        "Which page; limit times page is at most 1,000,000. Follow the cursor for more.",
    ),
    "cursor": parameter(
        "sysparm_cursor", {"type": "string"}, 'Where a list goes on, from `Link` with `rel="next"`; in place of a page.'
    ),
    "count": parameter(
        "sysparm_count",
        {"type": "string", "enum": ["exact", "estimated"]},
        "Adds `X-Total-Count`; `estimated` counts up to 10,000.",
    ),
    "category": parameter("sysparm_query_category", {"type": "string"}, "`replica`: this read may go to a replica."),
    "display": parameter(
        "sysparm_display_value",
        {"type": "string", "enum": ["0", "1", "all"], "default": "0"},
        "`0`: values as stored; `1`: as people read them; `all`: both.",
    ),
    "links": parameter("sysparm_exclude_reference_link", SWITCH, "`1`: references without their links."),
    "fields": parameter(
        "sysparm_fields", {"type": "string"}, "Names of fields, separated by commas; dots walk through references."
    ),
    "view": parameter("sysparm_view", {"type": "string"}, "The name of a form view, whose fields are answered."),
    "input": parameter(
        "sysparm_input_display_value", SWITCH, "`1`: references and choices in the body are as people read them."
    ),
    "ifMatch": parameter(
        "If-Match", {"type": "string"}, "The ETag that was read: a record changed since then is a 412.", "header"
    ),
    "ifNoneMatch": parameter("If-None-Match", {"type": "string"}, "An ETag: 304 while it is the same.", "header"),
    "idempotencyKey": parameter(
        "Idempotency-Key",
        {"type": "string", "maxLength": 255},
        "The same request with the same key within 24 hours gets the first answer.",
        "header",
    ),
}
SHOWN = ("display", "links", "fields", "view")
OF_LIST = ("query", "limit", "page", "cursor", *SHOWN, "count", "category")
OF_WRITE = (*SHOWN, "input", "idempotencyKey")

SCHEMAS: dict[str, Object] = {
    "Record": {
        "type": "object",
        "description": "A record: a value for each field. With `sysparm_display_value` values are as people read them, "
        "or objects of both; a field that was walked to is called by its path.",
        "additionalProperties": True,
    },
    "NewValues": {
        "type": "object",
        "description": "Columns and their values, exactly one record.",
        "additionalProperties": True,
    },
    "Deleted": {
        "type": "object",
        "required": ["status", "data"],
        "properties": {
            "status": {"const": "OK"},
            "data": {"type": "object", "required": ["description"], "properties": {"description": {"type": "string"}}},
        },
    },
}
HEADERS: dict[str, Object] = {
    name: {"description": about, "schema": {"type": "string"}}
    for name, about in {
        "Link": 'Where the list goes on, with `rel="next"`; absent at its end.',
        "X-Total-Count": "How many records there are, when it was asked for.",
        "X-Ignored-Fields": "Names of `sysparm_fields` that are not there.",
        "ETag": "The record's version and a hash of the answer.",
        "Location": "Where the new record is.",
    }.items()
}


def without_table_view(endpoints: list[Any]) -> list[Any]:
    """PREPROCESSING_HOOKS: the view knows tables only when it is called; this module describes it."""
    return [endpoint for endpoint in endpoints if not endpoint[0].startswith(BASE)]


def with_tables(result: Object, request: Request | None = None, **_: Any) -> Object:
    """POSTPROCESSING_HOOKS: adds the Table API, as this caller may see it."""
    paths = any_table()
    components = result.setdefault("components", {})
    components["parameters"] = PARAMETERS
    components["headers"] = HEADERS
    schemas = dict(SCHEMAS)
    caller: Any = getattr(request, "user", None)
    if caller is not None and caller.is_authenticated:
        seen = sight(load.newest(), frozenset(caller.role_names))
        own_paths, own_schemas = seen.kept("openapi", lambda: own_tables(seen))
        paths |= own_paths
        schemas |= own_schemas
    result["paths"] = {**result["paths"], **paths}
    components["schemas"] = {**components.get("schemas", {}), **schemas}
    return result


def any_table() -> Object:
    """The paths with the table's name as a parameter: nothing of any table is told."""
    every = {"get", "post", "put", "patch", "delete"}
    return paths_of(ANY, every, reference("schemas", "Record"), dict.fromkeys(every, "NewValues"), "record")


def own_tables(seen: Sight) -> tuple[Object, Object]:
    """Paths and schemas of every table that is there for the caller, with the columns that are."""
    paths: Object = {}
    schemas: Object = {}
    for table in seen.catalogue.tables.values():
        methods = set(methods_of(seen, table))
        if not methods:
            continue
        bodies = {}
        if seen.can_read(table):
            schemas[f"table.{table.name}"] = record_schema(seen, table)
        for method, operation in (("post", CREATE), ("put", WRITE), ("patch", WRITE)):
            if method in methods:
                bodies[method] = f"table.{table.name}.{operation if method != 'put' else 'replace'}"
                schemas[bodies[method]] = body_schema(seen, table, operation, is_whole=method != "patch")
        read = [reference("schemas", f"table.{table.name}")] if seen.can_read(table) else []
        record = {"anyOf": [*read, reference("schemas", "Record")]}
        paths |= paths_of(table.name, methods, record, bodies, table.label)
    return paths, schemas


def methods_of(seen: Sight, table: Table) -> Iterator[str]:
    """What the caller may do, by the rules' roles; whether a condition holds, the request will tell."""
    can_read = seen.can_read(table)
    if can_read:
        yield "get"
    if seen.rights.records(CREATE, table) != NEVER:
        yield "post"
    if can_read and seen.rights.records(WRITE, table) != NEVER:
        yield from ("put", "patch")
    if can_read and seen.rights.records(DELETE, table) != NEVER:
        yield "delete"


def paths_of(table: str, methods: set[str], record: Object, bodies: dict[str, str], called: str) -> Object:
    """Both addresses of a table, with the operations among `methods`."""
    whole = {"status": {"const": "OK"}, "data": {"type": "array", "items": record}}
    answer = {"type": "object", "required": ["status", "data"], "properties": whole}
    is_any = table == ANY
    named = ["tableName"] if is_any else []

    def made(verb: str, title: str, parameters: tuple[str, ...], kinds: tuple[type[ServiceError], ...]) -> Object:
        """What all operations have."""
        return {
            "operationId": f"records_{verb}" if is_any else f"{verb}_{table}",
            "summary": f"{title} · {called}" if not is_any else f"{title}, of any table",
            "tags": [TAG if is_any else f"Table {table}"],
            "security": SECURITY,
            "parameters": [reference("parameters", name) for name in (*named, *parameters)],
            # Named one by one for any table only: for thirty tables the browser would resolve thousands of references.
            "responses": {str(each.status): reference("responses", each.__name__) for each in kinds}
            if is_any
            else {"default": reference("responses", "AnyError")},
        }

    def writing(method: str, verb: str, title: str, *more: str) -> Object:
        changes = OF_CHANGES if method != "post" else ()
        found = made(verb, title, (*more, *OF_WRITE), (*ALWAYS_POSSIBLE, *OF_WRITES, *changes, *OF_BODIES))
        body = {"application/json": {"schema": reference("schemas", bodies[method])}}
        found["requestBody"] = {"required": True, "content": body}
        return found

    many, one = {}, {}
    if "get" in methods:
        many["get"] = made("list", "Read many", OF_LIST, ALWAYS_POSSIBLE)
        many["get"]["responses"]["200"] = answered(answer, "The records.", "Link", "X-Total-Count", "X-Ignored-Fields")
        one["get"] = made("read", "Read one", ("sysId", *SHOWN, "ifNoneMatch"), ALWAYS_POSSIBLE)
        one["get"]["responses"] |= {
            "200": answered(answer, "The record.", "ETag", "X-Ignored-Fields"),
            "304": {"description": "It is as the caller has it."},
        }
    if "post" in methods:
        many["post"] = writing("post", "create", "Create")
        created = answered(answer, "What the caller may read of the new record.", "Location", "ETag")
        many["post"]["responses"]["201"] = created
    for method, verb, title in (("put", "replace", "Replace"), ("patch", "change", "Change")):
        if method in methods:
            one[method] = writing(method, verb, title, "sysId", "ifMatch")
            one[method]["responses"]["200"] = answered(answer, "What the caller may read of the record.", "ETag")
    if "delete" in methods:
        kinds = (*ALWAYS_POSSIBLE, *OF_WRITES, *OF_CHANGES)
        one["delete"] = made("delete", "Delete", ("sysId", "ifMatch", "idempotencyKey"), kinds)
        one["delete"]["responses"]["200"] = answered(reference("schemas", "Deleted"), "It is deleted.")
    both = ((f"{BASE}{table}", many), (f"{BASE}{table}/{{sys_id}}", one))
    return {path: sorted_answers(found) for path, found in both if found}


def sorted_answers(operations: Object) -> Object:
    for each in operations.values():
        each["responses"] = dict(sorted(each["responses"].items()))
    return operations


def answered(schema: Object, about: str, *headers: str) -> Object:
    found: Object = {"description": about, "content": {"application/json": {"schema": schema}}}
    if headers:
        found["headers"] = {name: reference("headers", name) for name in headers}
    return found


def reference(kind: str, name: str) -> Object:
    return {"$ref": f"#/components/{kind}/{name}"}


def record_schema(seen: Sight, table: Table) -> Object:
    """The fields that the caller may see in some record, as stored values."""
    columns = [found[0] for name in table.columns if (found := seen.column(table, name)) is not None]
    properties = {column.name: read_schema(column, target_of(seen, column)) for column in columns}
    for column in columns:
        if is_kept_by_server(table, column):
            properties[column.name]["readOnly"] = True
    return {"type": "object", "title": table.label, "properties": properties}


def body_schema(seen: Sight, table: Table, operation: str, *, is_whole: bool) -> Object:
    """The columns that the caller may send; read-only ones only come along when a record is sent back."""
    properties: Object = {}
    needed = []
    for column in table.columns.values():
        if not seen.rights.is_known(table, column):
            continue
        if is_kept_by_server(table, column):
            if operation == WRITE and seen.column(table, column.name) is not None:
                properties[column.name] = read_schema(column, target_of(seen, column)) | {"readOnly": True}
        elif seen.rights.column(operation, table, column) != NEVER:
            properties[column.name] = written_schema(column, target_of(seen, column))
            if column.mandatory and not column.default:
                needed.append(column.name)
    found: Object = {"type": "object", "properties": properties, "additionalProperties": False}
    return found | ({"required": needed} if is_whole and needed else {})


def is_kept_by_server(table: Table, column: Column) -> bool:
    return column.is_sys or column.read_only or (column.name == NUMBER and bool(table.number_prefix))


def target_of(seen: Sight, column: Column) -> str:
    """What a reference refers to, if that is there for the caller."""
    found = seen.table(column.reference) if column.reference else None
    return found.label if found is not None else ""

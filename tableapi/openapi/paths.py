"""The two addresses of a table in the OpenAPI document, with their operations. Pure but for the names of errors."""

from __future__ import annotations

from dataclasses import dataclass

from system import errors
from system.errors import ServiceError

from .column_schemas import Object, reference
from .components import OF_ANSWERED_LISTS, OF_ANSWERED_RECORDS, OF_LIST, OF_WRITE, SHOWN

BASE = "/rest/v1/table/"
ANY = "{tableName}"
TAG = "Table API"

Errors = tuple[type[ServiceError], ...]
ALWAYS_POSSIBLE: Errors = (
    errors.BadRequest,
    errors.Unauthenticated,
    errors.NotFound,
    errors.QueryTooLong,
    errors.TooMany,
    errors.Unavailable,
)
OF_WRITES: Errors = (errors.AccessDenied, errors.Conflict)
OF_CHANGES: Errors = (errors.PreconditionFailed,)
OF_BODIES: Errors = (errors.TimedOut, errors.LengthRequired, errors.TooLarge, errors.UnsupportedMedia, errors.Invalid)
SECURITY: list[Object] = [{"access_key": []}, {"password": []}]


@dataclass(frozen=True)
class Described:
    """A table whose paths are written: what its answers are, and the body of each method by the name of its schema."""

    name: str
    called: str
    answer: Object
    bodies: dict[str, str]

    @property
    def is_any(self) -> bool:
        return self.name == ANY


def paths_of(table: Described, methods: set[str]) -> Object:
    """Both addresses of a table, with the operations among `methods`."""
    one_by_one = {"get": _read_one, "put": _replace, "patch": _change, "delete": _delete}
    many = {method: make(table) for method, make in {"get": _read_many, "post": _create}.items() if method in methods}
    one = {method: make(table) for method, make in one_by_one.items() if method in methods}
    both = ((f"{BASE}{table.name}", many), (f"{BASE}{table.name}/{{sys_id}}", one))
    return {path: operations for path, operations in both if operations}


def _read_many(table: Described) -> Object:
    found = _answered(table.answer, "The records.", *OF_ANSWERED_LISTS)
    return _operation(table, "list", "Read many", OF_LIST, ALWAYS_POSSIBLE, {"200": found})


def _read_one(table: Described) -> Object:
    found = {
        "200": _answered(table.answer, "The record.", "ETag", *OF_ANSWERED_RECORDS),
        "304": {"description": "It is as the caller has it."},
    }
    return _operation(table, "read", "Read one", ("sysId", *SHOWN, "ifNoneMatch"), ALWAYS_POSSIBLE, found)


def _create(table: Described) -> Object:
    found = {
        "201": _answered(
            table.answer, "What the caller may read of the new record.", "Location", "ETag", *OF_ANSWERED_RECORDS
        )
    }
    possible = (*ALWAYS_POSSIBLE, *OF_WRITES, *OF_BODIES)
    return _with_body(table, "post", _operation(table, "create", "Create", OF_WRITE, possible, found))


def _replace(table: Described) -> Object:
    return _with_body(table, "put", _changing(table, "replace", "Replace"))


def _change(table: Described) -> Object:
    return _with_body(table, "patch", _changing(table, "change", "Change"))


def _changing(table: Described, verb: str, title: str) -> Object:
    found = {"200": _answered(table.answer, "What the caller may read of the record.", "ETag", *OF_ANSWERED_RECORDS)}
    possible = (*ALWAYS_POSSIBLE, *OF_WRITES, *OF_CHANGES, *OF_BODIES)
    return _operation(table, verb, title, ("sysId", "ifMatch", *OF_WRITE), possible, found)


def _delete(table: Described) -> Object:
    found = {"200": _answered(reference("schemas", "Deleted"), "It is deleted.")}
    possible = (*ALWAYS_POSSIBLE, *OF_WRITES, *OF_CHANGES)
    return _operation(table, "delete", "Delete", ("sysId", "ifMatch", "idempotencyKey"), possible, found)


def _with_body(table: Described, method: str, operation: Object) -> Object:
    body = {"application/json": {"schema": reference("schemas", table.bodies[method])}}
    return operation | {"requestBody": {"required": True, "content": body}}


def _operation(
    table: Described, verb: str, title: str, parameters: tuple[str, ...], possible: Errors, found: Object
) -> Object:
    """What all operations have."""
    named = ("tableName",) if table.is_any else ()
    # Named one by one for any table only: for thirty tables the browser would resolve thousands of references.
    each_error = {str(each.status): reference("responses", each.__name__) for each in possible}
    refused = each_error if table.is_any else {"default": reference("responses", "AnyError")}
    return {
        "operationId": f"records_{verb}" if table.is_any else f"{verb}_{table.name}",
        "summary": f"{title}, of any table" if table.is_any else f"{title} · {table.called}",
        "tags": [TAG if table.is_any else f"Table {table.name}"],
        "security": SECURITY,
        "parameters": [reference("parameters", name) for name in (*named, *parameters)],
        "responses": dict(sorted((refused | found).items())),
    }


def _answered(schema: Object, about: str, *headers: str) -> Object:
    found: Object = {"description": about, "content": {"application/json": {"schema": schema}}}
    if headers:
        found["headers"] = {name: reference("headers", name) for name in headers}
    return found


def answer_of(records: list[Object]) -> Object:
    """The envelope of a success; its records are of one of these schemas."""
    record = records[0] if len(records) == 1 else {"anyOf": records}
    whole = {"status": {"const": "OK"}, "data": {"type": "array", "items": record}}
    return {"type": "object", "required": ["status", "data"], "properties": whole}

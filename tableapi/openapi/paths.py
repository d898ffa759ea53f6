"""The two paths of a table in the OpenAPI document, with their operations. Pure."""

from dataclasses import dataclass

from system import errors
from system.openapi import (
    BODY_ERRORS,
    READ_ERRORS,
    WRITE_ERRORS,
    Errors,
    Object,
    error_responses,
    json_response,
    operation,
    reference,
)

from .components import LIST_HEADERS, LIST_PARAMETERS, OUTPUT_PARAMETERS, RECORD_HEADERS, WRITE_PARAMETERS

EXPORT_TYPES = ("text/csv", "application/x-ndjson")
API_PATH = "/rest/v1/table/"
ANY_TABLE_NAME = "{tableName}"
TABLE_API_TAG = "Table API"

CREATE_ERRORS: Errors = (*READ_ERRORS, *WRITE_ERRORS, *BODY_ERRORS, errors.InvalidInput)
DELETE_ERRORS: Errors = (*READ_ERRORS, *WRITE_ERRORS, errors.PreconditionFailed)
CHANGE_ERRORS: Errors = (*CREATE_ERRORS, errors.PreconditionFailed)


@dataclass(frozen=True)
class TableDescription:
    """A table whose paths are described: the schema of its responses, and the schema's name of each method's body."""

    name: str
    label: str
    response: Object
    bodies: dict[str, str]


def table_paths(table: TableDescription, methods: set[str]) -> Object:
    """Both paths of a table, with the operations among `methods`."""
    on_list = {"get": _describe_list, "post": _describe_create}
    on_record = {"get": _describe_read, "put": _describe_replace, "patch": _describe_update, "delete": _describe_delete}
    operations = {
        path: {method: describe(table) for method, describe in builders.items() if method in methods}
        for path, builders in ((f"{API_PATH}{table.name}", on_list), (f"{API_PATH}{table.name}/{{sys_id}}", on_record))
    }
    return {path: by_method for path, by_method in operations.items() if by_method}


def parameters_of(*names: str) -> list[Object]:
    return [reference("parameters", name) for name in names]


def headers_of(*names: str) -> Object:
    return {name: reference("headers", name) for name in names}


def _describe_list(table: TableDescription) -> Object:
    records = _records(table, "The records. As CSV or JSON lines, the whole result.", *LIST_HEADERS)
    records["content"] |= {media_type: {"schema": {"type": "string"}} for media_type in EXPORT_TYPES}
    errors_ = (*READ_ERRORS, errors.TooLarge)
    return _operation(table, "list", "List records", LIST_PARAMETERS, errors_, {"200": records})


def _describe_read(table: TableDescription) -> Object:
    success = {
        "200": _records(table, "The record.", "ETag", *RECORD_HEADERS),
        "304": {"description": "The record has not changed."},
    }
    parameters = ("sysId", *OUTPUT_PARAMETERS, "ifNoneMatch")
    return _operation(table, "read", "Read a record", parameters, READ_ERRORS, success)


def _describe_create(table: TableDescription) -> Object:
    description = "The new record, with the fields that the caller can read."
    success = {"201": _records(table, description, "Location", "ETag", *RECORD_HEADERS)}
    created = _operation(table, "create", "Create a record", (*WRITE_PARAMETERS, "import"), CREATE_ERRORS, success)
    return _with_body(table, "post", created)


def _describe_replace(table: TableDescription) -> Object:
    return _with_body(table, "put", _describe_change(table, "replace", "Replace a record"))


def _describe_update(table: TableDescription) -> Object:
    return _with_body(table, "patch", _describe_change(table, "change", "Update a record"))


def _describe_change(table: TableDescription, verb: str, title: str) -> Object:
    success = {"200": _records(table, "The fields of the record that the caller can read.", "ETag", *RECORD_HEADERS)}
    return _operation(table, verb, title, ("sysId", "ifMatch", *WRITE_PARAMETERS), CHANGE_ERRORS, success)


def _describe_delete(table: TableDescription) -> Object:
    success = {"200": json_response(reference("schemas", "Deleted"), "The record was deleted.")}
    parameters = ("sysId", "ifMatch", "idempotencyKey")
    return _operation(table, "delete", "Delete a record", parameters, DELETE_ERRORS, success)


def _with_body(table: TableDescription, method: str, described: Object) -> Object:
    body = {"application/json": {"schema": reference("schemas", table.bodies[method])}}
    return described | {"requestBody": {"required": True, "content": body}}


def _operation(
    table: TableDescription, verb: str, title: str, parameters: tuple[str, ...], error_types: Errors, success: Object
) -> Object:
    if table.name == ANY_TABLE_NAME:
        names = ("tableName", *parameters)
        operation_id, summary, tag = f"records_{verb}", f"{title} · any table", TABLE_API_TAG
        failures = error_responses(error_types)
    else:
        names = parameters
        operation_id, summary, tag = f"{verb}_{table.name}", f"{title} · {table.label}", f"Table {table.name}"
        # One reference for all errors: with each of thirty tables' own, a browser would resolve thousands.
        failures = {"default": reference("responses", "AnyError")}
    return operation(operation_id, summary, tag, failures | success, parameters=parameters_of(*names))


def _records(table: TableDescription, description: str, *headers: str) -> Object:
    return json_response(table.response, description, headers_of(*headers))

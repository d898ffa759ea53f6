"""Operations of the Table API in the OpenAPI document, and their paths. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from system import errors, openapi
from system.openapi import BODY_ERRORS, READ_ERRORS, WRITE_ERRORS, Errors, Object, reference

Names = tuple[str, ...]

TABLE_NAME = "{tableName}"
PATH_PARAMETERS = {TABLE_NAME: "tableName", "{sys_id}": "sysId", "{entry}": "entry"}
CREATE_ERRORS: Errors = (*READ_ERRORS, *WRITE_ERRORS, *BODY_ERRORS, errors.InvalidInput)
CHANGE_ERRORS: Errors = (*CREATE_ERRORS, errors.PreconditionFailed)


@dataclass(frozen=True)
class Operation:
    operation_id: str
    summary: str
    # The success responses by status.
    success: Object
    # In addition to the parameters of the path.
    parameters: Names = ()
    # If empty, one reference covers all errors. Listing them for every table would make browsers resolve thousands.
    error_types: Errors = READ_ERRORS
    body: Object | None = None
    tag: str = "Table API"

    def describe(self, path: str) -> Object:
        names = (*(name for part, name in PATH_PARAMETERS.items() if part in path), *self.parameters)
        failures = openapi.error_responses(self.error_types) or {"default": reference("responses", "AnyError")}
        description = {
            "operationId": self.operation_id,
            "summary": self.summary,
            "tags": [self.tag],
            "security": openapi.SECURITY,
            "responses": dict(sorted((failures | self.success).items())),
            "parameters": [reference("parameters", name) for name in names],
        }
        return description | ({"requestBody": {"required": True, "content": self.body}} if self.body else {})


def paths_of(operations: Mapping[tuple[str, str], Operation]) -> Object:
    """Return the OpenAPI paths of operations keyed by method and path."""
    paths: Object = {}
    for (method, path), operation in operations.items():
        paths.setdefault(path, {})[method] = operation.describe(path)
    return paths


def json_success(schema: Object, description: str = "The result.", *headers: str, status: str = "200") -> Object:
    return {status: openapi.json_response(schema, description, {name: reference("headers", name) for name in headers})}


def json_content(schema_name: str) -> Object:
    return {"application/json": {"schema": reference("schemas", schema_name)}}

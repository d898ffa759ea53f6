"""Parts of the OpenAPI document that all apps use: operations, responses, errors and security. Pure."""

from __future__ import annotations

from typing import Any

from system import errors
from system.errors import ServiceError

Object = dict[str, Any]
Errors = tuple[type[ServiceError], ...]

SECURITY: list[Object] = [{"access_key": []}, {"password": []}]

READ_ERRORS: Errors = (
    errors.BadRequest,
    errors.Unauthenticated,
    errors.NotFound,
    errors.QueryTooLong,
    errors.TooMany,
    errors.Unavailable,
)
WRITE_ERRORS: Errors = (errors.AccessDenied, errors.Conflict)
BODY_ERRORS: Errors = (errors.TimedOut, errors.LengthRequired, errors.TooLarge, errors.UnsupportedMedia)


def reference(kind: str, name: str) -> Object:
    return {"$ref": f"#/components/{kind}/{name}"}


def error_responses(possible: Errors) -> Object:
    """By status, with a reference to the response that has the name of the error's class."""
    return {str(error.status): reference("responses", error.__name__) for error in possible}


def json_response(schema: Object, description: str, headers: Object | None = None) -> Object:
    response: Object = {"description": description, "content": {"application/json": {"schema": schema}}}
    return response | ({"headers": headers} if headers else {})


def operation(operation_id: str, summary: str, tag: str, responses: Object, **more: Any) -> Object:
    return {
        "operationId": operation_id,
        "summary": summary,
        "tags": [tag],
        "security": SECURITY,
        "responses": dict(sorted(responses.items())),
        **more,
    }

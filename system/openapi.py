"""Parts of the OpenAPI document that all apps use: operations, error responses and security.

Views are described with `describe`, which is drf-spectacular's `@extend_schema` with error classes as responses. The
Table API, whose tables are known at run time only, builds its operations itself.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, extend_schema

from system import errors
from system.errors import CHALLENGE, ServiceError

Object = dict[str, Any]
Errors = tuple[type[ServiceError], ...]
Method = TypeVar("Method", bound=Callable[..., Any])

SECURITY: list[Object] = [{"access_key": []}, {"password": []}]

READ_ERRORS: Errors = (
    errors.BadRequest, errors.Unauthenticated, errors.NotFound, errors.QueryTooLong, errors.QueryTooSlow,
    errors.TooManyRequests, errors.Unavailable,
)  # fmt: skip
WRITE_ERRORS: Errors = (errors.AccessDenied, errors.Conflict)
BODY_ERRORS: Errors = (errors.TimedOut, errors.LengthRequired, errors.TooLarge, errors.UnsupportedMediaType)
# Errors that `add_error_responses` adds to every operation, and to every operation with a body.
COMMON_ERRORS: Errors = (errors.Unauthenticated, errors.QueryTooSlow, errors.TooManyRequests, errors.Unavailable)
COMMON_BODY_ERRORS: Errors = (
    errors.BadRequest, errors.LengthRequired, errors.TooLarge, errors.UnsupportedMediaType, errors.InvalidInput,
)  # fmt: skip


def object_of(properties: Object, optional: Collection[str] = ()) -> Object:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "required": required, "properties": properties}


def array_of(items: Object) -> Object:
    return {"type": "array", "items": items}


ERROR_ITEM = object_of(
    {
        "message": {"type": "string", "description": "A human-readable message. The wording may change."},
        "code": {"type": "string", "description": "A stable error code for programs."},
        "field": {"type": "string", "description": "The parameter, field or column that caused the error."},
        "position": {
            "type": "integer",
            "minimum": 0,
            "description": "The position of the error in the query, starting at 0.",
        },
    },
    optional=("field", "position"),
)
ERROR_SCHEMA = object_of(
    {"status": {"const": "ERROR"}, "error_type": {"const": "SERVER"}, "errors": array_of(ERROR_ITEM)}
)


def reference(kind: str, name: str) -> Object:
    return {"$ref": f"#/components/{kind}/{name}"}


def error_responses(error_classes: Errors) -> Object:
    """References to the response components of the error classes, by status."""
    return {str(error.status): reference("responses", error.__name__) for error in error_classes}


def json_response(schema: Object, description: str, headers: Object | None = None) -> Object:
    response: Object = {"description": description, "content": {"application/json": {"schema": schema}}}
    return response | ({"headers": headers} if headers else {})


def describe(
    operation_id: str, summary: str, responses: Mapping[Any, Any], *error_classes: type[ServiceError], **options: Any
) -> Callable[[Method], Method]:
    """`@extend_schema` for a method that can also return one of the errors in `error_classes`."""
    all_responses = {**responses, **{error.status: error for error in error_classes}}
    return extend_schema(operation_id=operation_id, summary=summary, responses=all_responses, **options)


def response_header(name: str, schema: Object, description: str) -> OpenApiParameter:
    """A header of successful responses, for the option `parameters` of `describe`."""
    return OpenApiParameter(name, schema, OpenApiParameter.HEADER, description=description, response=[200, 201, 202])


class ServiceSchema(AutoSchema):
    """Accepts error classes as responses, and refers to the components of the same name.

    Descriptions come only from the method or its view, because docstrings of base classes are for developers.
    """

    def get_description(self) -> str:  # type: ignore[override]  # as the base class has it
        method = getattr(self.view, self.method.lower())
        return inspect.cleandoc(method.__doc__ or type(self.view).__doc__ or "")

    def _get_response_for_code(self, serializer: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(serializer, type) and issubclass(serializer, ServiceError):
            return reference("responses", serializer.__name__)
        return super()._get_response_for_code(serializer, *args, **kwargs)  # type: ignore[no-untyped-call]


def strip_trailing_slashes(endpoints: list[Any]) -> list[Any]:
    """PREPROCESSING_HOOKS: describe paths without their optional trailing slash."""
    return [(path.rstrip("/"), *view) for path, *view in endpoints]


def error_component(error: type[ServiceError]) -> Object:
    example = {"status": "ERROR", "error_type": "SERVER", "errors": [{"message": error.message, "code": error.code}]}
    response = json_response(reference("schemas", "Error"), error.message)
    response["content"]["application/json"]["example"] = example
    if error is errors.Unauthenticated:
        response["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}, "example": CHALLENGE}}
    if error in (errors.TooManyRequests, errors.Unavailable):
        response["headers"] = {
            "Retry-After": {
                "description": "The number of seconds to wait before you retry.",
                "schema": {"type": "integer", "minimum": 1},
            }
        }
    return response


def add_error_responses(result: Object, **_: Any) -> Object:
    """POSTPROCESSING_HOOKS: add the error components, and to each operation the errors common to all."""
    # Errors that apps derive from these have the same status.
    base_errors = [error for error in ServiceError.__subclasses__() if error.__module__ == errors.__name__]
    components = result.setdefault("components", {})
    components.setdefault("schemas", {})["Error"] = ERROR_SCHEMA
    components["responses"] = {error.__name__: error_component(error) for error in base_errors}
    components["responses"]["AnyError"] = json_response(
        reference("schemas", "Error"), "An error. The HTTP status identifies its kind."
    )
    for described_operation in (operation for path in result["paths"].values() for operation in path.values()):
        if "default" not in described_operation["responses"]:
            common_errors = (*COMMON_ERRORS, *(COMMON_BODY_ERRORS if "requestBody" in described_operation else ()))
            described_operation["responses"] = error_responses(common_errors) | described_operation["responses"]
    return result

"""The interface's description: Swagger UI and ReDoc, served from here, and the errors that every endpoint can answer.

The pages have a policy that allows their one inline script by nonce.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.views import View
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularJSONAPIView

from system import errors
from system.errors import ServiceError
from system.http.error_responses import CHALLENGE
from system.http.middleware import policy_with_nonce


class Compact(OpenApiJsonRenderer):
    def get_indent(self, *_: Any) -> None:
        """None: programs read it, and indented it is more than three times as long."""


class Schema(SpectacularJSONAPIView):
    renderer_classes = [Compact]


class WithNonce(View):
    template = ""

    def get(self, request: HttpRequest, **_: Any) -> HttpResponse:
        policy, nonce = policy_with_nonce()
        # ReDoc starts a worker from a blob for its search.
        response = render(request, self.template, {"nonce": nonce})
        response["Content-Security-Policy"] = f"{policy}; worker-src 'self' blob:"
        return response


class Swagger(WithNonce):
    template = "pages/swagger.html"


class Redoc(WithNonce):
    template = "pages/redoc.html"


REDOC = "drf_spectacular_sidecar/redoc/bundles/redoc.standalone.js"
# The bundle shows its maker's logo from the maker's host; nothing here is loaded from outside.
FOREIGN_LOGO = "https://cdn.redoc.ly/redoc/logo-mini.svg"


@cache
def redoc_bundle() -> str:
    found = finders.find(REDOC)
    return Path(str(found)).read_text(encoding="utf-8").replace(FOREIGN_LOGO, static("servicebase/logo.svg"))


class RedocBundle(View):
    def get(self, request: HttpRequest) -> HttpResponse:
        response = HttpResponse(redoc_bundle(), content_type="text/javascript; charset=utf-8")
        response["Cache-Control"] = "public, max-age=3600"
        return response


Object = dict[str, Any]

ERROR: Object = {
    "type": "object",
    "required": ["status", "error_type", "errors"],
    "properties": {
        "status": {"const": "ERROR"},
        "error_type": {"const": "SERVER"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["message", "code"],
                "properties": {
                    "message": {"type": "string", "description": "For people; may change."},
                    "code": {"type": "string", "description": "For programs; stays."},
                    "field": {"type": "string", "description": "The parameter, field or column it is about."},
                    "position": {"type": "integer", "minimum": 0, "description": "Where in a query, from 0."},
                },
            },
        },
    },
}
ANY_ERROR: Object = {
    "description": "An error; the status tells which.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}
OF_EVERY_ENDPOINT = (errors.Unauthenticated, errors.TooMany, errors.Unavailable)
OF_EVERY_BODY = (errors.BadRequest, errors.LengthRequired, errors.TooLarge, errors.UnsupportedMedia, errors.Invalid)


def kinds(of: type[ServiceError] = ServiceError) -> Iterator[type[ServiceError]]:
    """The tree's own errors; those that areas derive from them have the same status."""
    yield from (each for each in of.__subclasses__() if each.__module__ == errors.__name__)


def error_answer(kind: type[ServiceError]) -> Object:
    """An answer by the name of its class, which operations refer to."""
    item = {"message": kind.message, "code": kind.code}
    example = {"status": "ERROR", "error_type": "SERVER", "errors": [item]}
    schema = {"$ref": "#/components/schemas/Error"}
    found: Object = {
        "description": kind.message,
        "content": {"application/json": {"schema": schema, "example": example}},
    }
    if kind is errors.Unauthenticated:
        found["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}, "example": CHALLENGE}}
    if kind in (errors.TooMany, errors.Unavailable):
        found["headers"] = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}}
    return found


def with_errors(result: Object, **_: Any) -> Object:
    """POSTPROCESSING_HOOKS: the errors that an operation does not name itself."""
    components = result.setdefault("components", {})
    components.setdefault("schemas", {})["Error"] = ERROR
    components["responses"] = {kind.__name__: error_answer(kind) for kind in kinds()} | {"AnyError": ANY_ERROR}
    for operations in result["paths"].values():
        for operation in operations.values():
            if "default" in operation["responses"]:
                continue
            possible = (*OF_EVERY_ENDPOINT, *(OF_EVERY_BODY if "requestBody" in operation else ()))
            for kind in possible:
                answer = {"$ref": f"#/components/responses/{kind.__name__}"}
                operation["responses"].setdefault(str(kind.status), answer)
    return result

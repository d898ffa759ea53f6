"""What the management endpoints share: who may call them, ETags, lists that are cut into pages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication.schemes import Basic, Bearer, Session
from accounts.models import User
from collections_app import access
from collections_app.http import openapi, parameters
from collections_app.search.metadata_listing import DEEPEST
from system.errors import AccessDenied, BadRequest, Conflict, NotFound, PreconditionFailed, ServiceError, together
from system.http import etags
from system.http.response_cleanup import ReleasesResponse

TAG = "Management of collections"
Errors = tuple[type[ServiceError], ...]
OF_ALL: Errors = (NotFound,)
OF_CHANGES: Errors = (AccessDenied, Conflict, PreconditionFailed)
ABOUT_TAG = "Of the state that is answered; for `If-Match`."
ETAG: dict[str, dict[str, Any]] = {"ETag": {"description": ABOUT_TAG, "schema": {"type": "string"}}}
IF_MATCH = OpenApiParameter(
    "If-Match",
    {"type": "string"},
    OpenApiParameter.HEADER,
    description="The ETag that was read: what was changed since then is a 412.",
)

Method = TypeVar("Method", bound=Callable[..., Any])


class Management(ReleasesResponse):
    """A signed-in browser counts here, with CSRF for everything that changes."""

    authentication_classes = (Bearer, Basic, Session)
    http_method_names = ["get", "head", "post", "patch", "delete"]

    def caller(self) -> User:
        return access.caller(self.request)


class Strict(serializers.Serializer[Any]):
    """Refuses names that it does not know: a misspelled setting would be taken for one that is to stay."""

    def to_internal_value(self, data: Any) -> Any:
        parameters.refuse_unknown(data, tuple(self.fields), "{} is no field that can be set")
        return super().to_internal_value(data)


class StrictFilters(DjangoFilterBackend):  # type: ignore[misc]  # has no types
    """The same for lists: one that is narrowed by a misspelled name would hold more than was asked for."""

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        found = self.get_filterset(request, queryset, view)
        parameters.refuse_unknown(request.query_params, (*found.filters, *Pages.names))
        if not found.is_valid():
            raise together([_refusal(name, found.form.fields[name], said) for name, said in found.errors.items()])
        return found.qs


def _refusal(name: str, field: Any, said: Sequence[str]) -> ServiceError:
    choices = [str(value) for value, _ in getattr(field, "choices", ()) if value]
    return parameters.refused(name, f"{name} is one of {', '.join(choices)}." if choices else str(said[0]))


class Pages(LimitOffsetPagination):
    """A bare array; how long the whole list is, and where it goes on, stand in headers."""

    names = ("limit", "offset")
    default_limit = 50
    max_limit = 500

    def get_limit(self, request: Request) -> int:
        return self._given(request, "limit", 1, self.max_limit) or self.default_limit

    def get_offset(self, request: Request) -> int:
        return self._given(request, "offset", 0, DEEPEST)

    def _given(self, request: Request, name: str, least: int, most: int) -> int:
        spoken = parameters.TextValue(tuple(request.query_params.getlist(name)))
        return parameters.number(least, most)(name, spoken) if spoken.texts else 0

    def get_paginated_response(self, data: Any) -> Response:
        assert self.count is not None and self.offset is not None
        response = Response(data)
        response["X-Total-Count"] = str(self.count)
        after = self.offset + len(data)
        if data and after < self.count:
            response["X-Next-Offset"] = str(after)
        return response

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        bounds = {
            "limit": {"minimum": 1, "maximum": self.max_limit, "default": self.default_limit},
            "offset": {"minimum": 0, "maximum": DEEPEST, "default": 0},
        }
        found = super().get_schema_operation_parameters(view)
        return [each | {"schema": each["schema"] | bounds[each["name"]]} for each in found]

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return schema


def etag(version: object) -> str:
    """Of what can be changed; the same text as long as nobody changed it.

    >>> etag({"a": 1}) == etag({"a": 1}), etag({"a": 1}) == etag({"a": True})
    (True, False)
    """
    return f'"{hashlib.sha256(json.dumps(version, sort_keys=True).encode()).hexdigest()[:16]}"'


def refuse_stale(request: Request, current: str) -> None:
    """Chosen: without If-Match the last writer wins; with it nobody overwrites what they have not seen."""
    tags = etags.to_match(request)
    if tags is not None and {current, etags.ANY}.isdisjoint(tags):
        raise PreconditionFailed("It was changed since it was read. Read it again.")


def described(name: str, *, is_list: bool = False) -> OpenApiResponse:
    """An answer whose schema the description of the eight endpoints has."""
    return OpenApiResponse(openapi.list_of(name) if is_list else openapi.of(name))


def operation(
    name: str,
    summary: str,
    answers: Mapping[Any, Any],
    *refusals: type[ServiceError],
    headers: Mapping[str, dict[str, Any]] | None = None,
    in_query: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> Callable[[Method], Method]:
    """What a method of these views is in the OpenAPI document; `headers` are those of its answers."""
    parameters = [OpenApiParameter(each["name"], each["schema"], description=each["description"]) for each in in_query]
    parameters += [
        OpenApiParameter(
            each, about["schema"], OpenApiParameter.HEADER, description=about["description"], response=[*answers]
        )
        for each, about in (headers or {}).items()
    ]
    if PreconditionFailed in refusals:
        parameters.append(IF_MATCH)
    if PreconditionFailed in refusals or "filters" in more:
        refusals = (*refusals, BadRequest)  # what is no ETag; what a list cannot be narrowed or cut by
    error = {"$ref": "#/components/schemas/Error"}
    refused = {each.status: OpenApiResponse(error, description=each.message) for each in (*refusals, *OF_ALL)}
    responses = {**answers, **refused}
    made: Callable[[Method], Method] = extend_schema(
        operation_id=name, tags=[TAG], summary=summary, responses=responses, parameters=parameters, **more
    )
    return made

"""Base classes of the management endpoints: authentication, strict input, filters, pagination and ETags."""

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication.schemes import BasicAuthentication, BearerAuthentication, BrowserSessionAuthentication
from accounts.models import User
from collections_app import access
from collections_app.http import parameters
from collections_app.models import Collection
from collections_app.models.collections import MAX_NAME_LENGTH, InvalidName, normalize_name
from collections_app.search.metadata_listing import MAX_OFFSET
from system import errors
from system.http import etags
from system.http.json_view import JsonView
from system.openapi import response_header

DELETE_ERRORS = (errors.NotFound, errors.AccessDenied, errors.PreconditionFailed, errors.BadRequest)
CHANGE_ERRORS = (*DELETE_ERRORS, errors.Conflict)
ETAG_HEADER = response_header(
    "ETag",
    {"type": "string"},
    "The ETag of the returned resource. Send it in `If-Match` to change or delete only this version.",
)
IF_MATCH_HEADER = OpenApiParameter(
    "If-Match",
    {"type": "string"},
    OpenApiParameter.HEADER,
    description="The ETag of the version that you read. If the resource has changed since then, the response is 412.",
)

# API requests have the time zone UTC.
time_field = partial(serializers.DateTimeField, format="%Y-%m-%dT%H:%M:%SZ")


@extend_schema(tags=["Collection management"])
class ManagementView(JsonView):
    """Also accepts a browser session; changes then require a CSRF token."""

    authentication_classes = (BearerAuthentication, BasicAuthentication, BrowserSessionAuthentication)
    http_method_names = ["get", "head", "post", "patch", "delete"]

    def caller(self) -> User:
        return access.caller(self.request)

    def open_collection(self, sys_id: str, right: access.Right) -> Collection:
        return access.open_collection_by_id(self.caller(), sys_id, right)


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses unknown names: a misspelled setting would otherwise keep its old value without an error."""

    def to_internal_value(self, data: Any) -> Any:
        parameters.refuse_unknown(data, tuple(self.fields), 'The field "{}" does not exist or cannot be set')
        return super().to_internal_value(data)


class DocIdField(serializers.CharField):
    """The ID of a document, in its stored form."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_NAME_LENGTH, trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        try:
            return normalize_name(super().to_internal_value(data), "doc_id")
        except InvalidName as error:
            raise serializers.ValidationError(error.message) from None


class StrictFilterBackend(DjangoFilterBackend):  # type: ignore[misc]  # has no types
    """Refuses unknown filters: a misspelled one would otherwise return too many entries."""

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        filters = self.get_filterset(request, queryset, view)
        parameters.refuse_unknown(request.query_params, (*filters.filters, *OffsetPagination.parameter_names))
        if not filters.is_valid():
            fields = filters.form.fields
            raise errors.combine_errors(
                [_filter_error(name, fields[name], messages) for name, messages in filters.errors.items()]
            )
        return filters.qs


def _filter_error(name: str, field: Any, messages: Sequence[str]) -> errors.ServiceError:
    choices = [str(value) for value, _ in getattr(field, "choices", ()) if value]
    message = f"{name} must be one of: {', '.join(choices)}." if choices else str(messages[0])
    return errors.InvalidParameter(message, field=name)


class OffsetPagination(LimitOffsetPagination):
    """The response is an array; headers have the total count and the next offset."""

    parameter_names = ("limit", "offset")
    default_limit = 50
    max_limit = 500

    def get_limit(self, request: Request) -> int:
        return self._read_number(request, "limit", 1, self.max_limit) or self.default_limit

    def get_offset(self, request: Request) -> int:
        return self._read_number(request, "offset", 0, MAX_OFFSET)

    def _read_number(self, request: Request, name: str, minimum: int, maximum: int) -> int:
        value = parameters.TextValue(tuple(request.query_params.getlist(name)))
        return parameters.number_reader(minimum, maximum)(name, value) if value.texts else 0

    def get_paginated_response(self, data: Any) -> Response:
        assert self.count is not None and self.offset is not None
        response = Response(data)
        response["X-Total-Count"] = str(self.count)
        next_offset = self.offset + len(data)
        if data and next_offset < self.count:
            response["X-Next-Offset"] = str(next_offset)
        return response

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        bounds = {
            "limit": {"minimum": 1, "maximum": self.max_limit, "default": self.default_limit},
            "offset": {"minimum": 0, "maximum": MAX_OFFSET, "default": 0},
        }
        base_params = super().get_schema_operation_parameters(view)
        return [parameter | {"schema": parameter["schema"] | bounds[parameter["name"]]} for parameter in base_params]

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return schema


def compute_etag(version: object) -> str:
    """Returns the ETag of a version; equal versions have equal ETags.

    >>> compute_etag({"a": 1}) == compute_etag({"a": 1}), compute_etag({"a": 1}) == compute_etag({"a": True})
    (True, False)
    """
    return f'"{hashlib.sha256(json.dumps(version, sort_keys=True).encode()).hexdigest()[:16]}"'


def refuse_stale_etag(request: Request, current_etag: str) -> None:
    """Raises PreconditionFailed if the request has an If-Match header without the current ETag."""
    tags = etags.required_tags(request)
    if tags is not None and {current_etag, etags.ANY_TAG}.isdisjoint(tags):
        raise errors.PreconditionFailed(
            "The resource has changed since you read it. Read it again before you change it."
        )

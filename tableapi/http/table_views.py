"""The endpoints for the records of a table."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from rest_framework.request import Request
from rest_framework.viewsets import ViewSet

from system.http import django_request, etags
from system.http.error_responses import own_origin
from system.http.json_view import JsonView
from system.strict_json import InvalidJson
from tableapi.query.parameters import IMPORT, INPUT_DISPLAY, OutputOptions, parse_output, parse_switch
from tableapi.read import export, pipeline
from tableapi.read.context import Caller
from tableapi.write import create, delete, update
from tableapi.write.table_write import write
from tableapi.write.write_request import WriteInput

from .idempotency import IDEMPOTENCY_HEADER, respond_once
from .responses import API_PATH, created_response, deleted_response, list_response, record_response, written_response


class TableViewSet(JsonView, ViewSet):
    """Reads and writes the records of a table, subject to its access rules."""

    http_method_names = ["get", "post", "put", "patch", "delete", "head"]

    def list(self, request: Request, table: str) -> HttpResponseBase:
        accepted = request.META.get("HTTP_ACCEPT", "").lower()
        if "csv" in accepted or "ndjson" in accepted or "spreadsheetml" in accepted:
            media_type = django_request(request).get_preferred_type(("application/json", *export.MEDIA_TYPES))
            if media_type in export.MEDIA_TYPES:
                return export.export(caller_of(request), table, request.query_params, media_type)
        return list_response(request, pipeline.read_list(caller_of(request), table, request.query_params))

    def retrieve(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        return record_response(request, pipeline.read_record(caller_of(request), table, sys_id, request.query_params))

    def create(self, request: Request, table: str) -> HttpResponse:
        change = replace(parse_change(request), is_import=parse_switch(request.query_params, IMPORT))

        def respond() -> HttpResponse:
            return created_response(request, table, write(caller_of(request), table, change, create.create))

        return respond_once(request, respond)

    def update(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        return self._change(request, table, sys_id, replaces=True)

    def partial_update(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        return self._change(request, table, sys_id, replaces=False)

    def _change(self, request: Request, table: str, sys_id: str, *, replaces: bool) -> HttpResponse:
        change = parse_change(request)
        update_record = partial(update.update, sys_id=sys_id, replaces=replaces)

        def respond() -> HttpResponse:
            return written_response(request, write(caller_of(request), table, change, update_record))

        return respond_once(request, respond)

    def destroy(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        delete_record = partial(delete.delete, sys_id=sys_id)

        def respond() -> HttpResponse:
            change = WriteInput({}, OutputOptions(), is_current=version_check(request))
            write(caller_of(request), table, change, delete_record)
            return deleted_response(table, sys_id)

        return respond_once(request, respond)


def caller_of(request: Request) -> Caller:
    http_request: Any = django_request(request)
    batch_caller: Caller | None = getattr(http_request, "caller", None)  # set for requests in a batch
    if batch_caller is not None:
        return batch_caller
    user: Any = request.user
    # Escaped for use inside a JSON string.
    return Caller.of(user, json.dumps(own_origin(http_request) + API_PATH)[1:-1])


def parse_change(request: Request) -> WriteInput:
    """Parse the body and parameters of a write; errors in them are reported before the database is used."""
    body = _json_object(request)
    output = parse_output(request.query_params)
    display_input = parse_switch(request.query_params, INPUT_DISPLAY)
    return WriteInput(body, output, display_input, version_check(request), IDEMPOTENCY_HEADER in request.META)


def json_body(request: Request) -> Any:
    """The parsed body, or None if the request has none; DRF would return an empty dict."""
    return request.data if django_request(request).body else None


def _json_object(request: Request) -> dict[str, Any]:
    """ "Exactly one JSON object": DRF alone would accept an empty body."""
    if not django_request(request).body:
        raise InvalidJson("The body must be one JSON object of column names and values.")
    body = request.data
    if not isinstance(body, dict):
        raise InvalidJson("The body must be one JSON object of column names and values. Send one request per record.")
    return body


def version_check(request: Request) -> Callable[[int | None], bool] | None:
    """Return a check of a version against If-Match, or None without the header. Hidden versions only match `*`."""
    tags = etags.required_tags(request)
    if tags is None:
        return None
    return lambda version: any(
        tag == etags.ANY_TAG or (version is not None and tag.startswith(f'"{version}-')) for tag in tags
    )

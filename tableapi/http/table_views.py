"""The endpoints for the records of a table: single, bulk and upsert requests."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from django.http import HttpResponse, HttpResponseBase, JsonResponse
from rest_framework.request import Request
from rest_framework.viewsets import ViewSet

from system.http import django_request, etags
from system.http.error_responses import own_origin
from system.http.json_view import JsonView
from system.strict_json import InvalidJson
from tableapi.bulk import bulk_write, upsert
from tableapi.bulk.bulk_request import BulkRequest, parse_bulk
from tableapi.bulk.bulk_write import RecordOutcome
from tableapi.query.parameters import IMPORT, INPUT_DISPLAY, OutputOptions, parse_output, parse_switch, parse_text
from tableapi.read import export, pipeline
from tableapi.read.context import Caller
from tableapi.write import create, delete, update
from tableapi.write.write_request import WriteInput, WriteRequest, write

from . import responses
from .idempotency import IDEMPOTENCY_HEADER, respond_once

# A bulk write.
Operation = Callable[[WriteRequest, BulkRequest], list[RecordOutcome]]


class TableViewSet(JsonView, ViewSet):
    """Reads and writes the records of a table, subject to its access rules."""

    http_method_names = ["get", "post", "put", "patch", "delete", "head"]

    def list(self, request: Request, table: str) -> HttpResponseBase:
        accepted = request.META.get("HTTP_ACCEPT", "").lower()
        if "csv" in accepted or "ndjson" in accepted or "spreadsheetml" in accepted:
            media_type = django_request(request).get_preferred_type(("application/json", *export.MEDIA_TYPES))
            if media_type in export.MEDIA_TYPES:
                return export.export(caller_of(request), table, request.query_params, media_type)
        return responses.list_response(request, pipeline.read_list(caller_of(request), table, request.query_params))

    def retrieve(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        return responses.record_response(
            request, pipeline.read_record(caller_of(request), table, sys_id, request.query_params)
        )

    def create(self, request: Request, table: str) -> HttpResponse:
        change = _parse_new_record(request)
        return respond_once(
            request,
            lambda: responses.created_response(request, table, write(caller_of(request), table, change, create.create)),
        )

    def update(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        return self._change(request, table, sys_id, replaces=True)

    def partial_update(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        return self._change(request, table, sys_id, replaces=False)

    def _change(self, request: Request, table: str, sys_id: str, *, replaces: bool) -> HttpResponse:
        change = parse_change(request)
        update_record = partial(update.update, sys_id=sys_id, replaces=replaces)
        return respond_once(
            request,
            lambda: responses.written_response(request, write(caller_of(request), table, change, update_record)),
        )

    def destroy(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        def respond() -> HttpResponse:
            change = WriteInput({}, OutputOptions(), is_current=version_check(request))
            write(caller_of(request), table, change, partial(delete.delete, sys_id=sys_id))
            description = f"The record {sys_id} of {table} was deleted."
            return JsonResponse({"status": "OK", "data": {"description": description}})

        return respond_once(request, respond)


class BulkView(JsonView):
    http_method_names = ["post", "patch", "delete"]

    def post(self, request: Request, table: str) -> HttpResponse:
        return _bulk_response(request, table, bulk_write.create_records, allows_query=False)

    def patch(self, request: Request, table: str) -> HttpResponse:
        return _bulk_response(request, table, bulk_write.update_records, allows_query=True, allows_values=True)

    def delete(self, request: Request, table: str) -> HttpResponse:
        return _bulk_response(request, table, bulk_write.delete_records, allows_query=True)


class UpsertView(JsonView):
    http_method_names = ["post"]

    def post(self, request: Request, table: str) -> HttpResponse:
        change = _parse_new_record(request)
        key = parse_text(request.query_params, upsert.KEY_PARAMETER)

        def respond() -> HttpResponse:
            result, is_new = write(caller_of(request), table, change, partial(upsert.upsert, key=key))
            if is_new:
                return responses.created_response(request, table, result)
            return responses.written_response(request, result)

        return respond_once(request, respond)


def _bulk_response(request: Request, table: str, operation: Operation, **options: bool) -> HttpResponse:
    bulk_request = parse_bulk(json_body(request), request.query_params, **options)
    display_input, is_import = (parse_switch(request.query_params, name) for name in (INPUT_DISPLAY, IMPORT))
    write_input = WriteInput({}, OutputOptions(), display_input, is_import=is_import)

    def respond() -> HttpResponse:
        outcomes = write(caller_of(request), table, write_input, lambda change: operation(change, bulk_request))
        all_are_created = bool(outcomes) and all(outcome.status == bulk_write.CREATED for outcome in outcomes)
        return responses.data_response(
            list(map(_item_json, outcomes)), bulk_write.CREATED if all_are_created else bulk_write.OK
        )

    return respond_once(request, respond)


def _item_json(outcome: RecordOutcome) -> bytes:
    item: dict[str, Any] = {"sys_id": outcome.sys_id, "status": outcome.status}
    if outcome.error is not None:
        item["errors"] = outcome.error.as_items()
    return responses.entry_json(item)


def caller_of(request: Request, api_path: str = responses.API_PATH) -> Caller:
    http_request: Any = django_request(request)
    batch_caller: Caller | None = getattr(http_request, "caller", None)  # set for requests in a batch
    if batch_caller is not None:
        return batch_caller
    user: Any = request.user
    # Escaped for use inside a JSON string.
    return Caller.of(user, json.dumps(own_origin(http_request) + api_path)[1:-1])


def parse_change(request: Request) -> WriteInput:
    """Parse the body and parameters of a write; errors in them are reported before the database is used."""
    body = _json_object(request)
    output = parse_output(request.query_params)
    display_input = parse_switch(request.query_params, INPUT_DISPLAY)
    return WriteInput(body, output, display_input, version_check(request), IDEMPOTENCY_HEADER in request.META)


def _parse_new_record(request: Request) -> WriteInput:
    return replace(parse_change(request), is_import=parse_switch(request.query_params, IMPORT))


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

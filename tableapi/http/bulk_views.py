"""The bulk and upsert endpoints."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from system.http.json_view import JsonView
from tableapi.bulk import bulk_write, upsert
from tableapi.bulk.bulk_request import BulkRequest, parse_bulk
from tableapi.bulk.bulk_write import RecordOutcome
from tableapi.query.parameters import IMPORT, INPUT_DISPLAY, OutputOptions, parse_switch, parse_text
from tableapi.write.table_write import write
from tableapi.write.write_request import WriteInput, WriteRequest

from .idempotency import respond_once
from .responses import created_response, data_response, entry_json, written_response
from .table_views import caller_of, json_body, parse_change


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
        change = replace(parse_change(request), is_import=parse_switch(request.query_params, IMPORT))
        key = parse_text(request.query_params, upsert.KEY_PARAMETER)

        def respond() -> HttpResponse:
            result, is_new = write(caller_of(request), table, change, partial(upsert.upsert, key=key))
            return created_response(request, table, result) if is_new else written_response(request, result)

        return respond_once(request, respond)


Operation = Callable[[WriteRequest, BulkRequest], list[RecordOutcome]]


def _bulk_response(request: Request, table: str, operation: Operation, **options: bool) -> HttpResponse:
    bulk_request = parse_bulk(json_body(request), request.query_params, **options)
    display_input = parse_switch(request.query_params, INPUT_DISPLAY)
    is_import = parse_switch(request.query_params, IMPORT)
    write_input = WriteInput({}, OutputOptions(), display_input, is_import=is_import)

    def respond() -> HttpResponse:
        outcomes = write(caller_of(request), table, write_input, lambda change: operation(change, bulk_request))
        all_are_created = bool(outcomes) and all(outcome.status == bulk_write.CREATED for outcome in outcomes)
        return data_response(list(map(_item_json, outcomes)), bulk_write.CREATED if all_are_created else bulk_write.OK)

    return respond_once(request, respond)


def _item_json(outcome: RecordOutcome) -> bytes:
    item: dict[str, Any] = {"sys_id": outcome.sys_id, "status": outcome.status}
    if outcome.error is not None:
        item["errors"] = outcome.error.as_items()
    return entry_json(item)

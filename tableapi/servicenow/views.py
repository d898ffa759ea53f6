"""The addresses of the dialect: `/api/now/[v1|v2/]table/{table}[/{sys_id}]`."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from rest_framework.request import Request

from system import properties
from system.errors import NotFound
from system.http import django_request
from system.http.error_responses import own_url
from system.http.json_view import JsonView
from system.property_definitions import SERVICENOW_ENABLED
from system.strict_json import InvalidJson
from tableapi.http import table_views
from tableapi.http.responses import set_ignored_fields
from tableapi.http.table_views import json_body, version_check
from tableapi.read.context import Caller
from tableapi.read.pipeline import RecordResult
from tableapi.write.write_request import WriteResult

from . import records, statistics
from .parameters import is_true, parse_output

TABLE_PATH = "/api/now/table/"
# The header `Link` repeats a longer URL only for the next page.
MAX_LINKED_URL = 800


class ServiceNowView(JsonView):
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    schema = None

    def dispatch(self, request: HttpRequest, *positional: Any, **named: Any) -> HttpResponseBase:
        if not properties.get(SERVICENOW_ENABLED):
            raise NotFound
        return super().dispatch(request, *positional, **named)


class TableView(ServiceNowView):
    def get(self, request: Request, table: str) -> HttpResponse:
        list_request, result = records.read_list(caller_of(request), table, request.query_params)
        response = result_response(b"[" + b",".join(result.blocks) + b"]")
        if result.total is not None:
            response["X-Total-Count"] = str(result.total)
        if not is_true(request.query_params, "sysparm_suppress_pagination_header"):
            response["Link"] = page_links(request, list_request.offset or 0, list_request.limit, result.total)
        return response

    def post(self, request: Request, table: str) -> HttpResponse:
        result, ignored = _write(request, table)
        response = written_response(result, ignored, 201)
        path = f"{TABLE_PATH}{table}/{result.sys_id}"
        response["Location"] = own_url(django_request(request), path)
        return response


class RecordView(ServiceNowView):
    def get(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        return record_response(records.read_record(caller_of(request), table, sys_id, request.query_params))

    def patch(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        return written_response(*_write(request, table, sys_id))

    put = patch

    def delete(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        records.delete_record(caller_of(request), table, sys_id, version_check(request))
        return HttpResponse(status=204)


class StatisticsView(ServiceNowView):
    def get(self, request: Request, table: str) -> HttpResponse:
        result = statistics.read_statistics(caller_of(request), table, request.query_params)
        return result_response(json.dumps(result, ensure_ascii=False).encode())


def caller_of(request: Request) -> Caller:
    return table_views.caller_of(request, TABLE_PATH)


def _write(request: Request, table: str, sys_id: str = "") -> tuple[WriteResult, list[str]]:
    raw = request.query_params
    return records.write_record(
        caller_of(request),
        table,
        _body(request),
        parse_output(raw, records.current_names()),
        sys_id=sys_id,
        uses_display_values=is_true(raw, "sysparm_input_display_value"),
        is_current=version_check(request),
    )


def _body(request: Request) -> Mapping[str, Any]:
    body = json_body(request)
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise InvalidJson("The body must be one JSON object of column names and values.")
    return body


def result_response(body: bytes, status: int = 200) -> HttpResponse:
    return HttpResponse(b'{"result":' + body + b"}", status=status, content_type="application/json")


def record_response(record: RecordResult | None, status: int = 200) -> HttpResponse:
    return result_response(record.body if record else b"{}", status)


def written_response(result: WriteResult, ignored: list[str], status: int = 200) -> HttpResponse:
    response = record_response(result.record, status)
    set_ignored_fields(response, ignored)
    return response


def page_links(request: Request, offset: int, limit: int, total: int | None) -> str:
    """The links to the first, previous, next and last page."""
    offsets = {"first": 0}
    if offset > 0:
        offsets["prev"] = max(0, offset - limit)
    if total is not None:
        if offset + limit < total:
            offsets["next"] = offset + limit
        offsets["last"] = (total - 1) // limit * limit if total else 0
    parameters = [(name, value) for name, value in request.query_params.items() if name != "sysparm_offset"]
    url = f"{own_url(django_request(request), request.path)}?{urlencode(parameters)}"
    if len(url) > MAX_LINKED_URL:  # proxies limit the headers of a response
        offsets = {name: start for name, start in offsets.items() if name == "next"}
    separator = "&" if parameters else ""
    return ",".join(f'<{url}{separator}sysparm_offset={start}>;rel="{name}"' for name, start in offsets.items())

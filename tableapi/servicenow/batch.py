"""A batch of requests of the dialect. Each has its own transaction."""

import base64
import json
import re
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from django.http import HttpResponse
from rest_framework.request import Request

from system.errors import InvalidParameter, TooLarge
from system.http.error_responses import error_response
from system.strict_json import InvalidJson, parse_json
from tableapi.http.batch_views import MAX_BATCH_RESPONSE_BYTES, MAX_BATCH_S, Batch, open_batch, run_request
from tableapi.http.table_views import json_body

from .errors import PATH_PREFIX
from .views import ServiceNowView, caller_of

MAX_REQUESTS = 150
# Clients send a request in a batch if its URL would be too long.
MAX_QUERY_BYTES = 64 * 1024
# Without batches, without files, and without fragments, which the path of a request does not contain.
INNER_PATH = re.compile(r"/api/now/(?:v[12]/)?(?:table|stats|attachment)(?:/[^#]*)?")
FILE_PATH = re.compile(r"/api/now/(?:v[12]/)?attachment/(?:file|upload|[^/]+/file)/?")


class ServiceNowBatch(ServiceNowView):
    http_method_names = ["post"]

    def post(self, request: Request) -> HttpResponse:
        body = json_body(request)
        if not isinstance(body, dict) or not isinstance(body.get("rest_requests"), list):
            raise InvalidJson('The body must be a JSON object with an array "rest_requests".')
        if len(body["rest_requests"]) > MAX_REQUESTS:
            raise InvalidParameter(f"A batch can have at most {MAX_REQUESTS} requests.")
        batch, deadline, size, serviced = open_batch(request, caller_of(request)), time.monotonic() + MAX_BATCH_S, 0, []
        for item in body["rest_requests"]:
            response = _run(batch, item, size > MAX_BATCH_RESPONSE_BYTES or time.monotonic() > deadline)
            size += len(response.content)
            serviced.append(_response_item(item, response))
        result = {
            "batch_request_id": str(body.get("batch_request_id", "")),
            "serviced_requests": serviced,
            "unserviced_requests": [],
        }
        return HttpResponse(json.dumps(result), content_type="application/json")


def _run(batch: Batch, item: Any, is_over_limit: bool) -> HttpResponse:
    try:
        return run_request(batch, _native_item(item), False, is_over_limit, (PATH_PREFIX,), MAX_QUERY_BYTES)
    except (InvalidParameter, InvalidJson, TooLarge) as error:
        return error_response(error, PATH_PREFIX)


def _native_item(item: Any) -> dict[str, Any]:
    """The request as a request of the Table API's batch."""
    url = item.get("url") if isinstance(item, dict) else None
    path = unquote(url.partition("?")[0]) if isinstance(url, str) else ""
    if not INNER_PATH.fullmatch(path) or FILE_PATH.fullmatch(path):
        raise InvalidParameter("The url must be a path of a table, of statistics or of attachments.", field="url")
    headers = item.get("headers") or []
    if not isinstance(headers, list) or not all(isinstance(header, dict) for header in headers):
        raise InvalidParameter("headers must be a list of objects with name and value.", field="headers")
    native = {
        "method": item.get("method"),
        "url": url,
        "headers": {str(header.get("name")): str(header.get("value")) for header in headers},
    }
    return native | ({"body": _parsed_body(item["body"])} if item.get("body") else {})


def _parsed_body(text: Any) -> Any:
    try:
        return parse_json(base64.b64decode(str(text), validate=True))
    except ValueError:
        raise InvalidParameter("The body must be JSON, encoded as base64.", field="body") from None


def _response_item(item: Any, response: HttpResponse) -> Mapping[str, Any]:
    return {
        "id": str(item.get("id", "")) if isinstance(item, dict) else "",
        "status_code": response.status_code,
        "status_text": HTTPStatus(response.status_code).phrase,
        "headers": [{"name": name, "value": value} for name, value in response.headers.items()],
        "body": base64.b64encode(response.content).decode(),
    }

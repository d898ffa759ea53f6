"""The endpoint that runs many requests to the Table API, parsed and authenticated once."""

import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from django.core.handlers.wsgi import WSGIRequest
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request

from system.errors import BadRequest, ServiceError, TooLarge, UnsupportedMediaType
from system.http import django_request, program_requests, steps
from system.http.error_responses import error_response
from system.http.json_view import JsonView, set_parsed_request
from system.http.request_body import InvalidJson

from .responses import API_PATH

MAX_BATCH_REQUESTS = 100
MAX_BATCH_RESPONSE_BYTES = 32 * 1024 * 1024
PATHS = (API_PATH, "/rest/v1/stats/", "/rest/v1/changes/", "/rest/v1/bulk/", "/rest/v1/upsert/")
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
# Of a request in the batch; all others are those of the batch itself.
HEADERS = {"accept": "HTTP_ACCEPT", "if-match": "HTTP_IF_MATCH", "if-none-match": "HTTP_IF_NONE_MATCH"}
RETURNED_HEADERS = ("ETag", "Link", "Location", "Retry-After", "X-Ignored-Fields", "X-Total-Count")
JSON_TYPE = re.compile(r"application/json\s*(;.*)?", re.IGNORECASE)
KEYS = {"id", "method", "url", "headers", "body"}


class NotDone(ServiceError):
    status = 424
    code = "not_done"
    message = "Another request of the batch failed, so nothing was written."


class Entry(NamedTuple):
    id: Any
    response: HttpResponse


class BatchView(JsonView):
    http_method_names = ["post"]

    def post(self, request: Request) -> HttpResponse:
        items, is_atomic = _parse(request)
        with transaction.atomic() if is_atomic else nullcontext():
            entries = list(_run_all(request, items, is_atomic))
            failed = next((entry for entry in entries if entry.response.status_code >= 400), None)
            if is_atomic and failed is not None:
                transaction.set_rollback(True)
                ids = [item.get("id") if isinstance(item, dict) else None for item in items]
                position = entries.index(failed)
                entries = [Entry(id_, error_response(NotDone())) for id_ in ids]
                entries[position] = failed
        body = b",".join(map(_entry_json, entries))
        return HttpResponse(b'{"status":"OK","data":[' + body + b"]}", content_type="application/json")


def _parse(request: Request) -> tuple[list[Any], bool]:
    body = request.data if django_request(request).body else None
    if not isinstance(body, dict) or not isinstance(body.get("requests"), list):
        raise InvalidJson('The body must be a JSON object with "requests", an array.')
    is_atomic = body.get("atomic", False)
    if not isinstance(is_atomic, bool) or body.keys() - {"requests", "atomic"}:
        raise InvalidJson('The body can have "requests", an array, and "atomic", true or false.')
    if len(body["requests"]) > MAX_BATCH_REQUESTS:
        raise BadRequest(f"A batch can have at most {MAX_BATCH_REQUESTS} requests.", code="invalid_parameter")
    return body["requests"], is_atomic


def _run_all(request: Request, items: list[Any], is_atomic: bool) -> Iterator[Entry]:
    """Stops at the first failure if all belong together."""
    size = 0
    for item in items:
        response = _run(request, item, is_atomic, is_full=size > MAX_BATCH_RESPONSE_BYTES)
        size += len(response.content)
        yield Entry(item.get("id") if isinstance(item, dict) else None, response)
        if is_atomic and response.status_code >= 400:
            return


def _run(request: Request, item: Any, is_atomic: bool, is_full: bool) -> HttpResponse:
    try:
        if is_full:
            raise TooLarge("The responses of this batch are too large. Send this request in another one.")
        inner = _inner_request(request, item)
        steps.check_request_head(inner)
    except ServiceError as error:
        return error_response(error)
    response = program_requests.counted_response(inner, _call_in_savepoint if is_atomic else program_requests.call_view)
    steps.log_request(inner, response.status_code)
    return response


def _call_in_savepoint(inner: HttpRequest) -> HttpResponse:
    """After an error of the database, the transaction of the batch can still be ended."""
    with transaction.atomic():
        response = program_requests.call_view(inner)
        if response.status_code >= 400:
            transaction.set_rollback(True)
        return response


def _inner_request(request: Request, item: Any) -> WSGIRequest:
    if not isinstance(item, dict) or item.keys() - KEYS or item.get("method") not in METHODS:
        raise BadRequest("Expected an object with id, method, url, headers and body.", code="invalid_parameter")
    url, headers = item.get("url"), item.get("headers") or {}
    if not isinstance(url, str) or not url.isascii() or not url.startswith(PATHS):
        message = f"The url must be the path of a table, such as {API_PATH}task."
        raise BadRequest(message, code="invalid_parameter", field="url")
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise BadRequest("headers must be an object of texts.", code="invalid_parameter", field="headers")
    names = {name.lower(): value for name, value in headers.items()}
    if not JSON_TYPE.fullmatch(names.get("content-type", "application/json")):
        raise UnsupportedMediaType
    outer = django_request(request)
    parts = urlsplit(url)
    meta = {name: value for name, value in outer.META.items() if not name.startswith("HTTP_") or name == "HTTP_HOST"}
    meta |= {HEADERS[name]: value for name, value in names.items() if name in HEADERS}
    inner = WSGIRequest(
        meta
        | {
            "REQUEST_METHOD": item["method"],
            "PATH_INFO": unquote(parts.path, "latin-1"),
            "QUERY_STRING": parts.query,
            "CONTENT_LENGTH": "",
            "wsgi.input": BytesIO(),
        }
    )
    # Views ask whether there is a body, and take the parsed one.
    inner._body = b"parsed" if "body" in item else b""
    set_parsed_request(inner, request.user, item.get("body"))
    return inner


def _entry_json(entry: Entry) -> bytes:
    response = entry.response
    head = {
        "id": entry.id,
        "status": response.status_code,
        "headers": {name: response[name] for name in RETURNED_HEADERS if name in response},
    }
    return b'%s,"body":%s}' % (json.dumps(head, ensure_ascii=False).encode()[:-1], response.content or b"null")

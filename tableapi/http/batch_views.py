"""The endpoint that runs many requests to the Table API, parsed and authenticated once."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from django.core.exceptions import TooManyFieldsSent
from django.db import InternalError, transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from rest_framework.request import Request

from system.errors import BadRequest, QueryTooSlow, ServiceError, TooLarge, Unavailable, UnsupportedMediaType
from system.http import django_request, stateless_requests, steps
from system.http.error_responses import error_response
from system.http.json_view import JsonView, set_parsed_request
from system.http.request_body import InvalidJson
from system.monitoring import logs
from tableapi.read.context import Caller

from .responses import API_PATH
from .table_views import caller_of, json_body

MAX_BATCH_REQUESTS = 100
# After this time, and after so many bytes of responses, no further request is run.
MAX_BATCH_S = 60.0
MAX_BATCH_RESPONSE_BYTES = 32 * 1024 * 1024
PATHS = (API_PATH, "/rest/v1/stats/", "/rest/v1/changes/", "/rest/v1/bulk/", "/rest/v1/upsert/")
SHARED_META = ("HTTP_HOST", "SERVER_NAME", "SERVER_PORT", "REMOTE_ADDR")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
# Of a request in the batch; all others are those of the batch itself.
HEADERS = {"accept": "HTTP_ACCEPT", "if-match": "HTTP_IF_MATCH", "if-none-match": "HTTP_IF_NONE_MATCH"}
RETURNED_HEADERS = ("ETag", "Link", "Location", "Retry-After", "X-Ignored-Fields", "X-Total-Count")
STREAMED_TYPES = re.compile(r"csv|ndjson", re.IGNORECASE)
FILE_PATH = re.compile(rf"{API_PATH}[^/]+/[^/]+/attachments(?P<content>/[^/]+/content)?")
JSON_TYPE = re.compile(r"application/json\s*(;.*)?", re.IGNORECASE)
KEYS = {"id", "method", "url", "headers", "body"}


class FailedDependency(ServiceError):
    status = 424
    code = "not_done"
    message = "Another request of the batch failed, so nothing was written."


class InnerRequest(HttpRequest):
    """Has what a view reads. Django's own reads much more from a request of the server."""

    def __init__(self, batch: "Batch", method: str, path: str, meta: dict[str, Any]) -> None:
        self.batch = batch
        self.method, self.path, self.path_info, self.META = method, path, path, {**batch.meta, **meta}
        self.GET = QueryDict(meta["QUERY_STRING"])
        self.caller = batch.caller
        self.resolver_match = None

    def _get_scheme(self) -> str | None:
        return self.batch.request.scheme


class Batch(NamedTuple):
    """What its requests have in common."""

    request: HttpRequest
    user: Any
    caller: Caller
    meta: Mapping[str, Any]

    @classmethod
    def of(cls, request: Request) -> "Batch":
        outer = django_request(request)
        meta = {name: outer.META[name] for name in SHARED_META if name in outer.META}
        return cls(outer, request.user, caller_of(request), meta)


class Entry(NamedTuple):
    id: Any
    response: HttpResponse
    has_body: bool = True


class BatchView(JsonView):
    http_method_names = ["post"]

    def post(self, request: Request) -> HttpResponse:
        items, is_atomic = _parse(request)
        with logs.joined_lines():
            entries = _run_atomically(request, items) if is_atomic else list(_run_all(request, items, is_atomic=False))
        body = b",".join(map(_entry_json, entries))
        return HttpResponse(b'{"status":"OK","data":[' + body + b"]}", content_type="application/json")


def _run_atomically(request: Request, items: list[Any]) -> list[Entry]:
    """Roll everything back at the first failure; only the failed request then has a result of its own."""
    with transaction.atomic():
        entries = list(_run_all(request, items, is_atomic=True))
        failed = next((entry for entry in entries if entry.response.status_code >= 400), None)
        if failed is None:
            return entries
        transaction.set_rollback(True)
    if QueryTooSlow.code.encode() in failed.response.content:
        user: Any = request.user
        user.count_slow_statement()  # the count of the request was rolled back
    return [failed if number == len(entries) - 1 else Entry(_id_of(item), error_response(FailedDependency()))
            for number, item in enumerate(items)]  # fmt: skip


def _id_of(item: Any) -> Any:
    return item.get("id") if isinstance(item, dict) else None


def _parse(request: Request) -> tuple[list[Any], bool]:
    body = json_body(request)
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
    size, ends_at = 0, time.monotonic() + MAX_BATCH_S
    batch = Batch.of(request)
    for item in items:
        is_full = size > MAX_BATCH_RESPONSE_BYTES or time.monotonic() > ends_at
        response = _run(batch, item, is_atomic, is_full)
        size += len(response.content)
        yield Entry(_id_of(item), response, has_body=not isinstance(item, dict) or item.get("method") != "HEAD")
        if is_atomic and response.status_code >= 400:
            return


def _run(batch: Batch, item: Any, is_atomic: bool, is_full: bool) -> HttpResponse:
    try:
        if is_full:
            raise TooLarge(
                "The batch takes too long, or its responses are too large. Send this request in another one."
            )
        inner = _inner_request(batch, item)
        steps.check_request_head(inner)
    except ServiceError as error:
        return error_response(error)
    except TooManyFieldsSent:
        return error_response(TooLarge("The query string has too many parameters."))
    response = stateless_requests.response_with_metrics(
        inner, _call_in_savepoint if is_atomic else stateless_requests.call_view
    )
    steps.log_request(inner, response.status_code)
    return response


def _call_in_savepoint(inner: HttpRequest) -> HttpResponse:
    """After an error of the database, the transaction of the batch can still be ended."""
    try:
        with transaction.atomic():
            response = stateless_requests.call_view(inner)
            if response.status_code >= 400:
                transaction.set_rollback(True)
            return response
    except InternalError:
        # A table has changed. The request can be repeated only in a new transaction.
        raise Unavailable from None


def _inner_request(batch: Batch, item: Any) -> InnerRequest:
    if not isinstance(item, dict) or item.keys() - KEYS or str(item.get("method")) not in METHODS:
        raise BadRequest(
            f"Each request must be an object with method ({', '.join(METHODS)}) and url, and optionally id, headers "
            "and body.",
            code="invalid_parameter",
        )
    url, headers = item.get("url"), item.get("headers", {})
    if not isinstance(url, str) or not (url.isascii() and url.isprintable() and url.startswith(PATHS)):
        message = f"The url must be the path of a table, such as {API_PATH}task."
        raise BadRequest(message, code="invalid_parameter", field="url")
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise BadRequest("headers must be an object of texts.", code="invalid_parameter", field="headers")
    names = {name.lower(): value for name, value in headers.items()}
    if not JSON_TYPE.fullmatch(names.get("content-type", "application/json")):
        raise UnsupportedMediaType
    parts = urlsplit(url)
    own_meta = {HEADERS[name]: value for name, value in names.items() if name in HEADERS}
    own_meta["QUERY_STRING"] = parts.query
    inner = InnerRequest(batch, item["method"], unquote(parts.path), own_meta)
    file = FILE_PATH.fullmatch(inner.path)
    if (file and (file["content"] or inner.method == "POST")) or STREAMED_TYPES.search(names.get("accept", "")):
        raise BadRequest("A batch has no files.", code="invalid_parameter", field="url")
    # Views ask whether there is a body, and take the parsed one.
    inner._body = b"parsed" if "body" in item else b""
    set_parsed_request(inner, batch.user, item.get("body"))
    return inner


def _entry_json(entry: Entry) -> bytes:
    response = entry.response
    head = {
        "id": entry.id,
        "status": response.status_code,
        "headers": {name: response[name] for name in RETURNED_HEADERS if name in response},
    }
    return b'%s,"body":%s}' % (
        json.dumps(head, ensure_ascii=False).encode()[:-1],
        (entry.has_body and response.content) or b"null",
    )

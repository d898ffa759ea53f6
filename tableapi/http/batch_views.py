"""The batch endpoint, which runs many requests to the Table API but authenticates only once."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.core.exceptions import TooManyFieldsSent
from django.db import InternalError, transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from rest_framework.request import Request

from system.errors import InvalidParameter, QueryTooSlow, ServiceError, TooLarge, Unavailable, UnsupportedMediaType
from system.http import django_request, stateless_requests, steps
from system.http.error_responses import error_response
from system.http.json_view import JsonView, set_parsed_request
from system.strict_json import InvalidJson
from tableapi.query.parameters import IMPORT, parse_switch
from tableapi.read.context import Caller, ReadRun

from .responses import API_PATH
from .table_views import caller_of, json_body

MAX_BATCH_REQUESTS = 100
# No further request is run after this time or this number of response bytes.
MAX_BATCH_S = 60.0
MAX_BATCH_RESPONSE_BYTES = 32 * 1024 * 1024
PATH_PREFIXES = (API_PATH, "/rest/v1/stats/", "/rest/v1/changes/", "/rest/v1/bulk/", "/rest/v1/upsert/")
SHARED_META = ("HTTP_HOST", "SERVER_NAME", "SERVER_PORT", "REMOTE_ADDR")
ALLOWED_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
# The headers that a request in the batch can set; all others come from the batch request itself.
META_NAMES = {"accept": "HTTP_ACCEPT", "if-match": "HTTP_IF_MATCH", "if-none-match": "HTTP_IF_NONE_MATCH"}
RETURNED_HEADERS = ("ETag", "Link", "Location", "Retry-After", "X-Ignored-Fields", "X-Total-Count")
STREAMED_TYPES = re.compile(r"csv|ndjson|spreadsheetml", re.IGNORECASE)
ATTACHMENT_PATH = re.compile(rf"{API_PATH}[^/]+/[^/]+/attachments(?P<content>/[^/]+/content)?/?")
JSON_TYPE = re.compile(r"application/json\s*(;.*)?", re.IGNORECASE)
RECORD_URL = re.compile(rf"(?P<table>{API_PATH}[^/?]+)/[0-9a-z]{{1,32}}(?P<query>\?.*)?")
# The maximum number of records that consecutive requests fetch with one statement.
MAX_READ_RUN = 10
REQUEST_KEYS = {"id", "method", "url", "headers", "body"}


class FailedDependency(ServiceError):
    status = 424
    code = "not_done"
    message = "Another request in the batch failed, so nothing was written."


class InnerRequest(HttpRequest):
    """A request in the batch, with only what views read. Django's own request classes do more work."""

    def __init__(self, batch: "Batch", method: str, path: str, meta: dict[str, Any]) -> None:
        self.batch = batch
        self.method, self.path, self.path_info, self.META = method, path, path, {**batch.meta, **meta}
        self.GET = QueryDict(meta["QUERY_STRING"])
        self.caller = batch.caller
        self.resolver_match = None

    def _get_scheme(self) -> str | None:
        return self.batch.request.scheme


class Batch(NamedTuple):
    """What the requests of a batch share."""

    request: HttpRequest
    user: Any
    caller: Caller
    meta: Mapping[str, Any]


class BatchView(JsonView):
    http_method_names = ["post"]

    def post(self, request: Request) -> HttpResponse:
        items, is_atomic = _parse_batch(request)
        responses = _run_atomic(request, items) if is_atomic else list(_run_each(request, items, is_atomic=False))
        body = b",".join(map(_response_json, items, responses))
        return HttpResponse(b'{"status":"OK","data":[' + body + b"]}", content_type="application/json")


def _run_atomic(request: Request, items: list[Any]) -> list[HttpResponse]:
    """Roll everything back at the first failure; only the failed request then has its own result."""
    with transaction.atomic():
        responses = list(_run_each(request, items, is_atomic=True))
        failure = next((response for response in responses if response.status_code >= 400), None)
        if failure is None:
            return responses
        transaction.set_rollback(True)
    if QueryTooSlow.code.encode() in failure.content:
        user: Any = request.user
        user.count_slow_statement()  # the count by the failed request was rolled back
    failed_number = len(responses) - 1
    return [failure if number == failed_number else error_response(FailedDependency()) for number in range(len(items))]


def _parse_batch(request: Request) -> tuple[list[Any], bool]:
    body = json_body(request)
    if not isinstance(body, dict) or not isinstance(body.get("requests"), list):
        raise InvalidJson('The body must be a JSON object with an array "requests".')
    is_atomic = body.get("atomic", False)
    if not isinstance(is_atomic, bool) or body.keys() - {"requests", "atomic"}:
        raise InvalidJson('The body can contain only the array "requests" and the boolean "atomic".')
    if len(body["requests"]) > MAX_BATCH_REQUESTS:
        raise InvalidParameter(f"A batch can have at most {MAX_BATCH_REQUESTS} requests.")
    return body["requests"], is_atomic


def open_batch(request: Request, caller: Caller) -> Batch:
    http_request = django_request(request)
    meta = {name: http_request.META[name] for name in SHARED_META if name in http_request.META}
    return Batch(http_request, request.user, caller, meta)


def _run_each(request: Request, items: list[Any], is_atomic: bool) -> Iterator[HttpResponse]:
    """Run the requests in order. Stops at the first failure if the batch is atomic."""
    size, deadline = 0, time.monotonic() + MAX_BATCH_S
    batch = open_batch(request, caller_of(request))
    for run, run_items in _runs(items):
        batch = batch._replace(caller=replace(batch.caller, run=run))
        for item in run_items:
            is_over_limit = size > MAX_BATCH_RESPONSE_BYTES or time.monotonic() > deadline
            response = run_request(batch, item, is_atomic, is_over_limit)
            size += len(response.content)
            yield response
            if is_atomic and response.status_code >= 400:
                return


def _runs(items: list[Any]) -> Iterator[tuple[ReadRun | None, list[Any]]]:
    """Divide the requests into runs. A run that reads records of one table fetches them together."""
    for key, group in groupby(items, _run_key):
        group_items = list(group)
        for start in range(0, len(group_items), MAX_READ_RUN):
            run_items = group_items[start : start + MAX_READ_RUN]
            ids = [item["url"].partition("?")[0].rpartition("/")[2] for item in run_items] if key else []
            yield ReadRun(ids) if len(ids) > 1 else None, run_items


def _run_key(item: Any) -> tuple[str, str | None] | None:
    """Return the URL of the table and the query string, or None if the request does not read a record."""
    is_read = isinstance(item, dict) and item.get("method") == "GET"
    match = RECORD_URL.fullmatch(str(item.get("url"))) if is_read else None
    return (match["table"], match["query"]) if match else None


def run_request(
    batch: Batch,
    item: Any,
    is_atomic: bool,
    is_over_limit: bool,
    prefixes: tuple[str, ...] = PATH_PREFIXES,
    max_query: int = settings.MAX_QUERY_STRING,
) -> HttpResponse:
    try:
        if is_over_limit:
            raise TooLarge(
                "The batch took too long, or its responses are too large. Send this request in another batch."
            )
        inner = _inner_request(batch, item, prefixes)
        steps.check_request_head(inner, max_query)
    except ServiceError as error:
        return error_response(error, prefixes[0])
    except TooManyFieldsSent:
        return error_response(TooLarge("The query string has too many parameters."), prefixes[0])
    response = stateless_requests.response_with_metrics(
        inner, _call_in_savepoint if is_atomic else stateless_requests.call_view
    )
    steps.log_request(inner, response.status_code)
    return response


def _call_in_savepoint(inner: HttpRequest) -> HttpResponse:
    """Use a savepoint, because a database error would otherwise abort the transaction of the batch."""
    try:
        with transaction.atomic():
            response = stateless_requests.call_view(inner)
            if response.status_code >= 400:
                transaction.set_rollback(True)
            return response
    except InternalError:
        # A table was changed concurrently. The request can be retried only in a new transaction.
        raise Unavailable from None


def _inner_request(batch: Batch, item: Any, prefixes: tuple[str, ...]) -> InnerRequest:
    if not isinstance(item, dict) or item.keys() - REQUEST_KEYS or str(item.get("method")) not in ALLOWED_METHODS:
        raise InvalidParameter(
            f"Each request must be an object with method ({', '.join(ALLOWED_METHODS)}) and url, and optionally id, "
            "headers and body."
        )
    url, headers = item.get("url"), item.get("headers", {})
    if not isinstance(url, str) or not (url.isascii() and url.isprintable() and url.startswith(prefixes)):
        message = f"The url must be a path of printable ASCII characters that begins with one of {', '.join(prefixes)}."
        raise InvalidParameter(message, field="url")
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise InvalidParameter("headers must be an object of strings.", field="headers")
    names = {name.lower(): value for name, value in headers.items()}
    if not JSON_TYPE.fullmatch(names.get("content-type", "application/json")):
        raise UnsupportedMediaType
    parts = urlsplit(url)
    meta = {META_NAMES[name]: value for name, value in names.items() if name in META_NAMES}
    meta["QUERY_STRING"] = parts.query
    inner = InnerRequest(batch, item["method"], unquote(parts.path), meta)
    file = ATTACHMENT_PATH.fullmatch(inner.path)
    if (file and (file["content"] or inner.method == "POST")) or STREAMED_TYPES.search(names.get("accept", "")):
        raise InvalidParameter("A batch cannot upload or download files.", field="url")
    if parse_switch(inner.GET, IMPORT):
        raise InvalidParameter("A batch cannot import records.", field="url")
    # Views check whether there is a body, but read the parsed one.
    inner._body = b"parsed" if "body" in item else b""
    set_parsed_request(inner, batch.user, item.get("body"))
    return inner


def _response_json(item: Any, response: HttpResponse) -> bytes:
    method, item_id = (item.get("method"), item.get("id")) if isinstance(item, dict) else (None, None)
    head = {
        "id": item_id,
        "status": response.status_code,
        "headers": {name: response[name] for name in RETURNED_HEADERS if name in response},
    }
    has_body = method != "HEAD" or response.status_code == FailedDependency.status
    body = (has_body and response.content) or b"null"
    return b'%s,"body":%s}' % (json.dumps(head, ensure_ascii=False).encode()[:-1], body)

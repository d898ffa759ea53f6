"""The REST endpoints of the Table API."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from django.http import HttpRequest as DjangoRequest
from django.http import HttpResponse, HttpResponseBase, JsonResponse
from rest_framework.request import Request as HttpRequest
from rest_framework.viewsets import ViewSet

from system.http import etags
from system.http.error_responses import own_url
from system.http.request_body import InvalidJson
from tableapi.access.caller_view import caller_view
from tableapi.catalogue.definitions import Catalogue
from tableapi.database import statement_runner
from tableapi.query import parameters
from tableapi.query.parameters import OutputOptions
from tableapi.read import pipeline
from tableapi.read.pipeline import ListAnswer, ReadContext, RecordAnswer
from tableapi.write import operations
from tableapi.write.change_request import WriteRequest, WriteResult

from . import idempotency

BASE = "/rest/v1/table/"


class TableViewSet(ViewSet):
    """Records of any table, behind its access rules."""

    http_method_names = ["get", "post", "put", "patch", "delete", "head"]

    def dispatch(self, request: DjangoRequest, *positional: Any, **named: Any) -> HttpResponseBase:
        answer = super().dispatch(request, *positional, **named)
        # The view and its request refer to one another: an answer of megabytes would stay with them until Python
        # collects what is in circles.
        del self.response
        return answer

    def list(self, request: HttpRequest, table: str) -> HttpResponse:
        asked = parameters.parse_list(request.query_params)

        def work(catalogue: Catalogue) -> ListAnswer:
            opened = self._request(request, catalogue)
            return pipeline.read_records(opened, opened.sight.open_table(table), asked)

        return list_response(request, statement_runner.with_current_catalogue(work))

    def retrieve(self, request: HttpRequest, table: str, sys_id: str) -> HttpResponse:
        shown = parameters.parse_shown(request.query_params)

        def work(catalogue: Catalogue) -> RecordAnswer:
            opened = self._request(request, catalogue)
            return pipeline.read_record(opened, opened.sight.open_table(table), sys_id, shown)

        response = record_response(request, statement_runner.with_current_catalogue(work))
        note_ignored_parameters(response, request, parameters.OF_RECORDS)
        return response

    def create(self, request: HttpRequest, table: str) -> HttpResponse:
        change = self._change(request)

        def work(catalogue: Catalogue) -> HttpResponse:
            written = operations.create(change(catalogue, table))
            response = written_response(request, written, status=201)
            response["Location"] = own_url(request._request, f"{BASE}{table}/{written.sys_id}")
            return response

        return self._once(request, work)

    def update(self, request: HttpRequest, table: str, sys_id: str) -> HttpResponse:
        return self._changed(request, table, sys_id, replaces=True)

    def partial_update(self, request: HttpRequest, table: str, sys_id: str) -> HttpResponse:
        return self._changed(request, table, sys_id, replaces=False)

    def destroy(self, request: HttpRequest, table: str, sys_id: str) -> HttpResponse:
        def work(catalogue: Catalogue) -> HttpResponse:
            opened = self._request(request, catalogue)
            seen = opened.sight.open_table(table)
            operations.delete(WriteRequest(opened, seen, {}, OutputOptions(), is_current=current_tag(request)), sys_id)
            description = f"The record {sys_id} of {table} was deleted."
            response = JsonResponse({"status": "OK", "data": {"description": description}})
            note_ignored_parameters(response, request, frozenset())
            return response

        return self._once(request, work)

    def _changed(self, request: HttpRequest, table: str, sys_id: str, *, replaces: bool) -> HttpResponse:
        change = self._change(request)

        def work(catalogue: Catalogue) -> HttpResponse:
            written = operations.change_record(change(catalogue, table), sys_id, replaces=replaces)
            return written_response(request, written)

        return self._once(request, work)

    def _once(self, request: HttpRequest, work: Callable[[Catalogue], HttpResponse]) -> HttpResponse:
        return idempotency.answer_once(
            request, str(request.user.pk), lambda: statement_runner.with_current_catalogue(work, writes=True)
        )

    def _change(self, request: HttpRequest) -> Callable[[Catalogue, str], WriteRequest]:
        """What a write is asked to do; all that can be wrong with the request itself is said before any database."""
        body = one_object(request)
        shown = parameters.parse_shown(request.query_params)
        by_display = parameters.parse_input_display(request.query_params)

        def change(catalogue: Catalogue, table: str) -> WriteRequest:
            opened = self._request(request, catalogue)
            seen = opened.sight.open_table(table)
            return WriteRequest(opened, seen, body, shown, by_display, current_tag(request))

        return change

    def _request(self, request: HttpRequest, catalogue: Catalogue) -> ReadContext:
        user: Any = request.user
        seen = caller_view(catalogue, frozenset(user.role_names))
        return ReadContext(user.pk, seen, pipeline.now(), link_base(request))


def link_base(request: HttpRequest) -> str:
    """Where links begin, as it stands inside JSON."""
    return json.dumps(own_url(request._request, BASE))[1:-1]


def one_object(request: HttpRequest) -> dict[str, Any]:
    """ "Exactly one JSON object": DRF alone would take an empty body for one."""
    if not request._request.body:
        raise InvalidJson("The body is one JSON object of column names and values.")
    body = request.data
    if not isinstance(body, dict):
        raise InvalidJson("The body is one JSON object of column names and values; several records are not supported.")
    return body


def current_tag(request: HttpRequest) -> Callable[[int | None], bool] | None:
    """Whether If-Match names this version of the record, a hidden one never; None without the header."""
    tags = etags.to_match(request)
    if tags is None:
        return None
    return lambda version: any(
        tag == etags.ANY or (version is not None and tag.startswith(f'"{version}-')) for tag in tags
    )


def written_response(request: HttpRequest, written: WriteResult, status: int = 200) -> HttpResponse:
    response = envelope([b"{}"], status) if written.answer is None else record_response(request, written.answer, status)
    note_ignored_parameters(response, request, parameters.OF_WRITES)
    return response


def envelope(bodies: Sequence[bytes], status: int = 200) -> HttpResponse:
    body = b"".join((b'{"status":"OK","data":[', b",".join(bodies), b"]}"))
    return HttpResponse(body, status=status, content_type="application/json")


def list_response(request: HttpRequest, found: ListAnswer) -> HttpResponse:
    response = envelope(found.bodies)
    note_ignored(response, found.ignored)
    note_ignored_parameters(response, request, parameters.OF_LISTS)
    if found.total is not None:
        response["X-Total-Count"] = str(found.total)
    if found.doubtful:
        response["X-Doubtful-Conditions"] = ",".join(quote(each, safe="=!") for each in found.doubtful)
    if found.next_page:
        kept = [(name, value) for name, value in request.query_params.items()
                if name not in ("sysparm_page", "sysparm_cursor")]  # fmt: skip
        query = urlencode([*kept, *found.next_page.items()])
        response["Link"] = f'<{own_url(request._request, request.path)}?{query}>; rel="next"'
    return response


def record_response(request: HttpRequest, found: RecordAnswer, status: int = 200) -> HttpResponse:
    """One record with its ETag; 304 where the caller has it already."""
    response = envelope([found.body], status)
    tag = etag(found)
    if (
        tag is not None
        and status == 200
        and request.method in ("GET", "HEAD")
        and not {tag, etags.ANY}.isdisjoint(etags.in_header(request, "If-None-Match"))
    ):
        response = HttpResponse(status=304)
    if tag is not None:
        response["ETag"] = tag
    note_ignored(response, found.ignored)
    return response


def note_ignored(response: HttpResponse, names: Sequence[str]) -> None:
    shown = parameters.ignored_header(names)
    if shown:
        response["X-Ignored-Fields"] = shown


def note_ignored_parameters(response: HttpResponse, request: HttpRequest, listened_to: frozenset[str]) -> None:
    given = request.query_params.keys()
    if not given <= listened_to and (shown := parameters.ignored_parameters(given, listened_to)):
        response["X-Ignored-Parameters"] = shown


def etag(found: RecordAnswer) -> str | None:
    """None where the version is hidden: it would change with columns that the caller may not see."""
    if found.version is None:
        return None
    return f'"{found.version}-{hashlib.sha256(found.body).hexdigest()[:16]}"'

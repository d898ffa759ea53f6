"""Turns results into HTTP responses: the JSON envelope, files, ETags, links to the next page and advisory headers."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.http import content_disposition_header
from rest_framework.request import Request

from system.http import django_request, etags
from system.http.error_responses import own_url
from system.http.stored_file import StoredFile, new_file
from tableapi.access.caller_view import record_not_found
from tableapi.attached.attachments import content_of
from tableapi.attached.media_types import IMAGE_TYPES
from tableapi.query.parameters import MAX_IGNORED_NAMES
from tableapi.read.entry_pages import CURSOR_PARAMETER, EntryPage
from tableapi.read.list_page import ListResult
from tableapi.read.pipeline import RecordResult
from tableapi.write.write_request import WriteResult

if TYPE_CHECKING:
    from tableapi.models import Attachment

API_PATH = "/rest/v1/table/"
# For longer parts, hashlib releases the interpreter lock, and another thread takes it.
HASHED_PART = 2047
POSITION_PARAMETERS = frozenset({"sysparm_page", "sysparm_cursor", "since"})
# A file must not run scripts, even if a browser displays it.
CONTENT_POLICY = "sandbox; default-src 'none'"


def list_response(request: Request, result: ListResult) -> HttpResponse:
    response = data_response(result.blocks)
    set_ignored_fields(response, result.ignored)
    if result.total is not None:
        response["X-Total-Count"] = str(result.total)
    set_next_page(request, response, result.next_page)
    return response


def page_response(request: Request, page: EntryPage) -> HttpResponse:
    response = data_response(list(map(entry_json, page.entries)))
    set_next_page(request, response, {CURSOR_PARAMETER: page.cursor} if page.cursor else {})
    return response


def entry_response(entry: Mapping[str, Any], status: int = 200) -> HttpResponse:
    return data_response([entry_json(entry)], status)


def entry_json(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=False).encode()


def set_next_page(request: Request, response: HttpResponse, next_page: Mapping[str, str]) -> None:
    """Add a link to the next page, whose URL differs from this one in these parameters."""
    if next_page:
        unchanged_parameters = [item for item in request.query_params.items() if item[0] not in POSITION_PARAMETERS]
        query = urlencode([*unchanged_parameters, *next_page.items()])
        response["Link"] = f'<{own_url(django_request(request), request.path)}?{query}>; rel="next"'


def record_response(request: Request, result: RecordResult, status: int = 200) -> HttpResponse:
    """One record with its ETag, or 304 if the client already has it."""
    tag, is_read = _etag(result), request.method in ("GET", "HEAD") and status == 200
    if tag and is_read and not {tag, etags.ANY_TAG}.isdisjoint(etags.read_tags(request, etags.IF_NONE_MATCH)):
        response = HttpResponse(status=304)
    else:
        response = data_response([result.body], status)
    if tag is not None:
        response["ETag"] = tag
    set_ignored_fields(response, result.ignored)
    return response


def created_response(request: Request, table_name: str, result: WriteResult) -> HttpResponse:
    response = written_response(request, result, status=201)
    response["Location"] = own_url(django_request(request), f"{API_PATH}{table_name}/{result.sys_id}")
    return response


def written_response(request: Request, result: WriteResult, status: int = 200) -> HttpResponse:
    return data_response([b"{}"], status) if result.record is None else record_response(request, result.record, status)


def data_response(blocks: Sequence[bytes], status: int = 200, cursor: str | None = None) -> HttpResponse:
    """Wrap the JSON of the records, copied only once because a list can be several megabytes."""
    parts = [part for block in blocks for part in (b",", block)]
    end = b"]}" if cursor is None else f'],"cursor":"{cursor}"}}'.encode()
    body = b"".join((b'{"status":"OK","data":[', *parts[1:], end))
    return HttpResponse(body, status=status, content_type="application/json")


def content_response(request: HttpRequest, attachment: "Attachment") -> StoredFile:
    """Only images are displayed; the browser saves all other files."""
    has_body = request.method == "GET"
    with new_file() as file:
        for piece in content_of(attachment) if has_body else ():
            file.write(piece)
        if has_body and file.tell() != attachment.size:
            raise record_not_found()  # deleted concurrently
    response = StoredFile(file.name, attachment.content_type)
    response["Content-Length"] = str(attachment.size)
    is_image = attachment.content_type in IMAGE_TYPES
    response["Content-Disposition"] = content_disposition_header(not is_image, attachment.file_name) or ""
    response["Content-Security-Policy"] = CONTENT_POLICY
    response["ETag"] = f'"{attachment.sha256}"'
    return response


def set_ignored_fields(response: HttpResponse, names: Sequence[str]) -> None:
    # Only possible column paths are included, so that the header has no line breaks.
    paths = [name for name in names if re.fullmatch(r"[a-z0-9_.]{1,255}", name)]
    if paths:
        response["X-Ignored-Fields"] = ",".join(paths[:MAX_IGNORED_NAMES])


def _etag(result: RecordResult) -> str | None:
    """None if the caller cannot read the version, which also changes with columns that they cannot see."""
    if result.version is None:
        return None
    digest = hashlib.sha256()
    for start in range(0, len(result.body), HASHED_PART):
        digest.update(result.body[start : start + HASHED_PART])
    return f'"{result.version}-{digest.hexdigest()[:16]}"'

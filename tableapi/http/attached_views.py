"""The endpoints for what is attached to a record: comments, attachments, followers."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.http import content_disposition_header
from rest_framework.request import Request

from system.errors import BadRequest, TooLarge
from system.http import django_request, uploads
from system.http.json_view import JsonView
from system.http.stored_file import StoredFile, new_file
from system.http.uploads import Upload
from tableapi.attached import attachments, comments, followers
from tableapi.attached.media_types import IMAGE_TYPES
from tableapi.attached.pages import CURSOR_PARAMETER, Page
from tableapi.query.parameters import parse_text

from .responses import enveloped, set_next_page
from .table_views import caller_of

FILE_NAME_PARAMETER = "file_name"


class CommentsView(JsonView):
    http_method_names = ["get", "head", "post"]

    def get(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        return page_response(request, comments.read_comments(caller_of(request), table, sys_id, request.query_params))

    def post(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        return entry_response(comments.create_comment(caller_of(request), table, sys_id, json_body(request)), 201)


class CommentView(JsonView):
    http_method_names = ["patch", "delete"]

    def patch(self, request: Request, table: str, sys_id: str, entry: str) -> HttpResponse:
        body = json_body(request)
        return entry_response(comments.change_comment(caller_of(request), table, sys_id, entry, body))

    def delete(self, request: Request, table: str, sys_id: str, entry: str) -> HttpResponse:
        comments.delete_comment(caller_of(request), table, sys_id, entry)
        return entry_response({"sys_id": entry})


class AttachmentsView(JsonView):
    http_method_names = ["get", "head", "post"]
    body_limit = settings.ATTACHMENT_LIMIT + uploads.FORM_BYTES

    def get(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        page = attachments.read_attachments(caller_of(request), table, sys_id, request.query_params)
        return page_response(request, page)

    def post(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        plain = django_request(request)
        is_form = plain.content_type == "multipart/form-data"
        receive = uploads.receive_upload(plain, settings.ATTACHMENT_LIMIT) if is_form else _receive_file(request)
        with receive as upload:
            return entry_response(attachments.create_attachment(caller_of(request), table, sys_id, upload), 201)


class AttachmentView(JsonView):
    http_method_names = ["delete"]

    def delete(self, request: Request, table: str, sys_id: str, entry: str) -> HttpResponse:
        attachments.delete_attachment(caller_of(request), table, sys_id, entry)
        return entry_response({"sys_id": entry})


class AttachmentContentView(JsonView):
    http_method_names = ["get", "head"]

    def get(self, request: Request, table: str, sys_id: str, entry: str) -> HttpResponseBase:
        attachment = attachments.find_attachment(caller_of(request), table, sys_id, entry)
        with new_file() as file:
            for piece in attachments.content_of(attachment) if request.method == "GET" else ():
                file.write(piece)
        response = StoredFile(file.name, attachment.content_type)
        response["Content-Length"] = str(attachment.size)
        is_image = attachment.content_type in IMAGE_TYPES
        response["Content-Disposition"] = content_disposition_header(not is_image, attachment.file_name) or ""
        response["Content-Security-Policy"] = "sandbox; default-src 'none'"
        response["ETag"] = f'"{attachment.sha256}"'
        return response


class FollowerView(JsonView):
    http_method_names = ["get", "head", "put", "delete"]

    def get(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        return entry_response({"following": followers.is_following(caller_of(request), table, sys_id)})

    def put(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        followers.follow(caller_of(request), table, sys_id)
        return entry_response({"following": True})

    def delete(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        followers.unfollow(caller_of(request), table, sys_id)
        return entry_response({"following": False})


def json_body(request: Request) -> Any:
    return request.data if django_request(request).body else None


def page_response(request: Request, page: Page) -> HttpResponse:
    response = enveloped([_json(entry) for entry in page.entries])
    set_next_page(request, response, {CURSOR_PARAMETER: page.cursor} if page.cursor else {})
    return response


def entry_response(entry: dict[str, Any], status: int = 200) -> HttpResponse:
    return enveloped([_json(entry)], status)


def _json(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=False).encode()


@contextmanager
def _receive_file(request: Request) -> Iterator[Upload]:
    """A file that is the whole body; its name is a parameter."""
    plain: HttpRequest = django_request(request)
    file_name = parse_text(request.query_params, FILE_NAME_PARAMETER)
    with tempfile.SpooledTemporaryFile(max_size=uploads.MAX_IN_MEMORY_BYTES) as file:
        size, body = 0, uploads.CompleteBody(plain)
        while part := body.read(uploads.PART_BYTES):
            size += len(part)
            if size > settings.ATTACHMENT_LIMIT:
                raise TooLarge(f"A file must not exceed {settings.ATTACHMENT_LIMIT:,} bytes.", field="file")
            with uploads.disk_errors_as_unavailable():
                file.write(part)
        if not size:
            raise BadRequest("The file is empty.", code="empty_file", field="file")
        yield Upload(file, size, file_name, plain.content_type or "", {})

"""The endpoints for what is attached to a record: comments, attachments, followers."""

from django.conf import settings
from django.http import HttpResponse, HttpResponseBase
from django.utils.http import content_disposition_header
from rest_framework.request import Request

from system.http import django_request, uploads
from system.http.json_view import JsonView
from system.http.stored_file import StoredFile, new_file
from tableapi.access.caller_view import record_not_found
from tableapi.attached import attachments, comments, followers
from tableapi.attached.media_types import IMAGE_TYPES
from tableapi.query.parameters import parse_text

from .responses import entry_response, page_response
from .table_views import caller_of, json_body

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
        limit = settings.ATTACHMENT_LIMIT
        attachments.check_attachable(caller_of(request), table, sys_id)  # before the file is received
        if plain.content_type == "multipart/form-data":
            receive = uploads.receive_upload(plain, limit)
        else:
            receive = uploads.receive_file(plain, parse_text(request.query_params, FILE_NAME_PARAMETER), limit)
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
            if request.method == "GET" and file.tell() != attachment.size:
                raise record_not_found()  # deleted at the same time
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

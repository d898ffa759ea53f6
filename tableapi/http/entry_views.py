"""The endpoints for history, the change feed, statistics, attached rows, notifications and restoring records."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from django.conf import settings
from django.http import HttpResponse, HttpResponseBase
from rest_framework.request import Request

from system.http import django_request, uploads
from system.http.json_view import JsonView
from tableapi.attached import attachments, comments, followers
from tableapi.attached.restore import restore
from tableapi.changes.feed import CURSOR_PARAMETER, read_feed
from tableapi.changes.history import read_history
from tableapi.notifications import listing
from tableapi.query.parameters import parse_text
from tableapi.read.entry_pages import EntryPage
from tableapi.statistics.pipeline import read_statistics

from . import responses
from .table_views import caller_of, json_body

FILE_NAME_PARAMETER = "file_name"

# A view method. It passes the caller and then the parameters of the path, in order.
Handler = Callable[..., HttpResponse]


def page_handler(read: Callable[..., EntryPage]) -> Handler:
    def respond(view: JsonView, request: Request, **path: str) -> HttpResponse:
        return responses.page_response(request, read(caller_of(request), *path.values(), request.query_params))

    return respond


def entry_handler(action: Callable[..., Mapping[str, Any]], status: int = 200, *, takes_body: bool = False) -> Handler:
    def respond(view: JsonView, request: Request, **path: str) -> HttpResponse:
        body = [json_body(request)] if takes_body else []
        return responses.entry_response(action(caller_of(request), *path.values(), *body), status)

    return respond


def receive_file(request: Request, limit: int, **options: Any) -> AbstractContextManager[uploads.Upload]:
    """The file of a form, or the body."""
    http_request = django_request(request)
    if http_request.content_type == "multipart/form-data":
        return uploads.receive_upload(http_request, limit, **options)
    return uploads.receive_file(http_request, parse_text(request.query_params, FILE_NAME_PARAMETER), limit)


class EntryView(JsonView):
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]


class HistoryView(EntryView):
    get = page_handler(read_history)


class ChangeFeedView(EntryView):
    def get(self, request: Request, table: str) -> HttpResponse:
        page = read_feed(caller_of(request), table, request.query_params)
        response = responses.data_response(page.blocks, cursor=page.cursor)
        responses.set_ignored_fields(response, page.ignored)
        responses.set_next_page(request, response, {CURSOR_PARAMETER: page.cursor} if page.has_more else {})
        return response


class StatisticsView(EntryView):
    def get(self, request: Request, table: str) -> HttpResponse:
        groups = read_statistics(caller_of(request), table, request.query_params)
        return responses.data_response([] if groups is None else [groups])


class CommentsView(EntryView):
    get = page_handler(comments.read_comments)
    post = entry_handler(comments.create_comment, 201, takes_body=True)


class CommentView(EntryView):
    patch = entry_handler(comments.change_comment, takes_body=True)
    delete = entry_handler(comments.delete_comment)


class AttachmentsView(EntryView):
    body_limit = settings.ATTACHMENT_LIMIT + uploads.FORM_OVERHEAD_BYTES
    get = page_handler(attachments.read_attachments)

    def post(self, request: Request, table: str, sys_id: str) -> HttpResponse:
        attachments.check_can_attach(caller_of(request), table, sys_id)  # before the file is received
        with receive_file(request, settings.ATTACHMENT_LIMIT) as upload:
            row = attachments.create_attachment(caller_of(request), table, sys_id, upload)
            return responses.entry_response(attachments.attachment_entry(row), 201)


class AttachmentView(EntryView):
    delete = entry_handler(attachments.delete_attachment)


class AttachmentContentView(EntryView):
    def get(self, request: Request, table: str, sys_id: str, entry: str) -> HttpResponseBase:
        attachment = attachments.find_attachment(caller_of(request), table, sys_id, entry)
        return responses.content_response(django_request(request), attachment)


class FollowerView(EntryView):
    get = entry_handler(followers.read_following)
    put = entry_handler(followers.follow)
    delete = entry_handler(followers.unfollow)


class NotificationsView(EntryView):
    get = page_handler(listing.read_notifications)
    patch = entry_handler(listing.mark_all, takes_body=True)


class NotificationView(EntryView):
    patch = entry_handler(listing.mark, takes_body=True)


class RestoreView(EntryView):
    post = entry_handler(restore, 201)

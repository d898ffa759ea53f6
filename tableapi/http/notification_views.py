"""The endpoints of the caller's notifications."""

from django.http import HttpResponse
from rest_framework.request import Request

from system.http.json_view import JsonView
from tableapi.notifications import listing

from .responses import entry_response, page_response
from .table_views import caller_of, json_body


class NotificationsView(JsonView):
    http_method_names = ["get", "head", "patch"]

    def get(self, request: Request) -> HttpResponse:
        return page_response(request, listing.read_notifications(caller_of(request), request.query_params))

    def patch(self, request: Request) -> HttpResponse:
        body = json_body(request)
        listing.mark_all(caller_of(request), body)
        return entry_response(body)


class NotificationView(JsonView):
    http_method_names = ["patch"]

    def patch(self, request: Request, entry: str) -> HttpResponse:
        return entry_response(listing.mark(caller_of(request), entry, json_body(request)))

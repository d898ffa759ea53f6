"""The endpoint of MCP. Each request is complete in itself: there are no sessions and no streams."""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from accounts.authentication.schemes import BearerAuthentication
from system.errors import AccessDenied
from system.http import django_request
from system.http.error_responses import own_origin
from system.http.json_view import JsonView

MAX_REQUEST_BYTES = 1024 * 1024


@extend_schema(exclude=True)  # the protocol describes it
class McpView(JsonView):
    http_method_names = ["post"]
    authentication_classes = (BearerAuthentication,)
    reads_by_post = True  # each tool that writes checks the key
    body_limit = MAX_REQUEST_BYTES

    def post(self, request: Request) -> HttpResponse:
        http_request = django_request(request)
        refuse_other_origin(http_request)
        from agents.http import exchange  # noqa: PLC0415  (the SDK's types take 17 MB)

        user: Any = request.user
        body = exchange.answer(http_request, user, request.data)
        return HttpResponse(status=202) if body is None else JsonResponse(body)


def refuse_other_origin(request: HttpRequest) -> None:
    """ "Servers MUST validate the Origin header": a page of another site must not call this one in a browser."""
    if request.headers.get("Origin", own_origin(request)) != own_origin(request):
        raise AccessDenied("The Origin header must be absent or name this service.", code="other_origin")

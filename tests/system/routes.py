"""The URLs of the product, and views that fail deliberately."""

import errno
from typing import Any

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.urls import path
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config import urls
from system import errors


class EchoView(APIView):
    authentication_classes = ()
    permission_classes = (AllowAny,)

    def post(self, request: Request) -> Response:
        return Response({"got": request.data})


class RaisingView(APIView):
    authentication_classes = ()
    permission_classes = (AllowAny,)

    def get(self, request: Request, name: str) -> Response:
        raise ERRORS_BY_NAME[name]


def failing_page(request: HttpRequest, name: str) -> HttpResponse:
    raise ERRORS_BY_NAME[name]


ERRORS_BY_NAME: dict[str, Any] = {
    "away": OperationalError("connection to server at 10.1.2.3 failed: SELECT secret FROM hidden"),
    "disk-full": OSError(errno.ENOSPC, "No space left on device", "/tmp/upload"),
    "bug": RuntimeError("SELECT secret FROM hidden"),
    "conflict": errors.Conflict("Another one has this name.", code="duplicate", field="name"),
}

urlpatterns = [
    *urls.urlpatterns,
    path("api/test/echo", EchoView.as_view()),
    path("api/test/raise/<slug:name>", RaisingView.as_view()),
    path("test/page/<slug:name>", failing_page),
]

handler400 = urls.handler400
handler403 = urls.handler403
handler404 = urls.handler404
handler500 = urls.handler500

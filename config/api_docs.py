"""Serves the OpenAPI document, and Swagger UI and ReDoc with a nonce for their inline script."""

import secrets
import threading
from functools import cache
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.views import View
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularJSONAPIView

from system.http.steps import POLICY_TEMPLATE

SCHEMA_LOCK = threading.Lock()


class CompactRenderer(OpenApiJsonRenderer):
    def get_indent(self, *_: Any) -> None:
        """No indentation, because programs read the document, and it would be three times as long."""


class SchemaView(SpectacularJSONAPIView):
    renderer_classes = [CompactRenderer]

    def _get_schema_response(self, request: Any) -> Any:
        # The library loads classes on first use, and loses some if two threads do so at the same time.
        with SCHEMA_LOCK:
            return super()._get_schema_response(request)  # type: ignore[no-untyped-call]


class ApiReference(View):
    template = ""

    def get(self, request: HttpRequest, **_: Any) -> HttpResponse:
        nonce = secrets.token_urlsafe(16)
        policy = POLICY_TEMPLATE.format(script=f" 'nonce-{nonce}'", style=" 'unsafe-inline'")
        # The policy allows the worker that ReDoc starts from a blob for its search.
        response = render(request, self.template, {"nonce": nonce})
        response["Content-Security-Policy"] = f"{policy}; worker-src 'self' blob:"
        return response


REDOC_BUNDLE_PATH = "drf_spectacular_sidecar/redoc/bundles/redoc.standalone.js"
# The bundle loads its vendor's logo from another host. It is replaced, because pages load nothing from other hosts.
EXTERNAL_LOGO_URL = "https://cdn.redoc.ly/redoc/logo-mini.svg"


@cache
def redoc_bundle() -> str:
    path = finders.find(REDOC_BUNDLE_PATH)
    return Path(str(path)).read_text(encoding="utf-8").replace(EXTERNAL_LOGO_URL, static("servicebase/logo.svg"))


class RedocBundle(View):
    def get(self, request: HttpRequest) -> HttpResponse:
        response = HttpResponse(redoc_bundle(), content_type="text/javascript; charset=utf-8")
        response["Cache-Control"] = "public, max-age=3600"
        return response

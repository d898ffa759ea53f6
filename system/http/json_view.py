"""The base class of JSON endpoints: Django REST framework's views, without options that no endpoint uses.

There is one parser and one renderer, no versioning and no throttling, and callers must be authenticated. Nothing in a
response refers to its view, so a response, which can contain megabytes, is freed once it is sent.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from rest_framework.authentication import BaseAuthentication
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Empty, Request
from rest_framework.response import Response
from rest_framework.views import APIView

from system.http.error_responses import JsonOnlyNegotiation
from system.http.request_body import StrictJSONParser

NEGOTIATOR = JsonOnlyNegotiation()
PARSERS = (StrictJSONParser(),)
RENDERER = JSONRenderer()
# Options that `dispatch` ignores. A view must not set them.
IGNORED_OPTIONS = {"permission_classes", "parser_classes", "renderer_classes", "throttle_classes", "versioning_class"}


@cache
def authenticators(classes: tuple[type[BaseAuthentication], ...]) -> tuple[BaseAuthentication, ...]:
    return tuple([authentication() for authentication in classes])


class JsonRequest(Request):
    """A request of the framework whose parser and negotiator are shared by all requests."""

    def __init__(self, request: HttpRequest, classes: Sequence[type[BaseAuthentication]]) -> None:
        self._request = request
        # Copied, because the framework looks up attributes of Django's request slowly.
        self.META, self.method, self.path = request.META, request.method, request.path
        self.parsers, self.negotiator, self.parser_context = PARSERS, NEGOTIATOR, {}
        self.authenticators = authenticators(tuple(classes))
        self._data = self._files = self._full_data = self._content_type = Empty
        self._stream: Any = Empty


def set_parsed_request(request: HttpRequest, user: Any, body: Any) -> None:
    """Set the caller and body of one request in a batch, which the batch has already read."""
    json_request = JsonRequest(request, ())
    json_request.user = user
    json_request._data = json_request._full_data = body
    request.json_request = json_request  # type: ignore[attr-defined]


class JsonView(APIView):
    format_kwarg = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if ignored := IGNORED_OPTIONS & vars(cls).keys():
            raise TypeError(f"JsonView ignores {', '.join(ignored)}.")

    def dispatch(self, request: HttpRequest, *positional: Any, **named: Any) -> HttpResponseBase:
        json_request: JsonRequest | None = getattr(request, "json_request", None)
        self.request = json_request or JsonRequest(request, self.authentication_classes)
        try:
            user: Any = self.request.user
            if not user.is_authenticated:
                self.permission_denied(self.request)
            method = (request.method or "").lower()
            handler = getattr(self, method, None) if method in self.http_method_names else None
            with user.limit_requests():
                response: Any = (handler or self.http_method_not_allowed)(self.request, *positional, **named)
        except Exception as error:
            response = self.handle_exception(error)
        if isinstance(response, Response):
            response.accepted_renderer = RENDERER
            response.accepted_media_type = RENDERER.media_type
            response.renderer_context = {}  # type: ignore[attr-defined]
            # Rendering adds the response itself to the context.
            response.add_post_render_callback(lambda rendered: rendered.renderer_context.clear())
        response["Allow"] = ", ".join(self.allowed_methods)
        return response  # type: ignore[no-any-return]

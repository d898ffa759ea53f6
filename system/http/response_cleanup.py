"""Frees a response, which can hold megabytes, once it is sent, instead of at the next garbage collection."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView


class ReleasesResponse(APIView):
    """Removes references to the response from the view and the renderer, which are parts of reference cycles."""

    def dispatch(self, request: HttpRequest, *positional: Any, **named: Any) -> HttpResponseBase:
        response = super().dispatch(request, *positional, **named)
        del self.response
        return response

    def finalize_response(self, request: Request, response: Any, *positional: Any, **named: Any) -> Any:
        response = super().finalize_response(request, response, *positional, **named)
        if isinstance(response, Response):
            response.add_post_render_callback(lambda rendered: rendered.renderer_context.clear())
        return response

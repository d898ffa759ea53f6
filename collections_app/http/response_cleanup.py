"""In charge of letting an answer go once it is sent: megabytes would wait for Python to look for circles."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView


class ReleasesResponse(APIView):
    """The view and its request are a circle, from which the answer hangs; so is an answer that was rendered."""

    def dispatch(self, request: HttpRequest, *positional: Any, **named: Any) -> HttpResponseBase:
        answer = super().dispatch(request, *positional, **named)
        del self.response
        return answer

    def finalize_response(self, request: Request, response: Any, *positional: Any, **named: Any) -> Any:
        answer = super().finalize_response(request, response, *positional, **named)
        if isinstance(answer, Response):
            answer.add_post_render_callback(lambda rendered: rendered.renderer_context.clear())
        return answer

"""Kills a web process during a request, as a crash would."""

import os
import signal
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

KILL_HEADER = "X-Test-Kill"


class KillAfterResponseMiddleware:
    """Kills the process after the view has committed and before the response is sent."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if KILL_HEADER in request.headers:
            os.kill(os.getpid(), signal.SIGKILL)
        return response

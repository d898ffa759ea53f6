"""Ends a web process from inside, as a crash would."""

import os
import signal
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

DIE_HEADER = "X-Test-Dies"


class DiesWithItsAnswer:
    """The view is through, its transaction committed; nothing of the answer has been sent."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if DIE_HEADER in request.headers:
            os.kill(os.getpid(), signal.SIGKILL)
        return response

"""Session, CSRF and messages for pages only, because programs do not need them."""

from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponseBase
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.deprecation import MiddlewareMixin


class SkipsProgramPaths(MiddlewareMixin):
    """Skips the paths of programs, where sessions are not valid."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(settings.PROGRAM_PATHS):
            return self.get_response(request)  # type: ignore[return-value]  # never asynchronous here
        return super().__call__(request)  # type: ignore[return-value]


class Sessions(SkipsProgramPaths, SessionMiddleware):
    pass


class Csrf(SkipsProgramPaths, CsrfViewMiddleware):
    pass


class Authentication(SkipsProgramPaths, AuthenticationMiddleware):
    pass


class Messages(SkipsProgramPaths, MessageMiddleware):
    pass

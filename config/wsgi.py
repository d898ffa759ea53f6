"""The application: Django, and the gateway through which the web server calls it."""

import codecs
import os
from collections.abc import Callable
from functools import cached_property
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django
from django.conf import settings
from django.core import cache
from django.core.handlers import base
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.core.management import call_command as call_command
from django.core.signals import request_finished
from django.http import HttpResponseBase, QueryDict
from django.urls import get_resolver
from django.utils.http import parse_header_parameters

from config.env import secret_names
from system.http.gateway import Gateway
from system.monitoring.logs import line_buffer as line_buffer
from system.process_cache import WeightedCache

# No view accepts this type, so the response is 415.
UNSUPPORTED_TYPE = "application/octet-stream"

django.setup()

from accounts.authentication import passwords  # noqa: E402  (its models need the loaded apps)
from system.background.hourly_counts import process_counts as process_counts  # noqa: E402

# Secrets have been read by now, and child processes would inherit them.
for name in secret_names():
    os.environ.pop(name, None)


# No cache is in use, and no request changes its URLconf. Resetting both would double the time at the end of a request.
request_finished.disconnect(cache.close_caches)
request_finished.disconnect(base.reset_urlconf)


# Host names that Django has checked, by the names that were allowed at that time.
CHECKED_HOSTS: WeightedCache[tuple[str, ...], str] = WeightedCache(
    "host names", max_weight=100_000, weigh=lambda key, host: sum(map(len, key)) + len(host)
)
NO_PARAMETERS: Any = QueryDict()


class Request(WSGIRequest):
    """A request that caches values that are the same for most requests."""

    def get_host(self) -> str:
        key = (self._get_raw_host(), *settings.ALLOWED_HOSTS)  # type: ignore[attr-defined]
        return CHECKED_HOSTS.get_or_make(key, super().get_host)

    @cached_property
    def GET(self) -> Any:  # type: ignore[override]  # noqa: N802
        return super().GET if self.environ.get("QUERY_STRING") else NO_PARAMETERS


class Application(WSGIHandler):
    """Calls Django with a Content-Type that it can parse.

    `request_started` is not sent: its receivers also listen to `request_finished`, and the first statement of a request
    checks the connection.
    """

    request_class = Request

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> HttpResponseBase:
        environ["CONTENT_TYPE"] = parsable_content_type(environ.get("CONTENT_TYPE", ""))
        response = self.get_response(self.request_class(environ))
        cookies = [("Set-Cookie", cookie.OutputString()) for cookie in response.cookies.values()]
        headers: Any = response.headers
        # `items()` would look up each header again.
        start_response(f"{response.status_code} {response.reason_phrase}", [*headers._store.values(), *cookies])
        return response


def parsable_content_type(header: str) -> str:
    """Replace a Content-Type that Django cannot parse, or whose charset it would use to decode query strings.

    >>> parsable_content_type("application/json; charset=UTF-8")
    'application/json; charset=UTF-8'
    >>> parsable_content_type("application/json; charset=rot13")
    'application/octet-stream'
    """
    if header in ("", "application/json"):
        return header
    try:
        _, parameters = parse_header_parameters(header)
        is_utf8 = codecs.lookup(parameters.get("charset", "utf-8")).name == "utf-8"
    except (ValueError, LookupError, TypeError):
        return UNSUPPORTED_TYPE
    return header if is_utf8 else UNSUPPORTED_TYPE


application = Application()
# Loaded now, so that the first request does not wait for them: a password hash and all views.
str(passwords.DUMMY_HASH)
get_resolver().url_patterns  # noqa: B018
gateway = Gateway(application, settings.BODY_DEADLINE_S)

"""The WSGI application: Django behind a request body with a deadline."""

import codecs
import os
from collections.abc import Callable, Iterable
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver
from django.utils.http import parse_header_parameters

from config.env import secret_names
from system.http.request_body import GuardedInput

# No view accepts this type, so the response is 415.
UNREADABLE = "application/octet-stream"

django_application = get_wsgi_application()

from accounts.authentication import passwords  # noqa: E402  (its models need the loaded apps)

# The server copies the process environment into that of each request. The secrets have been read, and a variable such
# as HTTP_HOST would replace the header of a request.
for name in [*secret_names(), *(name for name in os.environ if name.startswith("HTTP_"))]:
    os.environ.pop(name, None)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Call Django with a body that has a deadline, and drain what its view did not read."""
    body = environ["wsgi.input"] = GuardedInput(environ["wsgi.input"], settings.BODY_DEADLINE_S)
    environ["CONTENT_TYPE"] = readable_type(environ.get("CONTENT_TYPE", ""))
    try:
        response = django_application(environ, start_response)
        length = environ.get("CONTENT_LENGTH", "")
        # With an Expect header the client has not sent the body yet, and reading would request it.
        if length.isascii() and length.isdigit() and "HTTP_EXPECT" not in environ:
            body.drain(int(length))
    finally:
        body.detach()
    return response


def readable_type(header: str) -> str:
    """Replace a Content-Type that Django cannot parse, or whose charset it would use to decode query strings.

    >>> readable_type("application/json; charset=UTF-8"), readable_type("application/json; charset=rot13")
    ('application/json; charset=UTF-8', 'application/octet-stream')
    """
    try:
        _, parameters = parse_header_parameters(header)
        is_utf8 = codecs.lookup(parameters.get("charset", "utf-8")).name == "utf-8"
    except (ValueError, LookupError, TypeError):
        return UNREADABLE
    return header if is_utf8 else UNREADABLE


def warm_up() -> None:
    """Load what the first request would otherwise wait for."""
    str(passwords.NOBODY)
    get_resolver().url_patterns  # noqa: B018  (loads every view)


warm_up()

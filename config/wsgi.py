"""What the web server calls."""

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

# No view reads a body of this type, so whoever sends what cannot be read is told 415.
UNREADABLE = "application/octet-stream"

django_application = get_wsgi_application()

from accounts.authentication import passwords  # noqa: E402  (its models need the loaded apps)

# The server copies the process environment into each request's; read already, it must not lie there.
for name in [*secret_names(), *(name for name in os.environ if name.startswith("HTTP_"))]:
    os.environ.pop(name, None)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Django, with a body that ends by its deadline and of which nothing is left unread."""
    body = environ["wsgi.input"] = GuardedInput(environ["wsgi.input"], settings.BODY_DEADLINE_S)
    environ["CONTENT_TYPE"] = readable_type(environ.get("CONTENT_TYPE", ""))
    try:
        answer = django_application(environ, start_response)
        length = environ.get("CONTENT_LENGTH", "")
        # Who asks first whether to send the body (Expect) has not sent it, and reading would ask for it.
        if length.isascii() and length.isdigit() and "HTTP_EXPECT" not in environ:
            body.leave_nothing(int(length))
    finally:
        body.let_go()
    return answer


def readable_type(header: str) -> str:
    """The header Content-Type, or another where Django would fail on it, or read query strings by its charset.

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
    """Do before the first request what it would otherwise wait for."""
    str(passwords.NOBODY)
    get_resolver().url_patterns  # noqa: B018  (loads every view)


warm_up()

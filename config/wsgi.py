"""The application: Django, and the gateway through which the web server calls it."""

import codecs
import os
from collections.abc import Callable, Iterable
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.conf import settings
from django.core.signals import request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, reset_queries
from django.urls import get_resolver
from django.utils.http import parse_header_parameters

from config.env import secret_names
from system.http.gateway import Gateway

# No view accepts this type, so the response is 415.
UNREADABLE = "application/octet-stream"

django_application = get_wsgi_application()

from accounts.authentication import passwords  # noqa: E402  (its models need the loaded apps)

# They have been read, and child processes would inherit them.
for name in secret_names():
    os.environ.pop(name, None)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Call Django with a Content-Type that it can parse."""
    environ["CONTENT_TYPE"] = readable_type(environ.get("CONTENT_TYPE", ""))
    return django_application(environ, start_response)


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


# The end of each request does this too, and the first statement of the next one checks the connection.
request_started.disconnect(close_old_connections)
request_started.disconnect(reset_queries)

warm_up()
gateway = Gateway(application, settings.BODY_DEADLINE_S)

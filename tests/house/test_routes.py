"""Every route and who may use it: a new one fails here until it says so."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from collections_app.urls import ENDPOINTS

# Who gets past the route's own check. Pages under /admin/ are tested one by one in tests/accounts and tests/browser.
ANYONE, SIGNED_IN, CREDENTIALS, ROLE = "anyone", "a signed-in browser", "credentials with the request", "a role"
ROUTES = {
    "healthz": ANYONE,
    "readyz": ANYONE,
    "metrics": ROLE,
    "api/schema": ANYONE,
    "api/docs": ANYONE,
    "api/docs/reference": ANYONE,
    "api/docs/redoc.js": ANYONE,
    "api/me": CREDENTIALS,
    "rest/v1/auth/login": ANYONE,
    r"^rest/v1/table/(?P<table>[^/]+)/?$": CREDENTIALS,
    r"^rest/v1/table/(?P<table>[^/]+)/(?P<sys_id>[^/]+)/?$": CREDENTIALS,
    **{f"^{name}/?$": CREDENTIALS for name in ENDPOINTS},
    "api/collections": CREDENTIALS,
    "api/collections/<slug:sys_id>": CREDENTIALS,
    "api/collections/<slug:sys_id>/reembed": CREDENTIALS,
    "api/collections/<slug:sys_id>/search": CREDENTIALS,
    "api/collections/<slug:sys_id>/documents": CREDENTIALS,
    "api/collections/<slug:sys_id>/documents/<slug:document>": CREDENTIALS,
    "api/collections/<slug:sys_id>/documents/<slug:document>/content": CREDENTIALS,
    "api/collections/<slug:sys_id>/documents/<slug:document>/reload": CREDENTIALS,
    "api/collections/<slug:sys_id>/documents/<slug:document>/retry": CREDENTIALS,
    "": ANYONE,
    "login/": ANYONE,
    "logout/": ANYONE,
    "account/": SIGNED_IN,
    "collections/": SIGNED_IN,
    "collections/<slug:sys_id>/": SIGNED_IN,
    "collections/<slug:sys_id>/delete/": SIGNED_IN,
    "collections/<slug:sys_id>/documents/<slug:document>/delete/": SIGNED_IN,
    "collections/<slug:sys_id>/documents/<slug:document>/retry/": SIGNED_IN,
    "sso/start/": ANYONE,
    "sso/callback/": ANYONE,
    "sso/logout/": ANYONE,
    "sso/backchannel-logout/": ANYONE,
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def patterns(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for each in resolver.url_patterns:
        path = before + str(each.pattern)
        if isinstance(each, URLResolver):
            if not path.startswith("admin/"):
                yield from patterns(each, path)
        elif isinstance(each, URLPattern) and not path.startswith("admin/"):
            yield path


def test_every_route_says_who_may_use_it():  # X01
    found = set(patterns(get_resolver()))

    assert {path for path in found if not path.startswith("account/")} == set(ROUTES) - {"account/"}


def example(path: str) -> str:
    path = path.replace(r"(?P<table>[^/]+)", "task").replace(r"(?P<sys_id>[^/]+)", "1").replace("/?$", "")
    path = path.replace("<slug:sys_id>", "1").replace("<slug:document>", "1")
    return "/" + path.removeprefix("^")


@pytest.mark.parametrize("path", [path for path, who in ROUTES.items() if who == CREDENTIALS])
@pytest.mark.parametrize("method", METHODS)
def test_without_credentials_nothing_is_told(path: str, method: str, db: Any):
    refused = Client().generic(method, example(path), "{}", content_type="application/json")

    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"]


@pytest.mark.parametrize("path", [path for path in ROUTES if path.startswith("^")])
def test_a_session_alone_opens_nothing_to_programs(path: str, as_alice: Client):  # B57
    assert as_alice.get(example(path)).status_code == 401

"""Nothing under /rest/ accepts session cookies, which a page of another site could make a browser send."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.mixins import AccessMixin
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.authentication import SessionAuthentication
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from accounts.authentication.schemes import BasicAuthentication, BearerAuthentication
from accounts.models import User
from system.http.json_view import JsonView
from tests.accounts.callers import API_SIGN_IN_PATH


def collect_routes(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for route in resolver.url_patterns:
        path = prefix + str(route.pattern)
        if isinstance(route, URLResolver):
            yield from collect_routes(route, path)
        else:
            yield path, route


REST_ROUTES = [(path, route) for path, route in collect_routes(get_resolver()) if path.lstrip("^").startswith("rest/")]


def test_rest_routes_are_collected():
    assert "rest/v1/auth/login" in [path for path, _ in REST_ROUTES]


@pytest.mark.parametrize(("path", "route"), REST_ROUTES, ids=[path for path, _ in REST_ROUTES])
def test_no_rest_view_accepts_a_session(path: str, route: URLPattern):
    view: Any = getattr(route.callback, "cls", None) or getattr(route.callback, "view_class", None)

    # At sign-in, there is no user yet whose slow queries JsonView could limit.
    base_view = APIView if path == API_SIGN_IN_PATH.lstrip("/") else JsonView
    assert view is not None and issubclass(view, base_view), "only these ignore Django's request.user and limit queries"
    assert not issubclass(view, AccessMixin)
    assert set(view.authentication_classes) <= {BasicAuthentication, BearerAuthentication}


def test_views_accept_no_session_by_default():
    default_schemes: Any = api_settings.DEFAULT_AUTHENTICATION_CLASSES

    assert not [scheme for scheme in default_schemes if issubclass(scheme, SessionAuthentication)]


def test_session_is_not_accepted_by_the_api(as_bob: Client, bob: User):
    """The route needs no other credentials: a cookie does not replace the password."""
    response = as_bob.post(API_SIGN_IN_PATH, {"username": "bob", "password": "wrong"}, content_type="application/json")

    assert response.status_code == 401

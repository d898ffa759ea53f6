"""A sign-in runs methods of mozilla-django-oidc; it does not merely derive classes from it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import mozilla_django_oidc
import pytest
from django.db import connection
from django.test import Client

from accounts.models import User
from sso.backends import LIBRARY_SETTINGS, OidcBackend
from tests.providers.hostile import HostileProvider
from tests.sso.sign_ins import Browser, make_active_connection, make_ann

pytestmark = pytest.mark.django_db
LIBRARY_FOLDER = mozilla_django_oidc.__file__.rpartition("/")[0]
BACKEND_NAME = "OIDCAuthenticationBackend"


@contextmanager
def traced_calls() -> Iterator[set[str]]:
    """Collects the called functions of the library and of our backend."""
    called_names: set[str] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        path = frame.f_code.co_filename
        if path.startswith(LIBRARY_FOLDER) or path.endswith("sso/backends.py"):
            called_names.add(frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name)

    profiler_before = sys.getprofile()
    sys.setprofile(trace)
    try:
        yield called_names
    finally:
        sys.setprofile(profiler_before)


@pytest.mark.parametrize("is_new", [True, False], ids=["new user", "known user"])
def test_a_sign_in_runs_the_methods_of_the_library(provider: HostileProvider, is_new: bool):
    make_active_connection(provider, enable_user_creation=True)
    if not is_new:
        make_ann()
    browser = Browser(provider)
    with traced_calls() as called_names:
        assert browser.sign_in().status_code == 302

    assert {
        "OIDCAuthenticationRequestView.get",
        "add_state_and_verifier_and_nonce_to_session",
        "generate_code_challenge",
        f"{BACKEND_NAME}.authenticate",
        f"{BACKEND_NAME}.get_or_create_user",
        "OIDCAuthenticationCallbackView.login_success",
    } <= called_names
    hooks = {"get_token", "verify_token", "store_tokens", "get_userinfo", "verify_claims", "filter_users_by_claims"}
    assert {f"OidcBackend.{hook}" for hook in hooks | {"create_user" if is_new else "update_user"}} <= called_names


def test_the_library_neither_checks_tokens_nor_calls_the_provider(provider: HostileProvider):
    """The library checks neither issuer nor audience, and calls the provider without the outbound guard."""
    make_active_connection(provider)
    make_ann()
    browser = Browser(provider)
    with traced_calls() as called_names:
        browser.sign_in()

    replaced_methods = {
        "get_token",
        "get_userinfo",
        "verify_token",
        "_verify_jws",
        "retrieve_matching_jwk",
        "store_tokens",
    }
    assert called_names.isdisjoint(f"{BACKEND_NAME}.{name}" for name in replaced_methods)


def test_the_fragment_flow_runs_the_same_steps(provider: HostileProvider):
    make_active_connection(provider, response_type="id_token")
    make_ann()
    browser = Browser(provider)
    with traced_calls() as called_names:
        assert browser.sign_in().status_code == 302

    assert {f"{BACKEND_NAME}.get_or_create_user", "OIDCAuthenticationCallbackView.login_success"} <= called_names


def test_signing_out_runs_the_view_of_the_library(provider: HostileProvider):
    make_active_connection(provider)
    make_ann()
    browser = Browser(provider)
    browser.sign_in()
    with traced_calls() as called_names:
        browser.client.post("/sso/logout/")

    assert "OIDCLogoutView.post" in called_names and browser.login is None


def test_library_settings_come_from_the_connection(provider: HostileProvider):
    setting = make_active_connection(provider, scope="openid email")
    endpoints = setting.endpoints
    assert endpoints is not None
    backend = OidcBackend()
    assert backend.get_settings("OIDC_RP_CLIENT_ID", "default") == "default", "no connection is stored yet"
    backend.use_connection(setting, endpoints)

    assert provider.url("token") == backend.OIDC_OP_TOKEN_ENDPOINT
    assert provider.client_secret == backend.OIDC_RP_CLIENT_SECRET
    assert backend.get_settings("OIDC_RP_SCOPES") == "openid email"
    assert backend.get_settings("OIDC_STORE_ID_TOKEN", False) is False
    assert set(LIBRARY_SETTINGS) >= {"OIDC_OP_AUTHORIZATION_ENDPOINT", "OIDC_OP_USER_ENDPOINT", "OIDC_OP_JWKS_ENDPOINT"}


def test_backend_makes_no_query_before_a_sign_in(db: None, django_assert_num_queries: Any):
    """Django creates a backend for every request of a signed-in user."""
    with django_assert_num_queries(0):
        OidcBackend()


def test_a_password_sign_in_does_not_use_the_backend(alice: User, monkeypatch: Any):
    monkeypatch.setattr(OidcBackend, "use_connection", lambda *_: 1 / 0)
    assert Client().login(username="alice", password="wrong") is False
    assert OidcBackend().authenticate(None) is None
    assert connection.is_usable()

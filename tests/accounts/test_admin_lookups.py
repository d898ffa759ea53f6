"""Filters, searches and sort orders in URLs of the administration reveal no secrets (X24)."""

from typing import Any

import pytest
from django.contrib import admin
from django.test import Client

from accounts.authentication import access_keys
from accounts.models import AccessKey, User
from tests.accounts.callers import sign_in

SECRET_LOOKUPS = [
    ("user", "password__startswith"),
    ("user", "password"),
    ("user", "password__regex"),
    ("user", "access_keys__digest__startswith"),
    ("user", "sessions__session_key__startswith"),
    ("user", "sessions__session_data__contains"),
    ("user", "grants__user__password__startswith"),
    ("user", "company__user__password__startswith"),
    ("accesskey", "digest"),
    ("accesskey", "digest__startswith"),
    ("accesskey", "digest__gt"),
    ("accesskey", "user__password__startswith"),
    ("accesskey", "user__sessions__session_key__startswith"),
    ("role", "grants__user__password__startswith"),
    ("group", "memberships__user__password__startswith"),
    ("company", "user__password__startswith"),
]


@pytest.fixture
def key(bob: User) -> AccessKey:
    access_keys.create_key(bob, "script", expires_at=None)
    return AccessKey.objects.get()


@pytest.mark.parametrize(("model", "lookup"), SECRET_LOOKUPS)
def test_filter_on_a_secret_is_refused_whether_or_not_it_matches(
    as_alice: Client, key: AccessKey, model: str, lookup: str
):
    for value in ("", "a", "md5$", key.digest[:1], ".*"):
        response = as_alice.get(f"/admin/accounts/{model}/", {lookup: value}, headers={"Accept": "text/html"})
        assert response.status_code == 400, value
        assert key.digest.encode() not in response.content and b"md5$" not in response.content


def test_offered_filter_works(as_alice: Client, key: AccessKey):
    """Proves that the tests above refuse only lookups of secrets."""
    assert as_alice.get("/admin/accounts/accesskey/", {"kind__exact": "named"}).status_code == 200
    assert as_alice.get("/admin/accounts/user/", {"active__exact": "1"}).status_code == 200
    assert as_alice.get("/admin/accounts/user/", {"login__startswith": "b"}).status_code == 200


def test_search_ignores_secrets(as_alice: Client, key: AccessKey, bob: User):
    sign_in("bob")
    secrets = {"user": bob.password[-10:], "accesskey": key.digest[:10]}
    for model, secret in secrets.items():
        page = as_alice.get(f"/admin/accounts/{model}/", {"q": secret})
        assert page.context["cl"].result_count == 0


@pytest.mark.parametrize("model_admin", admin.site._registry.values(), ids=str)
def test_no_page_shows_a_secret(model_admin: Any):
    secrets = set(getattr(model_admin.model, "secret_columns", ()))
    search_fields = model_admin.search_fields
    shown_fields = {
        *model_admin.list_display,
        *model_admin.list_filter,
        *search_fields,
        *(model_admin.ordering or ()),
    }

    assert not {str(name).lstrip("-^=@").partition("__")[0] for name in shown_fields} & secrets
    for name in search_fields:
        assert not set(name.split("__")) & {"password", "digest", "session_key", "session_data"}


@pytest.mark.parametrize(
    "query",
    ["o=99", "o=-1.x", "p=x", "p=999999", "all=", "e=1", "q=%00", "login__contains=%00", "active__exact=x", "x__y=z",
     "_to_field=password", "_to_field=x", "sys_id__in=%00", "_facets=x", "_changelist_filters=%00", "o=" + "1." * 500],
)  # fmt: skip
def test_malformed_query_causes_no_server_error(as_alice: Client, query: str):
    for model in ("user", "role", "accesskey", "group", "company"):
        assert as_alice.get(f"/admin/accounts/{model}/?{query}").status_code in (200, 302, 400), model


def test_to_field_of_another_column_is_refused(as_alice: Client, bob: User):
    assert as_alice.get(f"/admin/accounts/user/{bob.password}/change/?_to_field=password").status_code == 400
    assert as_alice.get(f"/admin/accounts/user/{bob.login}/change/?_to_field=login").status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "search/?s=a&page=x",
        "search/?s=a&page=99",
        "search/?s=%00",
        "autocomplete/?app_label=accounts&model_name=accesskey&field_name=user&term=%00",
        "autocomplete/?app_label=accounts&model_name=accesskey&field_name=user&page=x",
        "autocomplete/?app_label=accounts&model_name=user&field_name=password&term=a",
        "r/x/y/",
    ],
)
def test_malformed_search_causes_no_server_error(as_alice: Client, path: str):
    assert as_alice.get(f"/admin/{path}").status_code in (200, 403, 404)

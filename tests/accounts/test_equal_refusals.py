"""401 responses are identical whatever their cause."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.authentication import access_keys
from accounts.models import AccessKey, User
from tests.accounts.callers import basic_auth, bearer_auth, get_me, request_api_key
from tests.support.users import PASSWORD, make_user


def revoked_key_auth(bob: User) -> dict[str, str]:
    key = access_keys.create_key(bob, "revoked", expires_at=None)
    AccessKey.objects.all().delete()
    return bearer_auth(key)


def inactive_user_auth(_: User) -> dict[str, str]:
    return bearer_auth(access_keys.create_key(make_user("gone", active=False), "left", expires_at=None))


REFUSED_CREDENTIALS: dict[str, Callable[[User], dict[str, str]]] = {
    "wrong password": lambda bob: basic_auth("bob", "wrong"),
    "unknown login": lambda bob: basic_auth("nobody"),
    "inactive user": lambda bob: basic_auth(make_user("away", active=False).login),
    "no password set": lambda bob: basic_auth(User.objects.create_user("keyless").login),
    "no colon": lambda bob: {"Authorization": "Basic Ym9i"},
    "not base64": lambda bob: {"Authorization": "Basic !"},
    "header too long": lambda bob: basic_auth("bob", "x" * 5000),
    "unknown key": lambda bob: bearer_auth("sb_unknown"),
    "expired key": lambda bob: bearer_auth(
        access_keys.create_key(bob, "old", expires_at=timezone.now() - timedelta(days=1))
    ),
    "revoked key": revoked_key_auth,
    "key of an inactive user": inactive_user_auth,
    "another scheme": lambda bob: {"Authorization": "Negotiate abc"},
    "two headers": lambda bob: {"Authorization": "Basic Ym9i, Bearer sb_x"},
}
VARYING_HEADERS = {"X-Request-ID"}


def comparable_parts(response: Any) -> tuple[int, bytes, dict[str, str]]:
    """Every part of a response that a caller can compare."""
    return (
        response.status_code,
        response.content,
        {name: value for name, value in response.items() if name not in VARYING_HEADERS},
    )


@pytest.mark.parametrize("make_headers", REFUSED_CREDENTIALS.values(), ids=REFUSED_CREDENTIALS.keys())
def test_all_refusals_are_identical(bob: User, make_headers: Callable[[User], dict[str, str]]):
    refusal = get_me(make_headers(bob))

    assert comparable_parts(refusal) == comparable_parts(get_me(bearer_auth("x")))
    assert refusal.content == get_me().content, "the body without credentials is the same"


def test_api_sign_in_refusals_are_identical(bob: User):
    make_user("gone", active=False)
    responses = [
        request_api_key("bob", "wrong"),
        request_api_key("nobody"),
        request_api_key("gone"),
        request_api_key("bob\u0301"),
        request_api_key(" bob"),
    ]

    assert {str(comparable_parts(response)) for response in responses} == {
        str(comparable_parts(request_api_key("bob", "wrong too")))
    }
    assert responses[0].status_code == 401


def test_locked_login_refusals_do_not_depend_on_the_user(bob: User):
    outcomes = {}
    for login in ("bob", "nobody"):
        statuses = [get_me(basic_auth(login, "wrong"), ip="192.0.2.9").status_code for _ in range(11)]
        last_response = get_me(basic_auth(login), ip="192.0.2.9")
        outcomes[login] = (statuses, last_response.status_code, last_response.content)

    assert outcomes["bob"] == outcomes["nobody"]
    assert outcomes["bob"][1] == 429


def test_refusals_do_not_repeat_the_input(bob: User):
    for response in (
        get_me(basic_auth("bob", "wrong-canary")),
        request_api_key("bob", "wrong-canary"),
        get_me(bearer_auth("sb_wrong-canary")),
    ):
        assert b"canary" not in response.content
        assert PASSWORD.encode() not in response.content

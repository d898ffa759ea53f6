"""Every 401 has the same body, whatever the cause."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.authentication import access_keys
from accounts.models import AccessKey, User
from tests.accounts.callers import api_key, ask, basic, bearer
from tests.support.users import PASSWORD, make_user


def revoked(bob: User) -> dict[str, str]:
    key = access_keys.create_key(bob, "revoked", expires_at=None)
    AccessKey.objects.all().delete()
    return bearer(key)


def of_inactive(_: User) -> dict[str, str]:
    return bearer(access_keys.create_key(make_user("gone", active=False), "left", expires_at=None))


REFUSED: dict[str, Callable[[User], dict[str, str]]] = {
    "wrong password": lambda bob: basic("bob", "wrong"),
    "unknown login": lambda bob: basic("nobody"),
    "inactive user": lambda bob: basic(make_user("away", active=False).login),
    "no password set": lambda bob: basic(User.objects.create_user("keyless").login),
    "no colon": lambda bob: {"Authorization": "Basic Ym9i"},
    "not base64": lambda bob: {"Authorization": "Basic !"},
    "header too long": lambda bob: basic("bob", "x" * 5000),
    "unknown key": lambda bob: bearer("sb_unknown"),
    "expired key": lambda bob: bearer(
        access_keys.create_key(bob, "old", expires_at=timezone.now() - timedelta(days=1))
    ),
    "revoked key": revoked,
    "key of an inactive user": of_inactive,
    "another scheme": lambda bob: {"Authorization": "Negotiate abc"},
    "two headers": lambda bob: {"Authorization": "Basic Ym9i, Bearer sb_x"},
}
DIFFERS_ALWAYS = {"X-Request-ID"}


def whole(response: Any) -> tuple[int, bytes, dict[str, str]]:
    """Everything that a caller can compare."""
    return response.status_code, response.content, {k: v for k, v in response.items() if k not in DIFFERS_ALWAYS}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED.keys())
def test_all_refusals_are_identical(bob: User, make: Callable[[User], dict[str, str]]):
    refusal = ask(make(bob))

    assert whole(refusal) == whole(ask(bearer("x")))
    assert refusal.content == ask().content, "and so is the body without credentials"


def test_api_sign_in_refusals_are_identical(bob: User):
    make_user("gone", active=False)
    responses = [api_key("bob", "wrong"), api_key("nobody"), api_key("gone"), api_key("bob\u0301"), api_key(" bob")]

    assert {str(whole(response)) for response in responses} == {str(whole(api_key("bob", "wrong too")))}
    assert responses[0].status_code == 401


def test_locked_login_refusals_do_not_depend_on_the_user(bob: User):
    bodies = {}
    for login in ("bob", "nobody"):
        statuses = [ask(basic(login, "wrong"), address="192.0.2.9").status_code for _ in range(11)]
        last = ask(basic(login), address="192.0.2.9")
        bodies[login] = (statuses, last.status_code, last.content)

    assert bodies["bob"] == bodies["nobody"]
    assert bodies["bob"][1] == 429


def test_refusals_do_not_repeat_the_input(bob: User):
    for response in (ask(basic("bob", "wrong-canary")), api_key("bob", "wrong-canary"), ask(bearer("sb_wrong-canary"))):
        assert b"canary" not in response.content
        assert PASSWORD.encode() not in response.content

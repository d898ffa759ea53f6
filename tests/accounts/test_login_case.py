"""Case sensitivity of logins: the property `svc.login.username.sensitivity.enabled`."""

from collections.abc import Callable

import pytest
from django.test import Client

from accounts.models import User
from system import properties
from tests.accounts.callers import ME_PATH, basic_auth, get_me, request_api_key
from tests.support.users import PASSWORD, make_user


@pytest.fixture
def case_insensitive_logins(db: None) -> None:
    properties.put(properties.CASE_SENSITIVE, "false")


def sign_in_by_basic(login: str) -> str | None:
    signed_in_login: str | None = get_me(basic_auth(login)).json().get("login")
    return signed_in_login


def sign_in_by_api(login: str) -> str | None:
    key_response = request_api_key(login)
    key = key_response.json()["data"]["auth_key"] if key_response.status_code == 200 else ""
    signed_in_login: str | None = get_me({"Authorization": f"Bearer {key}"}).json().get("login")
    return signed_in_login


def sign_in_by_page(login: str) -> str | None:
    browser = Client()
    browser.post("/login/", {"login": login, "password": PASSWORD})
    signed_in_login: str | None = browser.get(ME_PATH).json().get("login")
    return signed_in_login


SignInRoute = Callable[[str], str | None]
every_route = pytest.mark.parametrize("sign_in_route", [sign_in_by_basic, sign_in_by_api, sign_in_by_page])


@every_route
def test_case_matters_by_default(bob: User, sign_in_route: SignInRoute):
    assert sign_in_route("bob") == "bob"
    assert sign_in_route("Bob") is None
    assert sign_in_route("BOB") is None


@every_route
def test_any_spelling_signs_in_if_case_is_ignored(bob: User, case_insensitive_logins: None, sign_in_route: SignInRoute):
    assert [sign_in_route(login) for login in ("bob", "Bob", "BOB")] == ["bob"] * 3


@every_route
def test_exact_spelling_is_preferred(bob: User, case_insensitive_logins: None, sign_in_route: SignInRoute):
    make_user("BOB")

    assert sign_in_route("bob") == "bob"
    assert sign_in_route("BOB") == "BOB"


@every_route
def test_ambiguous_spelling_is_refused(bob: User, case_insensitive_logins: None, sign_in_route: SignInRoute):
    """Otherwise one user could sign in as the other."""
    make_user("BOB")

    assert sign_in_route("Bob") is None


def test_case_is_folded_in_every_script(case_insensitive_logins: None):
    make_user("Ünsal")

    assert sign_in_by_basic("ünsal") == sign_in_by_basic("ÜNSAL") == "Ünsal"


@pytest.mark.parametrize(
    ("stored_login", "entered_login"), [("bill", "b\u0131ll"), ("strasse", "straße"), ("Karl", "\u212aarl")]
)
def test_lookalike_letters_are_different(case_insensitive_logins: None, stored_login: str, entered_login: str):
    make_user(stored_login)

    assert sign_in_by_basic(entered_login) is None


def test_changed_case_property_applies_immediately_in_this_process(bob: User):
    assert sign_in_by_basic("BOB") is None
    properties.put(properties.CASE_SENSITIVE, "false")
    assert sign_in_by_basic("BOB") == "bob"
    properties.put(properties.CASE_SENSITIVE, "true")
    assert sign_in_by_basic("BOB") is None


def test_logins_are_unique_by_spelling(bob: User):
    from django.core.exceptions import ValidationError

    User(login="BOB", password="!").full_clean()
    with pytest.raises(ValidationError, match="already in use"):
        User(login="bob", password="!").full_clean()


@pytest.mark.parametrize("login", ["", " bob", "bob ", "b:ob", "bo\nb", "bo\x00b", "bo\u200bb", "bo\u202eb", "b" * 151])
def test_confusable_login_is_refused(db: None, login: str):
    from django.core.exceptions import ValidationError

    with pytest.raises(ValidationError) as exc_info:
        User(login=login, password="!").full_clean()
    assert exc_info.value.message_dict.keys() == {"login"}

"""Case sensitivity of logins: the property `svc.login.username.sensitivity.enabled`."""

from collections.abc import Callable

import pytest
from django.test import Client

from accounts.models import User
from system import properties
from tests.accounts.callers import ME, api_key, ask, basic
from tests.support.users import PASSWORD, make_user


@pytest.fixture
def case_does_not_count(db: None) -> None:
    properties.put(properties.CASE_SENSITIVE, "false")


def by_basic(login: str) -> str | None:
    response: str | None = ask(basic(login)).json().get("login")
    return response


def by_api(login: str) -> str | None:
    answer = api_key(login)
    key = answer.json()["data"]["auth_key"] if answer.status_code == 200 else ""
    response: str | None = ask({"Authorization": f"Bearer {key}"}).json().get("login")
    return response


def by_page(login: str) -> str | None:
    browser = Client()
    browser.post("/login/", {"login": login, "password": PASSWORD})
    response: str | None = browser.get(ME).json().get("login")
    return response


Door = Callable[[str], str | None]
doors = pytest.mark.parametrize("door", [by_basic, by_api, by_page])


@doors
def test_case_matters_by_default(bob: User, door: Door):
    assert door("bob") == "bob"
    assert door("Bob") is None
    assert door("BOB") is None


@doors
def test_any_spelling_signs_in_if_case_is_ignored(bob: User, case_does_not_count: None, door: Door):
    assert [door(login) for login in ("bob", "Bob", "BOB")] == ["bob"] * 3


@doors
def test_exact_spelling_is_preferred(bob: User, case_does_not_count: None, door: Door):
    make_user("BOB")

    assert door("bob") == "bob"
    assert door("BOB") == "BOB"


@doors
def test_ambiguous_spelling_is_refused(bob: User, case_does_not_count: None, door: Door):
    """Else one of them could act as the other."""
    make_user("BOB")

    assert door("Bob") is None


def test_case_is_folded_in_every_script(case_does_not_count: None):
    make_user("Ünsal")

    assert by_basic("ünsal") == by_basic("ÜNSAL") == "Ünsal"


@pytest.mark.parametrize(("stored", "tried"), [("bill", "b\u0131ll"), ("strasse", "straße"), ("Karl", "\u212aarl")])
def test_look_alike_letters_are_not_merged(case_does_not_count: None, stored: str, tried: str):
    make_user(stored)

    assert by_basic(tried) is None


def test_property_applies_immediately_in_this_process(bob: User):
    assert by_basic("BOB") is None
    properties.put(properties.CASE_SENSITIVE, "false")
    assert by_basic("BOB") == "bob"
    properties.put(properties.CASE_SENSITIVE, "true")
    assert by_basic("BOB") is None


def test_logins_are_unique_by_spelling(bob: User):
    from django.core.exceptions import ValidationError

    User(login="BOB", password="!").full_clean()
    with pytest.raises(ValidationError, match="already in use"):
        User(login="bob", password="!").full_clean()


@pytest.mark.parametrize("login", ["", " bob", "bob ", "b:ob", "bo\nb", "bo\x00b", "bo\u200bb", "bo\u202eb", "b" * 151])
def test_confusable_login_is_refused(db: None, login: str):
    from django.core.exceptions import ValidationError

    with pytest.raises(ValidationError) as error:
        User(login=login, password="!").full_clean()
    assert error.value.message_dict.keys() == {"login"}

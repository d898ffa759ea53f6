"""Composed and decomposed accents of a login are the same text; logins from before that rule still work."""

import importlib
import unicodedata
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from accounts import provisioning
from accounts.authentication.login_attempts import MAX_FAILURES_PER_LOGIN_AND_ADDRESS
from accounts.models import User, UserRole
from accounts.normalisation import composed
from tests.accounts.admin_forms import change, users
from tests.accounts.callers import guess
from tests.accounts.test_admin_users import NONE
from tests.accounts.test_login_case import by_basic, doors
from tests.support.users import PASSWORD, make_user

NFC, NFD = "jos\xe9", "jose\u0301"


@given(st.text(st.characters(codec="utf-8"), max_size=8))
def test_normalisation_is_idempotent_and_never_yields_ascii(text: str):
    once = composed(text)

    assert composed(once) == once
    assert unicodedata.normalize("NFC", once) == unicodedata.normalize("NFC", text)
    assert once.isascii() == text.isascii()


@pytest.mark.parametrize("made", [NFC, NFD])
@doors
def test_both_spellings_sign_in(db: None, door: Any, made: str):
    make_user(made)

    assert door(NFC) == door(NFD) == NFC


def test_second_spelling_creates_no_second_account(as_alice: Client):
    make_user(NFC)
    page = as_alice.post(users("add"), {"login": NFD, "usable_password": "false", **NONE})

    assert "This login is already in use." in str(page.context["errors"])
    with pytest.raises(provisioning.AccountNotCreated, match="login_taken"):
        provisioning.create_account({"login": NFD, "email": "jose@example.com"})


def test_both_spellings_share_one_counter(db: None):
    make_user(NFC)
    half = MAX_FAILURES_PER_LOGIN_AND_ADDRESS // 2
    assert {guess(NFC, f"wrong {number}") for number in range(half)} == {401}
    assert {guess(NFD, f"other {number}") for number in range(half)} == {401}

    assert guess(NFC, PASSWORD) == guess(NFD, PASSWORD) == 429


def test_commands_accept_both_spellings(db: None):
    make_user(NFC)
    call_command("grant", NFD, "itil")

    assert UserRole.objects.get().user.login == NFC


@pytest.fixture
def before(db: None) -> User:
    """As an older version stored it."""
    user = make_user("old")
    User.objects.filter(pk=user.pk).update(login=NFD)
    return user


def migrate() -> None:
    importlib.import_module("accounts.migrations.0003_composed_logins").compose(apps, None)


class TestLoginsFromBefore:
    def test_existing_logins_are_composed_once(self, before: User):
        other = make_user("\u212aelvin")
        migrate()

        assert (before.refreshed().login, other.refreshed().login) == (NFC, "\u212aelvin")
        assert by_basic(NFD) == by_basic(NFC) == NFC

    def test_existing_login_stays_if_the_composed_one_is_taken(self, before: User, as_alice: Client):
        theirs = make_user(NFC)
        migrate()
        assert (before.refreshed().login, theirs.refreshed().login) == (NFD, NFC)
        assert (by_basic(NFD), by_basic(NFC)) == (NFD, NFC), "each by their own spelling"

        before.phone = "5"
        before.save()
        assert before.refreshed().login == NFD
        assert "This login is already in use." in str(change(as_alice, before).context["errors"])
        assert change(as_alice, before, login="jose.two").status_code == 302
        assert before.refreshed().login == "jose.two"

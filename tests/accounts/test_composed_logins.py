"""Logins that differ only in Unicode composition are equal; logins stored before that rule still work."""

import importlib
import unicodedata
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from accounts.authentication.login_attempts import MAX_FAILURES_PER_LOGIN_AND_ADDRESS
from accounts.models import User, UserRole
from accounts.normalization import composed
from sso.provisioning import account_changes
from sso.refusals import SignInRefused
from tests.accounts.admin_forms import submit_user_form, user_page_path
from tests.accounts.callers import try_password
from tests.accounts.test_admin_users import EMPTY_INLINES
from tests.accounts.test_login_case import every_route, sign_in_by_basic
from tests.support.users import PASSWORD, make_user

NFC, NFD = "jos\xe9", "jose\u0301"


@given(st.text(st.characters(codec="utf-8"), max_size=8))
def test_normalization_is_idempotent_and_never_yields_ascii(text: str):
    composed_text = composed(text)

    assert composed(composed_text) == composed_text
    assert unicodedata.normalize("NFC", composed_text) == unicodedata.normalize("NFC", text)
    assert composed_text.isascii() == text.isascii()


@pytest.mark.parametrize("stored_login", [NFC, NFD])
@every_route
def test_both_spellings_sign_in(db: None, sign_in_route: Any, stored_login: str):
    make_user(stored_login)

    assert sign_in_route(NFC) == sign_in_route(NFD) == NFC


def test_second_spelling_creates_no_second_account(as_alice: Client):
    make_user(NFC)
    page = as_alice.post(user_page_path("add"), {"login": NFD, "usable_password": "false", **EMPTY_INLINES})

    assert "This login is already in use." in str(page.context["errors"])
    with pytest.raises(SignInRefused, match="login_taken"):
        account_changes.create_account({"login": NFD, "email": "jose@example.com"})


def test_both_spellings_share_one_counter(db: None):
    make_user(NFC)
    half_limit = MAX_FAILURES_PER_LOGIN_AND_ADDRESS // 2
    assert {try_password(NFC, f"wrong {number}") for number in range(half_limit)} == {401}
    assert {try_password(NFD, f"other {number}") for number in range(half_limit)} == {401}

    assert try_password(NFC, PASSWORD) == try_password(NFD, PASSWORD) == 429


def test_commands_accept_both_spellings(db: None):
    make_user(NFC)
    call_command("grant", NFD, "itil")

    assert UserRole.objects.get().user.login == NFC


@pytest.fixture
def decomposed_user(db: None) -> User:
    """A user whose login was stored by an older version."""
    user = make_user("old")
    User.objects.filter(pk=user.pk).update(login=NFD)
    return user


def run_migration() -> None:
    importlib.import_module("accounts.migrations.0003_composed_logins").compose(apps, None)


class TestLoginsBeforeMigration:
    def test_existing_logins_are_composed_once(self, decomposed_user: User):
        kelvin_user = make_user("\u212aelvin")
        run_migration()

        assert (decomposed_user.refreshed().login, kelvin_user.refreshed().login) == (NFC, "\u212aelvin")
        assert sign_in_by_basic(NFD) == sign_in_by_basic(NFC) == NFC

    def test_existing_login_stays_if_the_composed_one_is_taken(self, decomposed_user: User, as_alice: Client):
        composed_user = make_user(NFC)
        run_migration()
        assert (decomposed_user.refreshed().login, composed_user.refreshed().login) == (NFD, NFC)
        assert (sign_in_by_basic(NFD), sign_in_by_basic(NFC)) == (NFD, NFC), (
            "each user signs in with the stored spelling"
        )

        decomposed_user.phone = "5"
        decomposed_user.save()
        assert decomposed_user.refreshed().login == NFD
        assert "This login is already in use." in str(submit_user_form(as_alice, decomposed_user).context["errors"])
        assert submit_user_form(as_alice, decomposed_user, login="jose.two").status_code == 302
        assert decomposed_user.refreshed().login == "jose.two"

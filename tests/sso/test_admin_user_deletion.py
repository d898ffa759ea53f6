"""The deletion page warns if the next sign-in through the provider would create the account again."""

import html
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from sso.models import IdentityLink
from tests.sso.connections import make_connection, messages_of
from tests.support.users import make_user

pytestmark = pytest.mark.django_db

USER_LIST_PATH = "/admin/accounts/user/"


def open_deletion_page(browser: Client, *users: User) -> Any:
    return browser.post(USER_LIST_PATH, {"action": "delete_selected", "_selected_action": [user.pk for user in users]})


def test_the_warning_is_shown_for_one_and_for_several_users(as_alice: Client, bob: User):
    setting = make_connection(active=True, enable_user_creation=True)
    other_users = [make_user(login) for login in ("anna", "berta", "carla", "dora")]
    for user in (bob, *other_users):
        IdentityLink.objects.create(user=user, issuer=setting.issuer, sub=user.login)

    page = as_alice.get(f"{USER_LIST_PATH}{bob.pk}/delete/")
    assert "The next sign-in of bob would create a new account" in messages_of(page)
    assert "clear Active instead" in html.unescape(page.content.decode())
    page = open_deletion_page(as_alice, bob, *other_users)
    assert "anna, berta, bob" in messages_of(page) and "next sign-in of" in page.content.decode()


def test_no_warning_if_no_account_would_be_created_again(as_alice: Client, bob: User):
    setting = make_connection(active=True, enable_user_creation=False)
    link = IdentityLink.objects.create(user=bob, issuer=setting.issuer, sub="bob")
    deletion_path = f"{USER_LIST_PATH}{bob.pk}/delete/"
    assert "next sign-in" not in messages_of(as_alice.get(deletion_path)), "user creation is off"

    setting.enable_user_creation = True
    setting.save()
    assert "next sign-in" in messages_of(as_alice.get(deletion_path)), "otherwise this test would prove nothing"
    link.delete()
    assert "next sign-in" not in messages_of(as_alice.get(deletion_path)), "bob has no identity link"
    IdentityLink.objects.create(user=bob, issuer="https://former.example.com", sub="bob")
    assert "next sign-in" not in messages_of(as_alice.get(deletion_path)), "the connection is inactive"
    IdentityLink.objects.create(user=bob, issuer=setting.issuer, sub="bob")
    setting.active = False
    setting.save()
    assert "next sign-in" not in messages_of(as_alice.get(deletion_path))


def test_no_warning_after_the_deletion(as_alice: Client, bob: User):
    setting = make_connection(active=True, enable_user_creation=True)
    IdentityLink.objects.create(user=bob, issuer=setting.issuer, sub="bob")
    page = as_alice.post(f"{USER_LIST_PATH}{bob.pk}/delete/", {"post": "yes"}, follow=True)

    assert not User.objects.filter(pk=bob.pk).exists()
    assert "next sign-in" not in messages_of(page)

"""Users of a new installation: an administrator and two demo users."""

from typing import Any

import pytest

from accounts import demo, privileges
from accounts.models import Company, Group, User, UserRole
from tests.accounts.callers import basic_auth, get_me, try_password

FIRST_PASSWORD = "of the first start 42"


def unexpected_call() -> str:
    pytest.fail("an unnecessary password was generated")


def test_first_administrator_can_sign_in(db: Any):
    privileges.create_administrator("root", lambda: FIRST_PASSWORD)

    assert get_me(basic_auth("root", FIRST_PASSWORD)).json()["roles"] == ["admin"]


def test_second_start_creates_no_users(db: Any):
    privileges.create_administrator("root", lambda: FIRST_PASSWORD)
    privileges.create_administrator("root", unexpected_call)
    privileges.create_administrator("other", unexpected_call)

    assert User.objects.get().login == "root"


def test_existing_user_becomes_administrator_and_keeps_the_password(bob: User):
    hash_before = bob.password
    privileges.create_administrator("bob", unexpected_call)

    assert bob.refreshed().password == hash_before
    assert User.objects.get(login="bob").is_superuser


def test_demo_creates_an_agent_and_a_user(db: Any):
    demo.create_demo_users(lambda: FIRST_PASSWORD)

    assert get_me(basic_auth("demo.agent", FIRST_PASSWORD)).json()["roles"] == ["itil"]
    assert get_me(basic_auth("demo.user", FIRST_PASSWORD)).json()["roles"] == []
    assert not UserRole.objects.filter(role__name="admin").exists()


def test_demo_users_are_created_once(db: Any):
    demo.create_demo_users(lambda: FIRST_PASSWORD)
    User.objects.get(login="demo.user").delete()
    demo.create_demo_users(unexpected_call)

    assert try_password("demo.user", FIRST_PASSWORD) == 401
    assert (User.objects.count(), Group.objects.count(), Company.objects.count()) == (1, 1, 1)

"""Users of a new installation: an administrator and two demo users."""

from typing import Any

import pytest

from accounts import demo, setup
from accounts.models import Company, Group, User, UserRole
from tests.accounts.callers import ask, basic, guess

SECRET = "of the first start 42"


def never() -> str:
    pytest.fail("a password was made that nobody will see")


def test_first_administrator_can_sign_in(db: Any):
    setup.create_administrator("root", lambda: SECRET)

    assert ask(basic("root", SECRET)).json()["roles"] == ["admin"]


def test_second_start_creates_nobody(db: Any):
    setup.create_administrator("root", lambda: SECRET)
    setup.create_administrator("root", never)
    setup.create_administrator("other", never)

    assert User.objects.get().login == "root"


def test_existing_user_becomes_administrator_and_keeps_the_password(bob: User):
    before = bob.password
    setup.create_administrator("bob", never)

    assert bob.refreshed().password == before
    assert User.objects.get(login="bob").is_superuser


def test_demo_creates_an_agent_and_a_user(db: Any):
    demo.create_demo_users(lambda: SECRET)

    assert ask(basic("demo.agent", SECRET)).json()["roles"] == ["itil"]
    assert ask(basic("demo.user", SECRET)).json()["roles"] == []
    assert not UserRole.objects.filter(role__name="admin").exists()


def test_demo_is_created_once(db: Any):
    demo.create_demo_users(lambda: SECRET)
    User.objects.get(login="demo.user").delete()
    demo.create_demo_users(never)

    assert guess("demo.user", SECRET) == 401
    assert (User.objects.count(), Group.objects.count(), Company.objects.count()) == (1, 1, 1)

"""The administrator of a new installation, and what every start ensures."""

import pytest
from django.core.management import call_command

from accounts import privileges
from accounts.models import Role, User, UserRole
from system.models import Property
from tests.support.users import make_user

pytestmark = pytest.mark.django_db


def test_only_the_first_start_creates_an_administrator():
    privileges.create_administrator("admin", lambda: "a long first word")
    privileges.create_administrator("second", lambda: pytest.fail("asked for a password"))

    assert list(User.objects.filter(grants__role__name="admin").values_list("login", flat=True)) == ["admin"]


def test_administrator_through_another_role_counts():
    root_role = Role(name="root", contains=[Role.objects.get(name="admin").pk])
    root_role.save()
    UserRole.objects.create(user=make_user("alice"), role=root_role)

    privileges.create_administrator("admin", lambda: pytest.fail("asked for a password"))

    assert not User.objects.filter(login="admin").exists()


def test_start_creates_new_properties_and_roles_without_a_migration():
    make_user("alice", "admin")
    Property.objects.filter(name="svc.welcome_page.url").delete()
    Role.objects.filter(name="monitoring").delete()

    call_command("prepare")

    assert Property.objects.filter(name="svc.welcome_page.url").exists()
    assert Role.objects.filter(name="monitoring").exists()

"""The administration never removes the last administrator."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client

from accounts.models import Role, User, UserRole
from accounts.privileges import NoAdminLeft, ensure_admin_remains
from system.errors import Conflict
from system.models import DeletionLogEntry
from tests.accounts.admin_forms import submit_user_form, user_page_path
from tests.support.users import make_user

Removal = Callable[[Client, User], Any]


def delete_selected(browser: Client, user: User) -> Any:
    form = {"action": "delete_selected", "_selected_action": user.pk, "post": "yes"}
    return browser.post(user_page_path(), form)


REMOVALS: dict[str, Removal] = {
    "deactivated": lambda browser, user: submit_user_form(browser, user, active="off"),
    "stripped of the role": lambda browser, user: submit_user_form(browser, user, revoked_roles=("admin",)),
    "both at once": lambda browser, user: submit_user_form(browser, user, active="off", revoked_roles=("admin",)),
    "given another role instead": lambda browser, user: submit_user_form(
        browser, user, granted_roles=("itil",), revoked_roles=("admin",)
    ),
    "deleted": lambda browser, user: browser.post(user_page_path(user.pk, "delete"), {"post": "yes"}),
    "deleted from the list": delete_selected,
}
every_removal = pytest.mark.parametrize("remove_administrator", REMOVALS.values(), ids=REMOVALS.keys())


def is_admin(user: User) -> bool:
    stored_user = User.objects.filter(pk=user.pk).first()
    return stored_user is not None and stored_user.is_superuser


@every_removal
def test_last_administrator_cannot_be_removed(as_alice: Client, alice: User, remove_administrator: Removal):
    version_before = alice.sys_version
    response = remove_administrator(as_alice, alice)

    assert is_admin(alice)
    assert alice.refreshed().sys_version == version_before
    assert not LogEntry.objects.exists() and not DeletionLogEntry.objects.exists(), (
        "nothing changed and nothing was logged"
    )
    assert b"At least one active user must have the role admin" in as_alice.get(response["Location"]).content


@every_removal
def test_administrator_can_be_removed_if_there_is_another(as_alice: Client, alice: User, remove_administrator: Removal):
    make_user("anna", "admin")
    remove_administrator(as_alice, alice)

    assert not is_admin(alice)


@every_removal
def test_inactive_administrator_does_not_count(as_alice: Client, alice: User, remove_administrator: Removal):
    make_user("anna", "admin", active=False)
    remove_administrator(as_alice, alice)

    assert is_admin(alice)


@every_removal
def test_administrator_through_another_role_counts(as_alice: Client, alice: User, remove_administrator: Removal):
    admin_role = Role.objects.get(name="admin")
    outer = Role.objects.create(name="outer", contains=[Role.objects.create(name="inner", contains=[admin_role.pk]).pk])
    UserRole.objects.create(user=make_user("anna"), role=outer)
    remove_administrator(as_alice, alice)

    assert not is_admin(alice)


def test_other_users_can_be_changed(as_alice: Client, bob: User):
    submit_user_form(as_alice, bob, active="off")

    assert not bob.refreshed().active
    assert delete_selected(as_alice, bob).status_code == 302
    assert not User.objects.filter(login="bob").exists()


@pytest.fixture
def role_with_admin(alice: User) -> Role:
    """The only role through which alice is an administrator."""
    role = Role.objects.create(name="keeper", contains=[Role.objects.get(name="admin").pk])
    UserRole.objects.create(user=alice, role=role)
    alice.grants.filter(role__name="admin").delete()
    return role


ROLE_REMOVALS: dict[str, tuple[str, dict[str, Any]]] = {
    "emptied": ("/admin/accounts/role/{pk}/change/", {"name": "keeper", "description": "", "contains": []}),
    "deleted": ("/admin/accounts/role/{pk}/delete/", {"post": "yes"}),
    "deleted from the list": ("/admin/accounts/role/", {"action": "delete_selected", "post": "yes"}),
}


@pytest.mark.parametrize(("path", "form"), ROLE_REMOVALS.values(), ids=ROLE_REMOVALS.keys())
def test_role_of_the_last_administrator_cannot_be_removed(
    as_alice: Client, alice: User, role_with_admin: Role, path: str, form: dict[str, Any]
):
    response = as_alice.post(path.format(pk=role_with_admin.pk), {**form, "_selected_action": role_with_admin.pk})

    assert is_admin(alice)
    assert b"At least one active user must have the role admin" in as_alice.get(response["Location"]).content


@pytest.mark.django_db(transaction=True)
def test_two_concurrent_removals_leave_one_administrator():
    """Each transaction still sees the other administrator; without a lock, none would remain."""
    admins = [make_user("alice", "admin"), make_user("anna", "admin")]
    barrier = threading.Barrier(2)

    def remove_own_role(user: User) -> bool:
        try:
            with ensure_admin_remains():
                UserRole.objects.filter(user=user).delete()
                barrier.wait()
            return True
        except NoAdminLeft:
            return False
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(remove_own_role, admins)) == [False, True]
    assert UserRole.objects.filter(role__name="admin").count() == 1


def test_removing_the_last_administrator_raises_conflict(alice: User):
    with pytest.raises(Conflict) as exc_info, ensure_admin_remains():
        UserRole.objects.filter(user=alice).delete()

    assert (exc_info.value.status, exc_info.value.code) == (409, "last_admin")
    assert "At least one active user must have the role admin" in exc_info.value.message
    assert is_admin(alice)


def test_changes_are_allowed_without_any_administrator(bob: User):
    """For example after a restore: the check must not block changes if there is no administrator to protect."""
    with ensure_admin_remains():
        bob.first_name = "Robert"
        bob.save()
    with ensure_admin_remains():
        UserRole.objects.create(user=bob, role=Role.objects.get(name="admin"))
    assert is_admin(bob) and bob.refreshed().first_name == "Robert"

    with pytest.raises(NoAdminLeft), ensure_admin_remains():
        bob.delete()

"""Roles that contain roles: effective rights, cycles and deletions."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts import roles
from accounts.models import Role, User, UserRole
from system.models import DeletionLogEntry


def create_chain(*names: str) -> list[Role]:
    """Creates roles, each of which contains the next."""
    chain: list[Role] = []
    for name in reversed(names):
        chain.insert(0, Role.objects.create(name=name, contains=[chain[0].pk] if chain else []))
    return chain


def validation_errors(role: Role) -> dict[str, list[str]]:
    with pytest.raises(ValidationError) as exc_info:
        role.full_clean()
    return exc_info.value.message_dict


def test_containment_is_transitive(bob: User):
    first_role, *_, last_role = create_chain("a", "b", "c", "d", "e")
    UserRole.objects.create(user=bob, role=first_role)

    assert bob.role_names == {"a", "b", "c", "d", "e"}
    assert roles.effective_names([last_role.pk]) == {"e"}, "a role does not include the roles that contain it"
    assert roles.containing_ids(last_role.pk) == set(
        Role.objects.filter(name__in="abcde").values_list("sys_id", flat=True)
    )
    assert roles.containing_ids(first_role.pk) == {first_role.pk}


def test_role_contained_several_times_counts_once(db: None):
    (top, _, bottom), right = create_chain("top", "left", "bottom"), Role.objects.create(name="right")
    right.contains = [bottom.pk]
    right.save()
    top.contains = [*top.contains, right.pk]
    top.save()

    assert roles.effective_names([top.pk]) == {"top", "left", "right", "bottom"}
    assert roles.containing_ids(bottom.pk) >= {top.pk, right.pk}


def test_no_roles_cost_no_query(db: None):
    with CaptureQueriesContext(connection) as queries:
        assert roles.effective_names([]) == frozenset()
    assert len(queries) == 0


def test_nested_roles_cost_one_query(bob: User):
    UserRole.objects.create(user=bob, role=create_chain(*(f"level {number}" for number in range(30)))[0])

    with CaptureQueriesContext(connection) as queries:
        assert len(bob.role_names) == 30
    assert len(queries) == 1


@pytest.mark.parametrize("length", [1, 2, 5])
def test_role_cannot_contain_itself(db: None, length: int):  # B76
    chain = create_chain(*(f"level {number}" for number in range(length)))
    chain[-1].contains = [chain[0].pk]

    assert validation_errors(chain[-1]).keys() == {"contains"}


def test_loop_between_other_roles_does_not_prevent_saving(db: None):
    """A loop created by SQL must not prevent saving another role."""
    first_role, second_role = create_chain("first", "second")
    Role.objects.filter(pk=second_role.pk).update(contains=[first_role.pk])
    containing_role = Role.objects.create(name="above")
    containing_role.contains = [first_role.pk]

    containing_role.full_clean()


@pytest.mark.parametrize("length", [1, 2, 5])
def test_loop_created_by_sql_terminates(bob: User, length: int):  # B76
    chain = create_chain(*(f"level {number}" for number in range(length)))
    Role.objects.filter(pk=chain[-1].pk).update(contains=[chain[0].pk])
    UserRole.objects.create(user=bob, role=chain[0])
    names = {role.name for role in chain}

    assert bob.role_names == names
    assert roles.containing_ids(chain[0].pk) == {role.pk for role in chain}


def test_unknown_contained_ids_are_dropped(db: None):
    role = Role.objects.create(name="role")
    other_role = Role.objects.create(name="other")
    role.contains = ["missing", other_role.pk, other_role.pk]
    role.full_clean()

    assert role.contains == [other_role.pk]
    assert roles.effective_names(["missing"]) == frozenset()


def test_deleted_role_is_removed_from_containing_roles(bob: User):
    containing_role, deleted_role, contained_role = create_chain("above", "gone", "below")
    UserRole.objects.create(user=bob, role=containing_role)
    version_before = containing_role.refreshed().sys_version
    deleted_role.delete()

    assert containing_role.refreshed().contains == []
    assert containing_role.sys_version == version_before + 1
    assert containing_role.history.count() == 2, "the user who deleted the role is recorded"
    assert User.objects.get(pk=bob.pk).role_names == {"above"}
    assert Role.objects.filter(pk=contained_role.pk).exists()


def test_chain_of_roles_can_be_deleted_together(db: None):
    create_chain("a", "b", "c")
    Role.objects.filter(name__in="abc").delete()

    assert DeletionLogEntry.objects.filter(table="sys_role").count() == 3


def test_deleted_role_is_revoked(sonja: User):
    role = Role.objects.create(name="gone")
    UserRole.objects.create(user=sonja, role=role)
    role.delete()

    assert User.objects.get(pk=sonja.pk).role_names == {"sso_admin"}


def test_shipped_roles_exist(db: None):
    grantable_by_role = dict(Role.objects.values_list("name", "grantable_by_sign_in"))

    assert grantable_by_role == {
        "admin": False,
        "sso_admin": False,
        "collection_admin": False,
        "itil": True,
        "monitoring": False,
    }


def test_changed_shipped_role_survives_an_upgrade(db: None):
    Role.objects.filter(name="itil").update(description="Ours", grantable_by_sign_in=False)
    Role.objects.filter(name="monitoring").delete()  # as in a version that did not ship it
    roles.create_shipped_roles()

    assert Role.objects.values("description", "grantable_by_sign_in").get(name="itil") == {
        "description": "Ours",
        "grantable_by_sign_in": False,
    }
    assert Role.objects.filter(name="monitoring").exists()


@pytest.mark.parametrize("name", ["", " itil", "itil ", "it\x07il", "it\nil", "itil"])
def test_confusable_name_is_refused(db: None, name: str):
    assert validation_errors(Role(name=name)).keys() == {"name"}


def test_admin_has_every_role_and_others_only_their_own(alice: User, sonja: User):
    names: Any = Role.objects.values_list("name", flat=True)

    assert all(alice.has_role(name) for name in names)
    assert [name for name in names if sonja.has_role(name)] == ["sso_admin"]


@pytest.mark.parametrize("name", roles.SHIPPED_ROLES)
def test_shipped_role_cannot_be_deleted_by_any_route(db: None, name: str):
    role = Role.objects.get(name=name)
    with pytest.raises(ValidationError, match="part of the product"):
        role.delete()

    role.name = "renamed"
    assert "name" in validation_errors(role)
    for change in (role.save, role.delete):
        with pytest.raises(ValidationError, match="part of the product"):
            change()
    assert Role.objects.filter(name=name).exists()


def test_shipped_role_can_be_described_and_custom_role_renamed_and_deleted(db: None):
    itil, desk = Role.objects.get(name="itil"), Role.objects.create(name="desk")
    itil.description, desk.name = "Ours", "front desk"
    itil.save()
    desk.save()

    assert (itil.refreshed().description, desk.refreshed().name) == ("Ours", "front desk")
    desk.delete()
    assert not Role.objects.filter(name="front desk").exists()

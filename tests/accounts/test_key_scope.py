"""A key has the roles that both the key and its user have at the time of the request."""

import itertools
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from accounts.authentication import access_keys
from accounts.models import AccessKey, Role, User, UserRole
from tests.accounts.callers import bearer_auth, get_me
from tests.support.users import make_user

ROLE_NAMES = [f"r{number}" for number in range(5)]
user_numbers = itertools.count()
role_subsets = st.lists(st.sampled_from(range(len(ROLE_NAMES))), unique=True, max_size=3)
role_graphs = st.lists(role_subsets, min_size=len(ROLE_NAMES), max_size=len(ROLE_NAMES))


def roles_of(key: str) -> set[str]:
    access_keys.KEY_CACHE.clear()
    response = get_me(bearer_auth(key))
    assert response.status_code == 200
    return set(response.json()["roles"])


def grant(user: User, *roles: Role) -> None:
    for role in roles:
        UserRole.objects.create(user=user, role=role)


def reachable_roles(graph: list[list[int]], start_roles: list[int]) -> set[str]:
    """The definition without optimization: follows the graph until it finds no new role."""
    reached_roles: set[int] = set()
    frontier = set(start_roles)
    while frontier:
        reached_roles |= frontier
        frontier = {child for role in frontier for child in graph[role]} - reached_roles
    return {ROLE_NAMES[role] for role in reached_roles}


class TestIntersection(TestCase):
    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(graph=role_graphs, granted_numbers=role_subsets, scope=role_subsets, revoked_numbers=role_subsets)
    def test_permissions_are_the_intersection_of_key_and_user(
        self, graph: list[list[int]], granted_numbers: list[int], scope: list[int], revoked_numbers: list[int]
    ):
        """Graphs may have cycles, revoking a role takes effect immediately, and an empty scope restricts nothing."""
        roles = [Role.objects.create(name=name) for name in ROLE_NAMES]
        for role, contained_numbers in zip(roles, graph, strict=True):
            Role.objects.filter(pk=role.pk).update(contains=[roles[number].pk for number in contained_numbers])
        user = User.objects.create_user(f"user{next(user_numbers)}")
        grant(user, *(roles[number] for number in granted_numbers))
        key = access_keys.create_key(user, "script", expires_at=None, scope=[roles[number].pk for number in scope])

        def expected_roles(held_numbers: list[int]) -> set[str]:
            roles_of_user = reachable_roles(graph, held_numbers)
            return roles_of_user & reachable_roles(graph, scope) if scope else roles_of_user

        assert roles_of(key) == expected_roles(granted_numbers)
        UserRole.objects.filter(user=user, role__in=[roles[number] for number in revoked_numbers]).delete()
        assert roles_of(key) == expected_roles([number for number in granted_numbers if number not in revoked_numbers])


def test_scoped_key_of_an_administrator_has_only_its_scope(alice: User):
    itil = Role.objects.get(name="itil")

    assert roles_of(access_keys.create_key(alice, "all", expires_at=None)) == {"admin"}
    assert roles_of(access_keys.create_key(alice, "narrow", expires_at=None, scope=[itil.pk])) == {"itil"}


def test_key_scoped_to_admin_grants_nothing_to_others(bob: User):
    scope = [Role.objects.get(name="admin").pk]

    assert roles_of(access_keys.create_key(bob, "script", expires_at=None, scope=scope)) == set()


def test_scoped_administrator_is_not_an_administrator(alice: User):
    key = access_keys.create_key(alice, "narrow", expires_at=None, scope=[Role.objects.get(name="itil").pk])
    user: Any = access_keys.find_owner(key)

    assert not user.is_superuser and not user.is_staff and not user.has_role("sso_admin")
    assert user.has_role("itil")


def test_key_scope_does_not_affect_other_keys(sonja: User):
    itil = Role.objects.get(name="itil")
    scoped_key = access_keys.create_key(sonja, "narrow", expires_at=None, scope=[itil.pk])
    unscoped_key = access_keys.create_key(sonja, "whole", expires_at=None)

    for _ in range(2):
        assert get_me(bearer_auth(scoped_key)).json()["roles"] == []
        assert get_me(bearer_auth(unscoped_key)).json()["roles"] == ["sso_admin"]


def test_role_granted_later_applies_to_the_key(bob: User):
    itil = Role.objects.get(name="itil")
    key = access_keys.create_key(bob, "script", expires_at=None, scope=[itil.pk])
    assert roles_of(key) == set()

    grant(bob, itil)
    assert roles_of(key) == {"itil"}


def test_revoked_role_applies_to_the_next_request(sonja: User):
    key = access_keys.create_key(sonja, "script", expires_at=None)
    assert get_me(bearer_auth(key)).json()["roles"] == ["sso_admin"]
    sonja.grants.all().delete()

    assert get_me(bearer_auth(key)).json()["roles"] == []


def test_deleted_role_is_removed_from_scopes(db: None):
    user, deleted_role, kept_role = (
        make_user("dora"),
        Role.objects.create(name="gone"),
        Role.objects.create(name="stays"),
    )
    grant(user, deleted_role, kept_role)
    key = access_keys.create_key(user, "both", expires_at=None, scope=[deleted_role.pk, kept_role.pk])
    deleted_role.delete()

    assert roles_of(key) == {"stays"}
    assert AccessKey.objects.get().scope == [kept_role.pk]


def test_key_scoped_only_to_a_deleted_role_is_deleted(alice: User):
    deleted_role = Role.objects.create(name="gone")
    key = access_keys.create_key(alice, "only", expires_at=None, scope=[deleted_role.pk])
    duplicate_key = access_keys.create_key(alice, "only", expires_at=None, scope=[deleted_role.pk, deleted_role.pk])
    deleted_role.delete()

    assert [get_me(bearer_auth(key)).status_code for key in (key, duplicate_key)] == [401, 401]
    assert not AccessKey.objects.exists()


def test_key_is_deleted_with_all_roles_of_its_scope(alice: User):
    roles = [Role.objects.create(name=name) for name in ("one", "two")]
    key = access_keys.create_key(alice, "both", expires_at=None, scope=[role.pk for role in roles])
    Role.objects.filter(name__in=["one", "two"]).delete()

    assert get_me(bearer_auth(key)).status_code == 401


def test_key_whose_only_role_was_deleted_by_sql_has_no_permissions(alice: User):
    """SQL bypasses the rules of the product, but must not leave an unrestricted key."""
    deleted_role = Role.objects.create(name="gone")
    key = access_keys.create_key(alice, "only", expires_at=None, scope=[deleted_role.pk])
    Role.objects.filter(pk=deleted_role.pk)._raw_delete("default")

    assert roles_of(key) == set()

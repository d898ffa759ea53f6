"""A connection changed by a user without the role admin waits for an administrator."""

from typing import Any

import pytest

from accounts.models import User
from sso.connections.saving import save_connection
from sso.models import OidcSetting
from system.errors import AccessDenied
from system.records import acting_user
from tests.conftest import make_user
from tests.sso.connections import make

pytestmark = pytest.mark.django_db  # A57

DECISIVE = {
    "url_idp": "https://mine.example.com",
    "realm": "other",
    "client_id": "mine",
    "user_field": "login",
    "script": "function map(claims) { return {login: claims.sub, email: claims.email} }",
    "role_claim": "groups",
    "enable_user_creation": True,
    "ignore_case": True,
    "enable_role_mapping": True,
    "update_data_when_login": True,
    "authorization_type": "code",
    "response_type": "id_token",
    "active": True,
}


def change(setting: OidcSetting, by: User | None, **columns: Any) -> OidcSetting:
    setting = setting.refreshed()
    with acting_user.acting_as(by.pk if by else None):
        for name, value in columns.items():
            setattr(setting, name, value)
        save_connection(setting)
    return setting.refreshed()


@pytest.mark.parametrize("column", DECISIVE)
def test_what_decides_who_may_come_in_marks_it(sonja: User, column: str):
    assert change(make(), sonja, **{column: DECISIVE[column]}).needs_approval


@pytest.mark.parametrize(
    ("column", "value"), [("name", "Renamed"), ("scope", "openid email"), ("redirect_uri", "http://testserver/x")]
)
def test_the_rest_does_not(sonja: User, column: str, value: str):
    assert not change(make(), sonja, **{column: value}).needs_approval


def test_switching_it_off_does_not(sonja: User):
    assert not change(make(active=True), sonja, active=False).needs_approval


def test_a_new_one_is_marked_and_one_of_an_administrator_or_a_script_is_not(sonja: User, alice: User):
    for by, is_marked in ((sonja, True), (alice, False), (None, False)):
        with acting_user.acting_as(by.pk if by else None):
            assert make().needs_approval is is_marked


def approve(setting: OidcSetting, by: User) -> OidcSetting:
    with acting_user.acting_as(by.pk):
        setting.refreshed().approve(as_seen=str(setting.refreshed().sys_version))
    return setting.refreshed()


def test_the_mark_stays_until_a_holder_of_admin_approves(sonja: User, alice: User):
    setting = change(make(), sonja, client_id="mine")
    setting = change(setting, sonja, name="Harmless", client_id="servicebase")
    assert setting.needs_approval, "changed back is changed"
    assert change(setting, None, name="By the system").needs_approval
    assert change(setting, alice, name="By an administrator").needs_approval
    assert not approve(setting, alice).needs_approval
    assert not change(setting, alice, client_id="theirs").needs_approval


def test_a_role_that_contains_admin_counts(sonja: User, alice: User):
    from accounts.models import Role

    Role.objects.create(name="chief", contains=[Role.objects.get(name="admin").pk])
    chief = make_user("chief", "chief")
    setting = change(make(), sonja, client_id="mine")
    assert not approve(setting, chief).needs_approval
    assert not change(setting, chief, client_id="theirs").needs_approval


def test_only_a_holder_of_admin_approves(sonja: User, alice: User):
    setting = change(make(), sonja, client_id="mine")
    with pytest.raises(AccessDenied):
        approve(setting, sonja)
    assert setting.refreshed().needs_approval
    assert not approve(setting, alice).needs_approval
    entry = setting.history.latest()
    assert (entry.needs_approval, entry.history_user_id) == (False, alice.pk)


def test_nobody_takes_the_mark_off_by_the_way(sonja: User):
    setting = change(make(), sonja, client_id="mine")
    assert change(setting, sonja, needs_approval=False).needs_approval
    assert change(setting, None, needs_approval=False).needs_approval


def test_an_account_that_lost_the_role_is_trusted_no_more(sonja: User, alice: User):
    alice.grants.all().delete()
    assert change(make(), alice, client_id="mine").needs_approval


def test_endpoints_that_moved_are_marked_when_sonja_adopts_them(sonja: User, alice: User):
    from dataclasses import replace

    for by, is_marked in ((sonja, True), (alice, False), (None, False)):
        setting = make()
        assert setting.endpoints is not None
        with acting_user.acting_as(by.pk if by else None):
            setting.store_endpoints(replace(setting.endpoints, token="https://mine.example.com/token"))
        assert setting.refreshed().needs_approval is is_marked

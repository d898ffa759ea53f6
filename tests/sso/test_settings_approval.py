"""A connection changed by a user without the role admin waits for an administrator."""

from typing import Any

import pytest

from accounts.models import User
from sso.connections.saving import save_connection
from sso.models import OidcSetting
from system.errors import AccessDenied
from system.records import acting_user
from tests.sso.connections import make_connection
from tests.support.users import make_user

pytestmark = pytest.mark.django_db  # A57

CHANGES_REQUIRING_APPROVAL = {
    "url_idp": "https://mine.example.com",
    "realm": "other",
    "client_id": "mine",
    "user_field": "login",
    "script": "function map(claims) { return {login: claims.sub, email: claims.email} }",
    "role_claim": "groups",
    "group_claim": "groups",
    "enable_user_creation": True,
    "ignore_case": True,
    "enable_role_mapping": True,
    "update_data_when_login": True,
    "authorization_type": "code",
    "response_type": "id_token",
    "active": True,
}


def change_setting(setting: OidcSetting, user: User | None, **columns: Any) -> OidcSetting:
    setting = setting.refreshed()
    with acting_user.acting_as(user.pk if user else None):
        for name, value in columns.items():
            setattr(setting, name, value)
        save_connection(setting)
    return setting.refreshed()


@pytest.mark.parametrize("column", CHANGES_REQUIRING_APPROVAL)
def test_some_columns_require_approval(sonja: User, column: str):
    assert change_setting(make_connection(), sonja, **{column: CHANGES_REQUIRING_APPROVAL[column]}).needs_approval


@pytest.mark.parametrize(
    ("column", "value"), [("name", "Renamed"), ("scope", "openid email"), ("redirect_uri", "http://testserver/x")]
)
def test_other_columns_require_no_approval(sonja: User, column: str, value: str):
    assert not change_setting(make_connection(), sonja, **{column: value}).needs_approval


def test_deactivating_requires_no_approval(sonja: User):
    assert not change_setting(make_connection(active=True), sonja, active=False).needs_approval


def test_a_new_connection_requires_approval_unless_trusted(sonja: User, alice: User):
    for user, needs_approval in ((sonja, True), (alice, False), (None, False)):
        with acting_user.acting_as(user.pk if user else None):
            assert make_connection().needs_approval is needs_approval


def approve_setting(setting: OidcSetting, user: User) -> OidcSetting:
    with acting_user.acting_as(user.pk):
        setting.refreshed().approve(reviewed_version=str(setting.refreshed().sys_version))
    return setting.refreshed()


def test_approval_remains_required_until_an_administrator_approves(sonja: User, alice: User):
    setting = change_setting(make_connection(), sonja, client_id="mine")
    setting = change_setting(setting, sonja, name="Harmless", client_id="servicebase")
    assert setting.needs_approval, "reverting a change is also a change"
    assert change_setting(setting, None, name="By the system").needs_approval
    assert change_setting(setting, alice, name="By an administrator").needs_approval
    assert not approve_setting(setting, alice).needs_approval
    assert not change_setting(setting, alice, client_id="theirs").needs_approval


def test_a_role_that_contains_admin_is_trusted(sonja: User, alice: User):
    from accounts.models import Role

    Role.objects.create(name="chief", contains=[Role.objects.get(name="admin").pk])
    chief = make_user("chief", "chief")
    setting = change_setting(make_connection(), sonja, client_id="mine")
    assert not approve_setting(setting, chief).needs_approval
    assert not change_setting(setting, chief, client_id="theirs").needs_approval


def test_only_an_administrator_approves(sonja: User, alice: User):
    setting = change_setting(make_connection(), sonja, client_id="mine")
    with pytest.raises(AccessDenied):
        approve_setting(setting, sonja)
    assert setting.refreshed().needs_approval
    assert not approve_setting(setting, alice).needs_approval
    entry = setting.history.latest()
    assert (entry.needs_approval, entry.history_user_id) == (False, alice.pk)


def test_no_other_save_approves_the_connection(sonja: User):
    setting = change_setting(make_connection(), sonja, client_id="mine")
    assert change_setting(setting, sonja, needs_approval=False).needs_approval
    assert change_setting(setting, None, needs_approval=False).needs_approval


def test_an_account_without_the_role_is_no_longer_trusted(sonja: User, alice: User):
    alice.grants.all().delete()
    assert change_setting(make_connection(), alice, client_id="mine").needs_approval


def test_adopting_moved_endpoints_requires_approval(sonja: User, alice: User):
    from dataclasses import replace

    for user, needs_approval in ((sonja, True), (alice, False), (None, False)):
        setting = make_connection()
        assert setting.endpoints is not None
        with acting_user.acting_as(user.pk if user else None):
            setting.store_endpoints(replace(setting.endpoints, token_endpoint="https://mine.example.com/token"))
        assert setting.refreshed().needs_approval is needs_approval

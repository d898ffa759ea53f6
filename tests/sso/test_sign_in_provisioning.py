"""Accounts that a sign-in creates or updates, and connections that require approval."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from accounts.models import User
from sso.models import IdentityLink, OidcSetting, ProviderSession, SignIn
from sso.scripts.mapping_script import DEFAULT_SCRIPT
from system import properties
from tests.providers.hostile import HostileProvider
from tests.providers.signing import ABSENT
from tests.sso.sign_ins import Browser, check_refusal, make_active_connection, make_ann
from tests.support.users import make_user
from tests.tableapi.world import api

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(provider: HostileProvider) -> Browser:
    return Browser(provider)


def test_an_unknown_user_is_refused_unless_creation_is_enabled(browser: Browser):
    setting = make_active_connection(browser.provider)
    check_refusal(browser.sign_in(), "user_unknown", 401)
    setting.enable_user_creation = True
    setting.save()

    assert browser.sign_in().status_code == 302
    user = User.objects.get()
    assert (user.login, user.email, user.active) == ("ann", "ann@example.com", True)
    assert not user.has_usable_password() and not user.role_names
    assert user.sys_created_by is None
    assert SignIn.objects.latest("sys_id").detail == "The account was created."


@pytest.mark.parametrize("claim", ["email", "preferred_username"])
def test_an_account_needs_login_and_email(browser: Browser, claim: str):
    """ "The two mandatory fields email and login"."""
    user_field = "login" if claim == "email" else "email"
    script = "function map(c) { return {login: c.preferred_username, email: c.email} }"
    make_active_connection(browser.provider, user_field=user_field, enable_user_creation=True, script=script)
    browser.provider.person[claim] = ABSENT

    check_refusal(browser.sign_in(), "profile_invalid", 401)
    assert not User.objects.exists()


def test_a_created_account_cannot_sign_in_with_a_password(browser: Browser):
    make_active_connection(browser.provider, enable_user_creation=True)
    browser.sign_in()
    for password in ("", "!", "ann"):
        page = browser.client.post("/login/", {"login": "ann", "password": password})
        assert page.status_code in (302, 400, 401)
        assert (
            Browser(browser.provider).client.post("/login/", {"login": "ann", "password": password}).status_code != 302
        )


@pytest.mark.parametrize(
    "login", ["admin", "ADMIN", "Admin", "\uff41dmin", "system", "root", "administrator", "sso_admin", "guest"]
)
def test_a_reserved_login_gets_no_account(browser: Browser, login: str):  # A49
    make_active_connection(browser.provider, enable_user_creation=True)
    browser.provider.person["preferred_username"] = login

    check_refusal(browser.sign_in(), "login_reserved", 401)
    assert not User.objects.exists()


def test_a_login_of_another_account_gets_no_account(browser: Browser):
    make_active_connection(browser.provider, user_field="email", enable_user_creation=True)
    User.objects.create_user("ann", email="another@example.com")

    check_refusal(browser.sign_in(), "login_taken", 403)
    assert User.objects.count() == 1 and not IdentityLink.objects.exists()


def test_an_equivalent_login_gets_no_account(browser: Browser):
    properties.put(properties.CASE_SENSITIVE, "false")
    make_active_connection(browser.provider, user_field="email", enable_user_creation=True)
    User.objects.create_user("ANN", email="another@example.com")

    check_refusal(browser.sign_in(), "login_taken", 403)


def test_the_script_determines_the_profile(browser: Browser):  # A42
    script = """function map(c) { return {login: c.preferred_username, email: c.email, first_name: c.given_name,
      last_name: c.family_name, phone: c.phone_number, password: 'x', active: false, sys_id: '1'} }"""
    setting = make_active_connection(browser.provider, enable_user_creation=True)
    OidcSetting.objects.filter(pk=setting.pk).update(script=script)  # stored before scripts were checked
    browser.provider.person |= {"given_name": "A\x07nn" + "n" * 200, "family_name": ["x"], "phone_number": 12345}
    browser.sign_in()

    user = User.objects.get()
    assert user.first_name == "Ann" + "n" * 147 and user.last_name == "" and user.phone == "12345"
    assert user.active and not user.has_usable_password() and user.sys_id != "1"
    assert "last_name is not text." in SignIn.objects.get().detail


@pytest.mark.parametrize(
    "script", ["function map(c) { for (;;) {} }", "function map(c) { throw new Error('no <b>number</b>') }", "broken ("]
)
def test_a_failing_script_refuses_the_sign_in_and_stores_nothing(browser: Browser, script: str):  # A41
    setting = make_active_connection(browser.provider, enable_user_creation=True)
    OidcSetting.objects.filter(pk=setting.pk).update(script=script)
    response = browser.sign_in()

    entry = check_refusal(response, "script_error", 401)
    assert entry.detail and not User.objects.exists() and not IdentityLink.objects.exists()
    assert entry.detail.encode() not in response.content, "only administrators see the reason"


def test_concurrent_first_sign_ins_create_one_account(transactional_db: None, provider: HostileProvider):  # A50
    make_active_connection(provider, enable_user_creation=True, enable_role_mapping=True)
    provider.claims = {"roles": ["itil", "new one", "new two"]}
    callbacks = [(browser := Browser(provider), browser.authorize(browser.start())) for _ in range(6)]

    def return_to_callback(callback: tuple[Browser, str]) -> int:
        browser, callback_url = callback
        try:
            while (response := browser.follow_callback(callback_url)).status_code == 503:
                pass
            return int(response.status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(return_to_callback, callbacks)) == [302] * 6
    assert User.objects.count() == IdentityLink.objects.count() == 1
    assert User.objects.get().grants.count() == 3


# Updates of existing accounts.


def test_with_update_data_the_profile_is_refreshed(browser: Browser):
    make_active_connection(browser.provider, update_data_when_login=True)
    user = make_ann(email="old@example.com", phone="1")
    browser.sign_in()
    assert user.refreshed().email == "ann@example.com" and user.refreshed().phone == "1"

    browser.provider.person |= {"email": "new@example.com", "preferred_username": "ann.new"}
    browser.sign_in()
    user = user.refreshed()
    assert (user.email, user.login) == ("new@example.com", "ann.new")
    assert user.sys_updated_by is None


def test_without_update_data_the_profile_is_kept(browser: Browser):
    make_active_connection(browser.provider)
    user = make_ann(email="old@example.com")
    browser.sign_in()

    assert user.refreshed().email == "old@example.com"


def test_an_update_without_differences_changes_nothing(browser: Browser):
    make_active_connection(browser.provider, update_data_when_login=True)
    user = make_ann()
    version_before = user.refreshed().sys_version
    browser.sign_in()

    assert user.refreshed().sys_version == version_before


@pytest.mark.parametrize("login", ["bob", "admin", "a:b"])
def test_a_login_that_cannot_be_used_is_kept(browser: Browser, login: str, bob: User):
    make_active_connection(browser.provider, update_data_when_login=True)
    user = make_ann()
    browser.sign_in()
    browser.provider.person |= {"preferred_username": login, "email": "new@example.com"}

    assert browser.sign_in().status_code == 302
    assert (user.refreshed().login, user.refreshed().email) == ("ann", "new@example.com")
    assert "login" in SignIn.objects.latest("sys_id").detail


# Approval of a changed connection.


def test_protected_accounts_require_an_approved_connection(browser: Browser):  # A57
    setting = make_active_connection(browser.provider, update_data_when_login=True)
    OidcSetting.objects.filter(pk=setting.pk).update(needs_approval=True)
    admin_user = make_user("ann", "admin", email="old@example.com")

    check_refusal(browser.sign_in(), "not_approved", 403)
    assert browser.login is None
    assert admin_user.refreshed().email == "old@example.com" and not IdentityLink.objects.exists(), "nothing is stored"

    OidcSetting.objects.filter(pk=setting.pk).update(needs_approval=False)
    assert browser.sign_in().status_code == 302


def test_other_accounts_require_no_approval(browser: Browser):  # A57
    setting = make_active_connection(browser.provider)
    OidcSetting.objects.filter(pk=setting.pk).update(needs_approval=True)
    make_user("ann", "itil")

    assert browser.sign_in().status_code == 302


def test_the_default_script_is_the_one_of_a_new_connection(browser: Browser):
    assert make_active_connection(browser.provider).script == DEFAULT_SCRIPT


def test_deleting_an_account_by_the_table_api_deletes_its_link(browser: Browser, alice: User):
    make_active_connection(browser.provider, enable_user_creation=True)
    browser.sign_in()
    first_user = User.objects.get(login="ann")
    assert browser.login == "ann"
    assert api(alice).delete(f"user/{first_user.pk}").status_code == 200

    assert browser.login is None
    assert not IdentityLink.objects.exists() and not ProviderSession.objects.exists()
    entry = SignIn.objects.latest("sys_id")
    assert (entry.outcome, entry.login, entry.user) == (SignIn.OK, "ann", None)

    browser.sign_in()
    assert User.objects.get(login="ann").pk != first_user.pk

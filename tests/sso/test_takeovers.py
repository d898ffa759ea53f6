"""Attempts to take over an account or gain rights through a connection."""

import subprocess
from threading import Thread
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connections
from django.test import Client

from accounts.models import Role, User, UserRole
from sso.backends import OidcBackend
from sso.connections.saving import save_connection
from sso.models import IdentityLink, OidcSetting
from sso.provider import request_slots
from system.errors import Conflict
from system.records import acting_user
from tests.config.stack import eventually
from tests.providers.hostile import HostileProvider
from tests.sso.sign_ins import Browser, check_refusal, make_active_connection, make_ann, refusal_code
from tests.support.users import make_user

SCRIPT_TEMPLATE = "function map(claims) {{ return {{login: '{login}', email: 'x@example.com'}} }}"


def change_setting(user: User, **columns: Any) -> None:
    with acting_user.acting_as(user.pk):
        setting = OidcSetting.objects.get()
        for name, value in columns.items():
            setattr(setting, name, value)
        save_connection(setting)


def approve_setting(user: User, version: int | None = None) -> None:
    with acting_user.acting_as(user.pk):
        setting = OidcSetting.objects.get()
        setting.approve(reviewed_version=str(setting.sys_version if version is None else version))


@pytest.mark.django_db(transaction=True)
def test_a_sign_in_in_progress_ends_with_its_connection(allow_http: None):  # A57
    """The callback loads the connection to the evil provider; before it continues, another one is approved."""
    alice, sonja = make_user("alice", "admin", email="alice@example.com"), make_user("sonja", "sso_admin")
    with HostileProvider() as trusted_provider, HostileProvider(realm="evil") as evil_provider:
        setting = make_active_connection(trusted_provider)
        connection_columns = {name: getattr(setting, name) for name in ("url_idp", "realm", "authorization_type")}
        evil_provider.client_secret = ""
        evil_provider.person = {"sub": "evil", "email": "alice@example.com", "preferred_username": "alice"}
        change_setting(sonja, url_idp=evil_provider.url_idp, realm="evil", authorization_type="pkce")
        browser = Browser(evil_provider)
        callback_url = browser.authorize(browser.start())
        release = evil_provider.hold("userinfo")
        responses = []

        def return_to_callback() -> None:
            responses.append(browser.follow_callback(callback_url))
            connections.close_all()

        return_thread = Thread(target=return_to_callback)
        return_thread.start()
        eventually(lambda: evil_provider.requests_to("userinfo"))
        change_setting(sonja, **connection_columns)
        approve_setting(alice)
        release.set()
        return_thread.join()

    assert (responses[0].status_code, refusal_code(responses[0])) == (503, "not_available")
    assert browser.login is None and IdentityLink.objects.count() == 0


@pytest.mark.django_db
class TestWithoutApproval:
    @pytest.fixture(autouse=True)
    def restricted_connection(self, provider: HostileProvider, alice: User, sonja: User) -> None:
        make_active_connection(provider)
        self.alice, self.sonja, self.browser = alice, sonja, Browser(provider)

    @pytest.mark.parametrize("role", ["admin", "sso_admin", "collection_admin"])
    def test_sign_in_to_an_account_with_a_protected_role_is_refused(self, role: str):  # A57
        make_user("carl", role)
        change_setting(self.sonja, script=SCRIPT_TEMPLATE.format(login="carl"))
        assert (response := self.browser.sign_in()).status_code == 403 and refusal_code(response) == "not_approved"
        assert IdentityLink.objects.count() == 0

    def test_a_link_created_before_approval_stays_restricted(self, bob: User):
        script_before = OidcSetting.objects.get().script
        change_setting(self.sonja, script=SCRIPT_TEMPLATE.format(login="bob"))
        assert self.browser.sign_in().status_code == 302
        change_setting(self.sonja, script=script_before)
        approve_setting(self.alice)
        UserRole.objects.create(user=bob, role=Role.objects.get(name="collection_admin"))
        assert refusal_code(Browser(self.browser.provider).sign_in()) == "not_approved"

    def test_only_the_reviewed_version_can_be_approved(self):
        reviewed_version = OidcSetting.objects.get().sys_version
        change_setting(self.sonja, client_id="another")
        with pytest.raises(Conflict):
            approve_setting(self.alice, reviewed_version)
        assert OidcSetting.objects.get().needs_approval

    def test_an_administrator_who_saves_something_else_approves_nothing(self):
        change_setting(self.sonja, client_id="another")
        change_setting(self.alice, name="Renamed")
        assert OidcSetting.objects.get().needs_approval
        approve_setting(self.alice)
        assert not OidcSetting.objects.get().needs_approval


@pytest.mark.django_db
def test_a_user_cannot_claim_the_email_of_another(provider: HostileProvider):
    make_active_connection(provider, user_field="email", enable_user_creation=True)
    mallory = make_user("mallory", email="mallory@example.com")
    browser = Client()
    browser.force_login(mallory)
    browser.post("/account/", {"first_name": "M", "last_name": "", "phone": "", "email": "ann@example.com"})

    provider_browser = Browser(provider)
    assert provider_browser.sign_in().status_code == 302
    assert provider_browser.login == "ann" and mallory.refreshed().email == "mallory@example.com"


@pytest.mark.django_db
def test_an_unverified_email_is_not_stored(provider: HostileProvider):
    make_active_connection(provider, update_data_when_login=True)
    user = make_ann()
    assert Browser(provider).sign_in().status_code == 302
    provider.person |= {"email": "boss@example.com", "email_verified": False}
    assert Browser(provider).sign_in().status_code == 302
    assert user.refreshed().email == "ann@example.com"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("model", "is_deleted_before"),
    [(OidcSetting, True), (OidcSetting, False), (User, False)],
    ids=["early", "late", "user"],
)
def test_deletions_during_a_sign_in_end_it_cleanly(
    allow_http: None, monkeypatch: Any, model: Any, is_deleted_before: bool
):
    with HostileProvider() as provider:
        make_active_connection(provider)
        make_ann()
        original_method = OidcBackend.get_or_create_user

        def get_or_create_user(*arguments: Any) -> Any:
            if is_deleted_before:
                model.objects.all().delete()
            user = original_method(*arguments)
            model.objects.all().delete()
            return user

        monkeypatch.setattr(OidcBackend, "get_or_create_user", get_or_create_user)
        response = Browser(provider, Client(raise_request_exception=False)).sign_in()
    assert (response.status_code, refusal_code(response)) == (503, "not_available")


@pytest.mark.django_db
def test_without_a_process_for_the_script_the_sign_in_is_refused(provider: HostileProvider, monkeypatch: Any):
    make_active_connection(provider)
    make_ann()

    def refuse_process(*_: Any, **__: Any) -> Any:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse_process)
    response = Browser(provider, Client(raise_request_exception=False)).sign_in()
    assert (response.status_code, refusal_code(response)) == (503, "too_busy"), "the script is not reported as faulty"


@pytest.mark.django_db
def test_back_channel_logout_with_known_keys_needs_no_slot(provider: HostileProvider):
    make_active_connection(provider)
    make_ann()
    browser = Browser(provider)
    browser.sign_in()
    with request_slots.request_slot(), request_slots.request_slot():
        response = Client().post("/sso/backchannel-logout/", {"logout_token": provider.logout_token()})
    assert response.status_code == 200 and browser.login is None


class TestUnverifiedEmail:  # A44
    @pytest.fixture
    def active_provider(self, provider: HostileProvider) -> HostileProvider:
        make_active_connection(provider, user_field="email", enable_user_creation=True)
        provider.person |= {"sub": "sub-mallory", "preferred_username": "mallory", "email": "boss@example.com"}
        return provider

    @pytest.mark.django_db
    def test_unverified_email_does_not_match_an_account_of_another_user(self, active_provider: HostileProvider):
        active_provider.person["email_verified"] = False
        browser_of_mallory = Browser(active_provider)
        assert browser_of_mallory.sign_in().status_code == 302 and browser_of_mallory.login == "mallory"

        active_provider.person |= {"sub": "sub-boss", "preferred_username": "boss", "email_verified": True}
        browser_of_boss = Browser(active_provider)
        assert browser_of_boss.sign_in().status_code == 302 and browser_of_boss.login == "boss"

    @pytest.mark.django_db
    def test_unverified_email_creates_no_second_account(self, active_provider: HostileProvider):
        OidcSetting.objects.update(user_field="login")
        make_user("boss", "admin", email="Boss@example.com")
        active_provider.person["email_verified"] = False
        check_refusal(Browser(active_provider).sign_in(), "email_unverified", 403)
        active_provider.person["email"] = "mallory@example.com"
        assert Browser(active_provider).sign_in().status_code == 302

    @pytest.mark.django_db
    def test_email_matches_once_the_provider_verifies_it(self, active_provider: HostileProvider):
        active_provider.person["email_verified"] = False
        Browser(active_provider).sign_in()
        link = IdentityLink.objects.get()
        assert link.is_email_unverified
        active_provider.person |= {"email": "another@example.com", "email_verified": True}
        Browser(active_provider).sign_in()
        assert link.refreshed().is_email_unverified, "the limit of the other address is separate"
        active_provider.person["email"] = "boss@example.com"
        Browser(active_provider).sign_in()
        assert not link.refreshed().is_email_unverified


@pytest.mark.django_db
def test_sso_admin_cannot_open_a_protected_account_by_resetting_its_link(provider: HostileProvider):  # A57
    make_active_connection(provider)
    carl = make_user("ann", "collection_admin")
    Browser(provider).sign_in()
    sonja = make_user("sonja", "sso_admin")
    with acting_user.acting_as(sonja.pk), pytest.raises(ValidationError):
        IdentityLink.objects.get().delete()
    with acting_user.acting_as(make_user("alice", "admin").pk):
        IdentityLink.objects.get(user=carl).delete()

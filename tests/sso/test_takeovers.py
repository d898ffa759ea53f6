"""Ways into another account or to more rights that a connection must not open."""

import subprocess
from contextlib import ExitStack
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
from tests.sso.sign_ins import Browser, active, ann, code_of, refused
from tests.support.users import make_user

SCRIPT = "function map(claims) {{ return {{login: '{login}', email: 'x@example.com'}} }}"


def change(who: User, **columns: Any) -> None:
    with acting_user.acting_as(who.pk):
        setting = OidcSetting.objects.get()
        for name, value in columns.items():
            setattr(setting, name, value)
        save_connection(setting)


def approve(who: User, version: int | None = None) -> None:
    with acting_user.acting_as(who.pk):
        setting = OidcSetting.objects.get()
        setting.approve(as_seen=str(setting.sys_version if version is None else version))


@pytest.mark.django_db(transaction=True)
def test_a_sign_in_in_progress_ends_with_its_connection(http_allowed: None):  # A57
    """The record names the evil provider only while the callback loads it, and is approved before it goes on."""
    alice, sonja = make_user("alice", "admin", email="alice@example.com"), make_user("sonja", "sso_admin")
    with HostileProvider() as good, HostileProvider(realm="evil") as evil:
        setting = active(good)
        right = {name: getattr(setting, name) for name in ("url_idp", "realm", "authorization_type")}
        evil.client_secret = ""
        evil.person = {"sub": "evil", "email": "alice@example.com", "preferred_username": "alice"}
        change(sonja, url_idp=evil.url_idp, realm="evil", authorization_type="pkce")
        browser = Browser(evil)
        back = browser.back(browser.start())
        go = evil.hold("userinfo")
        responses = []

        def come() -> None:
            responses.append(browser.come(back))
            connections.close_all()

        coming = Thread(target=come)
        coming.start()
        eventually(lambda: evil.asked("userinfo"))
        change(sonja, **right)
        approve(alice)
        go.set()
        coming.join()

    assert (responses[0].status_code, code_of(responses[0])) == (503, "not_available")
    assert browser.login is None and IdentityLink.objects.count() == 0


@pytest.mark.django_db
class TestWithoutApproval:
    @pytest.fixture(autouse=True)
    def connected(self, provider: HostileProvider, alice: User, sonja: User) -> None:
        active(provider)
        self.alice, self.sonja, self.browser = alice, sonja, Browser(provider)

    @pytest.mark.parametrize("role", ["admin", "sso_admin", "collection_admin"])
    def test_nobody_gets_into_an_account_with_a_protected_role(self, role: str):  # A57
        make_user("carl", role)
        change(self.sonja, script=SCRIPT.format(login="carl"))
        assert (response := self.browser.sign_in()).status_code == 403 and code_of(response) == "not_approved"
        assert IdentityLink.objects.count() == 0

    def test_a_link_created_before_approval_stays_restricted(self, bob: User):
        right = OidcSetting.objects.get().script
        change(self.sonja, script=SCRIPT.format(login="bob"))
        assert self.browser.sign_in().status_code == 302
        change(self.sonja, script=right)
        approve(self.alice)
        UserRole.objects.create(user=bob, role=Role.objects.get(name="collection_admin"))
        assert code_of(Browser(self.browser.provider).sign_in()) == "not_approved"
        IdentityLink.objects.all().delete()

    def test_an_approval_is_of_what_was_seen(self):
        actual = OidcSetting.objects.get().sys_version
        change(self.sonja, client_id="another")
        with pytest.raises(Conflict):
            approve(self.alice, actual)
        assert OidcSetting.objects.get().needs_approval

    def test_an_administrator_who_saves_something_else_approves_nothing(self):
        change(self.sonja, client_id="another")
        change(self.alice, name="Renamed")
        assert OidcSetting.objects.get().needs_approval
        approve(self.alice)
        assert not OidcSetting.objects.get().needs_approval


@pytest.mark.django_db
def test_nobody_can_claim_the_address_of_another_user(provider: HostileProvider):
    active(provider, user_field="email", enable_user_creation=True)
    mallory = make_user("mallory", email="mallory@example.com")
    browser = Client()
    browser.force_login(mallory)
    browser.post("/account/", {"first_name": "M", "last_name": "", "phone": "", "email": "ann@example.com"})

    newcomer = Browser(provider)
    assert newcomer.sign_in().status_code == 302
    assert newcomer.login == "ann" and mallory.refreshed().email == "mallory@example.com"


@pytest.mark.django_db
def test_an_unverified_email_is_not_stored(provider: HostileProvider):
    active(provider, update_data_when_login=True)
    user = ann()
    assert Browser(provider).sign_in().status_code == 302
    provider.person |= {"email": "boss@example.com", "email_verified": False}
    assert Browser(provider).sign_in().status_code == 302
    assert user.refreshed().email == "ann@example.com"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("model", "is_before"), [(OidcSetting, True), (OidcSetting, False), (User, False)], ids=["early", "late", "user"]
)
def test_deletions_during_a_sign_in_end_it_cleanly(http_allowed: None, monkeypatch: Any, model: Any, is_before: bool):
    with HostileProvider() as idp:
        active(idp)
        ann()
        original = OidcBackend.get_or_create_user

        def get_or_create_user(*arguments: Any) -> Any:
            if is_before:
                model.objects.all().delete()
            user = original(*arguments)
            model.objects.all().delete()
            return user

        monkeypatch.setattr(OidcBackend, "get_or_create_user", get_or_create_user)
        response = Browser(idp, Client(raise_request_exception=False)).sign_in()
    assert (response.status_code, code_of(response)) == (503, "not_available")


@pytest.mark.django_db
def test_without_a_process_for_the_script_the_sign_in_is_refused(provider: HostileProvider, monkeypatch: Any):
    active(provider)
    ann()

    def none_left(*_: Any, **__: Any) -> Any:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", none_left)
    response = Browser(provider, Client(raise_request_exception=False)).sign_in()
    assert (response.status_code, code_of(response)) == (503, "too_busy"), "the script is not at fault"


@pytest.mark.django_db
def test_back_channel_logout_with_known_keys_needs_no_slot(provider: HostileProvider):
    active(provider)
    ann()
    browser = Browser(provider)
    browser.sign_in()
    with provider_is_busy():
        response = Client().post("/sso/backchannel-logout/", {"logout_token": provider.logout_token()})
    assert response.status_code == 200 and browser.login is None


def provider_is_busy() -> Any:

    stack = ExitStack()
    for _ in range(2):
        stack.enter_context(request_slots.request_slot())
    return stack


class TestAnAddressThatNobodyVouchesFor:  # A44
    @pytest.fixture
    def ours(self, provider: HostileProvider) -> HostileProvider:
        active(provider, user_field="email", enable_user_creation=True)
        provider.person |= {"sub": "sub-mallory", "preferred_username": "mallory", "email": "boss@example.com"}
        return provider

    @pytest.mark.django_db
    def test_its_owner_does_not_get_into_an_account_that_another_user_created(self, ours: HostileProvider):
        ours.person["email_verified"] = False
        mallory = Browser(ours)
        assert mallory.sign_in().status_code == 302 and mallory.login == "mallory"

        ours.person |= {"sub": "sub-boss", "preferred_username": "boss", "email_verified": True}
        boss = Browser(ours)
        assert boss.sign_in().status_code == 302 and boss.login == "boss"

    @pytest.mark.django_db
    def test_it_creates_no_second_account(self, ours: HostileProvider):
        OidcSetting.objects.update(user_field="login")
        make_user("boss", "admin", email="Boss@example.com")
        ours.person["email_verified"] = False
        refused(Browser(ours).sign_in(), "email_unverified", 403)
        ours.person["email"] = "mallory@example.com"
        assert Browser(ours).sign_in().status_code == 302

    @pytest.mark.django_db
    def test_it_counts_once_the_provider_verifies_it(self, ours: HostileProvider):
        ours.person["email_verified"] = False
        Browser(ours).sign_in()
        link = IdentityLink.objects.get()
        assert link.is_email_unverified
        ours.person |= {"email": "another@example.com", "email_verified": True}
        Browser(ours).sign_in()
        assert link.refreshed().is_email_unverified, "of another address"
        ours.person["email"] = "boss@example.com"
        Browser(ours).sign_in()
        assert not link.refreshed().is_email_unverified


@pytest.mark.django_db
def test_sso_admin_cannot_open_a_protected_account_by_resetting_its_link(provider: HostileProvider):  # A57
    active(provider)
    carl = make_user("ann", "collection_admin")
    Browser(provider).sign_in()
    sonja = make_user("sonja", "sso_admin")
    with acting_user.acting_as(sonja.pk), pytest.raises(ValidationError):
        IdentityLink.objects.get().delete()
    with acting_user.acting_as(make_user("alice", "admin").pk):
        IdentityLink.objects.get(user=carl).delete()

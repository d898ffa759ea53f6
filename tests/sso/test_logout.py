"""Sign-out redirects to the sign-out of the provider, and back to a page that does not sign in again."""

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from accounts.models import Session, User
from sso.models import OidcSetting, ProviderSession
from tests.providers.hostile import HostileProvider
from tests.sso.sign_ins import HTML_HEADERS, ME_PATH, Browser, check_refusal, make_active_connection, make_ann
from tests.support.users import PASSWORD

pytestmark = pytest.mark.django_db
every_route = pytest.mark.parametrize("path", ["/logout/", "/sso/logout/", "/admin/logout/"])
SIGNED_OUT_PATH = "/login/?signed_out=1"


@pytest.fixture
def browser(provider: HostileProvider) -> Browser:
    make_active_connection(provider)
    make_ann()
    browser = Browser(provider)
    browser.sign_in()
    return browser


def form_fields(page: Any) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.content.decode()))


@every_route
def test_the_provider_is_notified_by_a_form(browser: Browser, path: str):
    token_hint = ProviderSession.objects.get().token_hint
    page = browser.client.post(path)

    assert page.status_code == 200
    assert f'<form method="post" action="{browser.provider.url("logout")}"' in page.content.decode()
    form = form_fields(page)
    assert set(form) == {"id_token_hint", "client_id", "post_logout_redirect_uri", "state"}
    assert form["id_token_hint"] == token_hint and form["client_id"] == "servicebase"
    assert form["post_logout_redirect_uri"] == "http://testserver/sso/logout/"  # A64: fixed
    assert page["Cache-Control"] == "no-store" and "form-action" not in page["Content-Security-Policy"]


@every_route
def test_our_session_ends_before_the_provider_is_notified(browser: Browser, path: str):
    client = Client()
    client.cookies["servicebase_session"] = browser.client.cookies["servicebase_session"].value
    browser.client.post(path)

    assert browser.client.get(ME_PATH).status_code == 401 and client.get(ME_PATH).status_code == 401
    assert not Session.objects.filter(user__isnull=False).exists() and not ProviderSession.objects.exists()


def test_the_provider_returns_the_browser_to_the_sign_in_page(browser: Browser):
    state = form_fields(browser.client.post("/logout/"))["state"]
    response = browser.client.get("/sso/logout/", {"state": state})

    assert (response.status_code, response["Location"]) == (302, SIGNED_OUT_PATH)
    page = browser.client.get(SIGNED_OUT_PATH)
    assert b"You are signed out." in page.content and b"/sso/start/" in page.content


@pytest.mark.parametrize("state", ["another", "", "x" * 5000, "\x00"])
def test_another_state_is_refused(browser: Browser, state: str):
    browser.client.post("/logout/")
    response = browser.client.get("/sso/logout/", {"state": state}, headers=HTML_HEADERS)

    assert response.status_code == 400 and b"logout_state" in response.content


def test_a_state_is_accepted_once(browser: Browser):
    state = form_fields(browser.client.post("/logout/"))["state"]
    browser.client.get("/sso/logout/", {"state": state})

    assert browser.client.get("/sso/logout/", {"state": state}).status_code == 400


def test_a_link_or_form_of_another_site_does_not_sign_out(browser: Browser):  # A64
    browser.client.get("/sso/logout/")
    browser.client.get("/sso/logout/", {"state": "x"})
    assert browser.login == "ann"

    client = Client(enforce_csrf_checks=True)
    client.cookies = browser.client.cookies
    assert client.post("/sso/logout/").status_code == 403
    assert client.get(ME_PATH).status_code == 200


def test_the_host_of_the_request_does_not_affect_the_return_url(browser: Browser):  # A22, A64
    page = browser.client.post("/logout/", headers={"Host": "localhost", "X-Forwarded-Host": "evil.example"})

    assert form_fields(page)["post_logout_redirect_uri"] == "http://testserver/sso/logout/"


def test_signing_out_of_a_password_session_does_not_involve_the_provider(provider: HostileProvider, bob: User):
    make_active_connection(provider)
    client = Client()
    client.post("/login/", {"login": "bob", "password": PASSWORD})

    assert client.post("/logout/")["Location"] == SIGNED_OUT_PATH


@pytest.mark.parametrize(
    "columns", [{"end_session_endpoint": ""}, {"issuer": ""}, {"issuer": "https://idp.example.com/realms/other"}]
)
def test_without_a_logout_endpoint_only_our_session_ends(browser: Browser, columns: dict[str, str]):
    OidcSetting.objects.update(**columns)

    assert browser.client.post("/logout/")["Location"] == SIGNED_OUT_PATH
    assert browser.client.get(ME_PATH).status_code == 401


def test_signing_out_works_after_the_connection_was_deleted(browser: Browser):
    OidcSetting.objects.get().delete()

    assert browser.client.post("/logout/")["Location"] == SIGNED_OUT_PATH


def test_a_deactivated_connection_still_signs_out_at_its_provider(browser: Browser):
    setting = OidcSetting.objects.get()
    setting.active = False
    setting.save()

    assert form_fields(browser.client.post("/logout/"))["client_id"] == "servicebase"


def test_an_undecipherable_token_is_omitted(browser: Browser):
    ProviderSession.objects.update(id_token="gAAAAA")

    assert "id_token_hint" not in form_fields(browser.client.post("/logout/"))


def test_the_token_is_never_in_a_url(browser: Browser):
    page = browser.client.post("/logout/")
    form_action = re.findall(r'action="([^"]+)"', page.content.decode())[0]

    assert not parse_qs(urlsplit(form_action).query)


def test_a_later_password_session_is_not_sent_to_the_provider(browser: Browser, bob: User):
    browser.client.post("/logout/")
    browser.client.post("/login/", {"login": "bob", "password": PASSWORD})

    assert browser.client.post("/logout/")["Location"] == SIGNED_OUT_PATH


def test_a_password_change_keeps_the_provider_session(browser: Browser):
    user = User.objects.get(login="ann")
    user.set_password(PASSWORD)
    user.save()
    browser = Browser(browser.provider)
    browser.sign_in()
    form = {"old_password": PASSWORD, "new_password1": "another horse 42", "new_password2": "another horse 42"}
    browser.client.post("/account/password/", form)

    assert Session.objects.get(user=user).provider_session == ProviderSession.objects.latest("started_at").pk
    assert form_fields(browser.client.post("/logout/"))["client_id"] == "servicebase"


def test_the_callback_does_not_sign_in_again_automatically(browser: Browser):
    browser.client.post("/logout/")
    page = browser.client.get("/", follow=False)

    assert page["Location"].endswith("/sso/callback/"), "the start page would sign the user in again"
    check_refusal(
        Browser(browser.provider).client.get("/sso/callback/", {"code": "c", "state": "s" * 43}, headers=HTML_HEADERS),
        "state_unknown",
        400,
    )

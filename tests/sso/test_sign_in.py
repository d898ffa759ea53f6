"""Sign-in through a provider: the redirect, the callback, and what is stored."""

from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from django.test import Client

from accounts.models import Session, User
from sso.models import IdentityLink, OidcSetting, ProviderSession, SignIn
from sso.tokens.token_check import sha256_hex
from tests.providers.hostile import HostileProvider
from tests.sso.connections import CALLBACK_URL
from tests.sso.sign_ins import (
    HTML_HEADERS,
    ME_PATH,
    Browser,
    check_refusal,
    make_active_connection,
    make_ann,
)
from tests.support.users import PASSWORD

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(provider: HostileProvider) -> Browser:
    return Browser(provider)


@pytest.mark.parametrize("authorization_type", ["code", "pkce"])
def test_a_user_with_an_account_signs_in(browser: Browser, authorization_type: str):
    if authorization_type == "pkce":
        browser.provider.client_secret = ""
    setting = make_active_connection(browser.provider, authorization_type=authorization_type)
    user = make_ann()
    response = browser.sign_in(next="/account/")

    assert (response.status_code, response["Location"]) == (302, "/account/"), response.content
    assert browser.login == "ann"
    link = IdentityLink.objects.get()
    assert (link.user, link.issuer, link.sub) == (user, browser.provider.issuer, "sub-ann")
    entry = SignIn.objects.get()
    assert (entry.outcome, entry.user, entry.setting, entry.login) == ("ok", user, setting, "ann")
    assert (entry.setting_name, entry.address, entry.detail) == (setting.name, "127.0.0.1", "")


@pytest.mark.parametrize("authorization_type", ["code", "pkce"])
def test_the_authorization_request_has_the_expected_parameters(browser: Browser, authorization_type: str):  # A18
    make_active_connection(browser.provider, authorization_type=authorization_type, scope="openid email")
    authorization_url = browser.start()
    parameters = dict(parse_qsl(urlsplit(authorization_url).query))

    assert authorization_url.startswith(browser.provider.url("auth") + "?")
    assert set(parameters) == {
        "response_type", "client_id", "redirect_uri", "scope", "state", "nonce", "code_challenge",
        "code_challenge_method",
    }  # fmt: skip
    assert parameters["redirect_uri"] == CALLBACK_URL and parameters["client_id"] == "servicebase"
    assert (parameters["response_type"], parameters["scope"]) == ("code", "openid email")
    assert parameters["code_challenge_method"] == "S256" and len(parameters["code_challenge"]) == 43
    assert len(parameters["state"]) >= 43 and len(parameters["nonce"]) >= 43


def test_a_refused_user_can_use_another_account(browser: Browser):
    make_active_connection(browser.provider)
    page = browser.sign_in()
    check_refusal(page, "user_unknown", 401)
    assert b'href="/sso/start/?prompt=login"' in page.content
    authorization_url = browser.start(prompt="login")
    assert parse_qs(urlsplit(authorization_url).query)["prompt"] == ["login"]

    for prompt in ("none", "login none", "consent", ""):
        assert "prompt" not in parse_qs(urlsplit(browser.start(prompt=prompt)).query)
    OidcSetting.objects.update(active=False)
    page = browser.client.get("/sso/start/", headers=HTML_HEADERS, follow=True)
    assert page.request["PATH_INFO"] == "/login/" and b"is not available" in page.content


def test_the_session_holds_no_nonce_and_the_verifier_never_leaves_the_server(browser: Browser):  # A15, A18
    make_active_connection(browser.provider)
    parameters = parse_qs(urlsplit(browser.start()).query)
    (attempt,) = browser.client.session["sso_attempts"].values()

    assert attempt["nonce_hash"] == sha256_hex(parameters["nonce"][0])
    assert parameters["nonce"][0] not in str(attempt)
    assert attempt["verifier"] not in str(parameters)


def test_the_query_of_the_authorization_endpoint_is_kept(browser: Browser):
    make_active_connection(browser.provider, authorization_endpoint=browser.provider.url("auth") + "?policy=one")

    assert browser.start().startswith(browser.provider.url("auth") + "?policy=one&response_type=code&")


def test_another_host_name_in_the_request_changes_nothing(browser: Browser):  # A22
    make_active_connection(browser.provider)
    headers = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "Forwarded": "host=evil.example"}
    authorization_url = browser.client.get("/sso/start/", headers=headers)["Location"]

    assert parse_qs(urlsplit(authorization_url).query)["redirect_uri"] == [CALLBACK_URL]
    assert browser.client.get("/sso/start/", headers={"Host": "evil.example"}).status_code == 400


FOREIGN_TARGETS = ["//evil.example", "https:evil.example", "\\\\evil.example", "\t//evil.example", "/\t/evil.example",
             "javascript:alert(1)", "https://evil.example/", "http://testserver/", " //evil.example", "/\\evil.example",
             "/" + "x" * 5000, "account/", "/sso/start/"]  # fmt: skip


@pytest.mark.parametrize("target", FOREIGN_TARGETS)
def test_no_target_redirects_to_another_site(browser: Browser, target: str):  # A20
    make_active_connection(browser.provider)
    make_ann()

    assert browser.sign_in(next=target)["Location"] == "/"


@pytest.mark.parametrize("target", ["/account/", "/admin/?q=a&o=1", "/account/#keys", "/a//b", "/@evil.example"])
def test_next_is_a_path_of_this_service(browser: Browser, target: str):
    make_active_connection(browser.provider)
    make_ann()

    assert browser.sign_in(next=target)["Location"] == target


def test_sign_in_changes_the_session_key(browser: Browser):  # A59
    make_active_connection(browser.provider)
    make_ann()
    authorization_url = browser.start()
    attacker = Client()
    attacker.cookies["servicebase_session"] = browser.client.cookies["servicebase_session"].value
    response = browser.follow_callback(browser.authorize(authorization_url))

    assert browser.login == "ann"
    assert attacker.get(ME_PATH).status_code == 401
    cookie = response.cookies["servicebase_session"]
    assert cookie["httponly"] and cookie["samesite"] == "Lax"


def test_a_signed_in_user_gets_a_new_session_key_too(browser: Browser):  # A59
    make_active_connection(browser.provider)
    make_ann()
    browser.sign_in()
    cookie_before = browser.client.cookies["servicebase_session"].value
    browser.sign_in()

    assert browser.login == "ann"
    assert browser.client.cookies["servicebase_session"].value != cookie_before
    assert Session.objects.filter(user__login="ann").count() == 1


def test_signing_in_as_another_user_clears_the_session(browser: Browser, bob: User):
    make_active_connection(browser.provider)
    make_ann()
    browser.client.post("/login/", {"login": "bob", "password": PASSWORD})
    session = browser.client.session
    session["left behind"] = "of bob"
    session.save()
    browser.sign_in()

    assert browser.login == "ann"
    assert "left behind" not in browser.client.session
    assert not Session.objects.filter(user=bob).exists()


def test_the_providers_session_is_recorded(browser: Browser):
    setting = make_active_connection(browser.provider)
    user = make_ann()
    browser.provider.claims = {"sid": "sid-1"}
    browser.sign_in()

    provider_session = ProviderSession.objects.get()
    assert (provider_session.user, provider_session.setting, provider_session.issuer) == (
        user,
        setting,
        browser.provider.issuer,
    )
    assert (provider_session.sub, provider_session.sid) == ("sub-ann", "sid-1")
    assert provider_session.token_hint.count(".") == 2
    assert provider_session.token_hint not in provider_session.id_token, "the ID token is stored encrypted"
    assert Session.objects.get(user=user).provider_session == provider_session.pk


def test_the_claims_are_stored_encrypted_for_script_tests(browser: Browser):
    setting = make_active_connection(browser.provider)
    make_ann()
    browser.sign_in()
    setting = OidcSetting.objects.get(pk=setting.pk)

    assert setting.last_sign_in_claims and setting.last_sign_in_claims["email"] == "ann@example.com"
    assert "nonce" not in setting.last_sign_in_claims
    assert "ann@example.com" not in setting.last_claims


def test_signing_in_changes_neither_connection_nor_user(browser: Browser):
    setting = make_active_connection(browser.provider)
    user = make_ann()
    versions_before = setting.refreshed().sys_version, user.refreshed().sys_version
    browser.sign_in()

    assert (setting.refreshed().sys_version, user.refreshed().sys_version) == versions_before
    assert user.refreshed().last_login is not None


def test_a_deactivated_user_is_signed_out_immediately(browser: Browser):  # A55
    make_active_connection(browser.provider)
    user = make_ann()
    browser.sign_in()
    assert browser.client.get(ME_PATH).status_code == 200
    user.active = False
    user.save()

    assert browser.client.get(ME_PATH).status_code == 401


def test_without_an_active_connection_the_password_form_says_so(browser: Browser):  # A39
    page = browser.client.get("/sso/start/?next=/account/", follow=True)
    assert page.redirect_chain == [("/login/?next=/account/", 302)]
    assert b"Signing in with the identity provider is not available." in page.content
    assert b'name="password"' in page.content and b'name="next" value="/account/"' in page.content

    evil_page = browser.client.get("/sso/start/?next=https://evil.example/", follow=True)
    assert evil_page.redirect_chain == [("/login/", 302)]

    browser.client.force_login(make_ann())
    signed_in_page = browser.client.get("/sso/start/?next=/account/", follow=True)
    assert signed_in_page.redirect_chain == [("/account/", 302)]
    assert b"is not available" not in signed_in_page.content


@pytest.mark.parametrize(
    "path", ["/sso/start/", "/sso/callback/", "/sso/callback/?code=c&state=s", "/sso/callback/?id_token=x"]
)
@pytest.mark.parametrize("is_active", [True, False])
def test_opening_a_url_by_hand_is_not_a_failed_sign_in(browser: Browser, path: str, is_active: bool):
    if is_active:
        make_active_connection(browser.provider)
    Client().get(path)
    response = browser.client.get(path, follow=not is_active)

    assert not SignIn.objects.exists()
    assert is_active or response.status_code in (200, 400)


def test_a_response_that_lost_its_attempt_is_a_failed_sign_in(browser: Browser):
    """For example because the Redirect URI is at another host, which has no cookie."""
    make_active_connection(browser.provider)
    callback_url = browser.authorize(browser.start())

    check_refusal(Browser(browser.provider).follow_callback(callback_url), "state_unknown", 400)


def test_refusal_does_not_tell_signed_in_users_that_they_are_not(browser: Browser, bob: User):
    browser.client.force_login(bob)
    page = browser.client.get("/sso/callback/?code=c&state=s").content.decode()

    assert "Not signed in" not in page and "You are still signed in as <strong>bob</strong>" in page


@pytest.mark.parametrize("removal", ["deactivated", "deleted", "replaced"])
def test_removing_the_connection_ends_a_sign_in_in_progress(browser: Browser, removal: str):  # A39
    setting = make_active_connection(browser.provider)
    make_ann()
    callback_url = browser.authorize(browser.start())
    if removal == "deactivated":
        setting.active = False
        setting.save()
    elif removal == "deleted":
        setting.delete()
    else:
        make_active_connection(browser.provider, name="Another")

    page = browser.follow_callback(callback_url)
    check_refusal(page, "not_available", 503)
    assert browser.login is None and b"Use another account" not in page.content


def test_a_connection_changed_to_another_provider_ends_the_sign_in(browser: Browser):  # A19
    setting = make_active_connection(browser.provider)
    make_ann()
    callback_url = browser.authorize(browser.start())
    OidcSetting.objects.filter(pk=setting.pk).update(issuer="https://idp.example.com/realms/other")

    check_refusal(browser.follow_callback(callback_url), "not_available", 503)


# Third-party-initiated login: another site starts the sign-in.


def test_another_site_may_start_a_sign_in_by_post_without_cookies(browser: Browser):
    make_active_connection(browser.provider)
    client = Client(enforce_csrf_checks=True)
    form = {
        "iss": browser.provider.issuer,
        "login_hint": "ann",
        "target_link_uri": "http://testserver/account/",
        "x": "1",
    }
    response = client.post("/sso/start/", form)

    assert response.status_code == 303 and not response.cookies
    assert "x=1" not in response["Location"]
    assert "login_hint=ann" in client.get(response["Location"])["Location"]


@pytest.mark.parametrize("iss", ["https://evil.example", "", "ISSUER/", "issuer"])
def test_another_site_must_name_our_issuer(browser: Browser, iss: str):
    make_active_connection(browser.provider)
    response = browser.client.get("/sso/start/", {"iss": iss.replace("ISSUER", browser.provider.issuer)})

    check_refusal(response, "issuer_unknown", 400)


@pytest.mark.parametrize(
    "target",
    ["https://evil.example/", "//evil.example", "http://testserver//evil.example", "javascript:alert(1)",
     "http://testserver.evil.example/", "http://testserver@evil.example/", "http://[::1"],
)  # fmt: skip
def test_another_site_cannot_choose_a_foreign_target(browser: Browser, target: str):  # A20
    make_active_connection(browser.provider)
    make_ann()

    assert browser.sign_in(target_link_uri=target)["Location"] == "/"


def test_an_invalid_login_hint_is_omitted(browser: Browser):
    make_active_connection(browser.provider)

    assert "login_hint" not in browser.start(login_hint="x" * 256)
    assert "login_hint" not in browser.start(login_hint="a\x00")


# The sign-in page.


def test_the_page_offers_the_connection_and_a_link_to_the_form(browser: Browser):
    make_active_connection(browser.provider, name="Example & Co")
    page = browser.client.get("/login/", {"next": "/account/?a=1&b=2"}).content.decode()

    assert 'href="/sso/start/?next=%2Faccount%2F%3Fa%3D1%26b%3D2"' in page
    assert "Sign in with Example &amp; Co" in page
    assert 'href="/login/?local=1&amp;next=%2Faccount%2F%3Fa%3D1%26b%3D2"' in page
    assert 'name="password"' not in page


def test_the_password_form_works_when_the_provider_is_unavailable(browser: Browser, bob: User):  # A39
    make_active_connection(browser.provider, issuer="")
    page = browser.client.get("/login/?local=1").content.decode()
    assert 'name="password"' in page and "/sso/start/" in page

    browser.client.post("/login/", {"login": "bob", "password": PASSWORD})
    assert browser.login == "bob"


def test_a_wrong_password_keeps_the_form_open(browser: Browser, bob: User):
    make_active_connection(browser.provider)
    page = browser.client.post("/login/", {"login": "bob", "password": "wrong"})

    assert page.status_code == 401 and b'name="password"' in page.content


def test_without_a_connection_the_page_shows_the_password_form(browser: Browser):
    page = browser.client.get("/login/").content

    assert b'name="password"' in page and b"/sso/start/" not in page


def test_a_password_sign_in_works_with_an_active_connection(browser: Browser, bob: User):
    make_active_connection(browser.provider)
    response = browser.client.post("/login/", {"login": "bob", "password": "wrong"})

    assert response.status_code == 401
    assert not browser.provider.requests and not SignIn.objects.exists()


def test_a_visitor_of_the_start_page_is_sent_to_the_provider(browser: Browser):
    make_active_connection(browser.provider)
    make_ann()
    first_response = browser.client.get("/")
    assert first_response["Location"] == CALLBACK_URL
    second_response = browser.client.get("/sso/callback/")
    assert second_response["Location"] == "/sso/start/"
    browser.sign_in()

    assert browser.client.get("/").status_code == 200

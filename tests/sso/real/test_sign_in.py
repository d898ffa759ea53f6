"""Sign-in and sign-out through a certified provider, with every kind of connection."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client

from accounts.models import User
from sso.models import IdentityLink, IdpCertificate, OidcSetting, SignIn
from system import encryption
from system.models import DeletionLogEntry
from tests.providers.hostile import HostileProvider
from tests.providers.real import ALGORITHMS, CLIENT_SECRET, RealProvider, client_registration
from tests.sso.connections import CALLBACK_URL, CONNECTION_LIST_PATH, form_data, messages_of, press_button
from tests.sso.real.browser import Browser
from tests.sso.sign_ins import refusal_code

pytestmark = [pytest.mark.django_db, pytest.mark.provider]
PUBLIC_CLIENT_COLUMNS = {"authorization_type": "pkce", "client_id": "servicebase-pkce"}
ISSUER_PATHS = {
    "main": "/realms/main",
    "first": "/realm/first",
    "undiscovered": "/alone/realm/undiscovered",
    "plain": "",
}


def only_log_entry() -> SignIn:
    return SignIn.objects.get()


@pytest.mark.parametrize("realm", ISSUER_PATHS)
@pytest.mark.parametrize("columns", [{}, PUBLIC_CLIENT_COLUMNS], ids=["secret", "PKCE"])
def test_a_new_user_signs_in(make_real_connection: Any, browser: Browser, realm: str, columns: dict[str, str]):
    if realm == "plain" and not columns:
        columns = {"client_id": "servicebase-post"}  # it accepts the secret only in the form
    setting = make_real_connection(realm, scope="openid email profile", **columns)
    assert (setting.issuer, setting.resolve_error) == (browser.visitor.provider.url + ISSUER_PATHS[realm], "")
    response = browser.sign_in("anna", next="/account/")

    assert (response.status_code, response.headers.get("Location")) == (302, "/account/"), response.content
    assert browser.login == "anna"
    user = User.objects.get(login="anna")
    assert (user.email, user.has_usable_password()) == ("anna@example.com", False)
    assert IdentityLink.objects.get().sub == "sub-anna"
    assert only_log_entry().outcome == "ok" and only_log_entry().user == user


CONNECTION_TESTS = [
    ({}, ""),
    (PUBLIC_CLIENT_COLUMNS, ""),
    ({"client_secret": "wrong"}, "client ID or client secret (invalid_client)"),
    ({"client_id": "nobody"}, "client ID or client secret (invalid_client)"),
    ({**PUBLIC_CLIENT_COLUMNS, "client_id": "nobody"}, "rejected the client ID (invalid_client)"),
    ({"redirect_uri": "http://testserver/sso/callback/?x=1"}, "Register exactly this Redirect URI at the provider"),
    ({"authorization_type": "pkce", "client_id": "servicebase-fragment", "response_type": "id_token"}, ""),
]


@pytest.mark.parametrize(("columns", "message"), CONNECTION_TESTS)
def test_test_connection_reports_what_the_provider_rejects(
    real_provider: RealProvider, as_sonja: Client, columns: dict[str, str], message: str
):
    valid_columns = {"authorization_type": "code", "client_id": "servicebase", "client_secret": CLIENT_SECRET}
    page = press_button(
        as_sonja, "_test", None, **{**valid_columns, "url_idp": real_provider.url, "realm": "main", **columns}
    )
    report = page.context["report"]

    assert report.is_successful is (not message), report
    assert any(message in note for note in report.notes) if message else report.notes == ()


@pytest.mark.parametrize("response_type", ["id_token", "id_token token"])
def test_a_user_signs_in_through_the_fragment(make_real_connection: Any, browser: Browser, response_type: str):
    make_real_connection(client_id="servicebase-fragment", authorization_type="pkce", response_type=response_type)
    authorization_url = browser.start()
    callback_url = browser.visitor.sign_in(authorization_url, "anna")

    assert dict(parse_qsl(urlsplit(authorization_url).query))["response_type"] == response_type
    assert urlsplit(callback_url).query == "" and "id_token" in dict(parse_qsl(urlsplit(callback_url).fragment))
    assert browser.follow_redirect(callback_url).status_code == 302 and browser.login == "anna"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_user_signs_in_with_each_algorithm(make_real_connection: Any, browser: Browser, algorithm: str):
    make_real_connection(client_id=f"servicebase-{algorithm.lower()}")

    assert browser.sign_in("anna").status_code == 302 and browser.login == "anna"


def test_a_known_user_signs_in_again_without_a_password(make_real_connection: Any, browser: Browser):
    make_real_connection()
    browser.sign_in("anna")
    browser.client = Client()
    response = browser.follow_redirect(browser.visitor.follow(browser.start())[0])

    assert response.status_code == 302 and browser.login == "anna"
    assert User.objects.filter(email="anna@example.com").count() == 1


def test_roles_of_the_provider_are_granted_except_protected_ones(
    make_real_connection: Any, browser: Browser, real_provider: RealProvider
):
    make_real_connection(enable_role_mapping=True)
    browser.sign_in("anna")
    assert {"itil", "surveyor"} <= set(User.objects.get(login="anna").role_names)

    other_browser = Browser(real_provider)
    other_browser.sign_in("ben")
    ben = User.objects.get(login="ben")
    assert "itil" in ben.role_names and "admin" not in ben.role_names
    assert "admin" in SignIn.objects.get(user=ben).detail and other_browser.login == "ben"


def test_an_unverified_email_matches_no_account(make_real_connection: Any, browser: Browser):  # A44
    User.objects.create_user("christine", email="chris@example.com")
    make_real_connection(enable_user_creation=False)
    response = browser.sign_in("chris")

    assert (response.status_code, refusal_code(response)) == (403, "email_unverified") and browser.login is None


@pytest.mark.parametrize("overlap", [True, False])
def test_a_sign_in_works_after_keys_are_rotated(
    make_real_connection: Any, browser: Browser, real_provider: RealProvider, overlap: bool
):  # A34
    make_real_connection()
    browser.sign_in("anna")
    kids_before = set(IdpCertificate.objects.values_list("kid", flat=True))
    DeletionLogEntry.objects.all().delete()
    new_kids = set(real_provider.rotate("main", overlap=overlap))
    other_browser = Browser(real_provider)

    assert other_browser.sign_in("anna").status_code == 302 and other_browser.login == "anna"
    assert set(IdpCertificate.objects.values_list("kid", flat=True)) == new_kids
    assert kids_before & new_kids == (kids_before if overlap else set())
    removed_count = DeletionLogEntry.objects.filter(table="idp_certificate").count()
    assert removed_count == (0 if overlap else len(kids_before))


def test_a_sign_in_works_if_keys_are_rotated_during_it(
    make_real_connection: Any, browser: Browser, real_provider: RealProvider
):
    make_real_connection()
    browser.sign_in("anna")
    other_browser = Browser(real_provider)
    callback_url = other_browser.visitor.sign_in(other_browser.start(), "anna")
    real_provider.rotate("main", overlap=False)

    assert other_browser.follow_redirect(callback_url).status_code == 302 and other_browser.login == "anna"


@pytest.mark.parametrize("realm", ["main", "undiscovered", "plain"])
def test_signing_out_also_signs_out_of_the_provider(make_real_connection: Any, browser: Browser, realm: str):  # A64
    make_real_connection(realm, **PUBLIC_CLIENT_COLUMNS, scope="openid email profile")
    browser.sign_in("anna")
    response = browser.sign_out()

    assert (response.status_code, response["Location"]) == (302, "/login/?signed_out=1") and browser.login is None
    assert 'name="password"' in browser.visitor.follow(browser.start())[1]


def test_a_back_channel_logout_ends_only_sessions_of_its_user(
    make_real_connection: Any, browser: Browser, real_provider: RealProvider
):
    make_real_connection()
    bystander = Browser(real_provider)
    with HostileProvider() as recording_server:  # records the calls of the provider
        recording_server.serve("/backchannel-logout", lambda request: request.respond(200, {}))
        real_provider.register(
            client_registration(CALLBACK_URL, backchannel_logout_uri=recording_server.url_idp + "/backchannel-logout")
        )
        browser.sign_in("anna")
        bystander.sign_in("ben")
        real_provider.end_sessions("main", "anna")  # ends sessions of other tests too
        tokens = [request.form["logout_token"] for request in recording_server.requests]
    assert tokens
    for token in tokens:
        response = Client(enforce_csrf_checks=True).post("/sso/backchannel-logout/", {"logout_token": token})
        assert response.status_code == 200, response.content

    assert browser.login is None and bystander.login == "ben"


@pytest.mark.parametrize(
    ("secret", "code"), [("wrong", "client_rejected"), ("", "client_rejected"), (CLIENT_SECRET, "")]
)
def test_the_client_secret_must_be_correct(make_real_connection: Any, browser: Browser, secret: str, code: str):
    setting = make_real_connection()
    setting.client_secret = encryption.encrypt(secret)
    setting.save()
    response = browser.sign_in("anna")

    assert refusal_code(response) == code
    assert browser.login == (None if code else "anna")


def test_a_code_is_accepted_once(make_real_connection: Any, browser: Browser):  # A18
    make_real_connection()
    callback_url = browser.visitor.sign_in(browser.start(), "anna")
    browser.follow_redirect(callback_url)
    response = browser.follow_redirect(callback_url)

    assert (response.status_code, refusal_code(response)) == (400, "state_unknown") and browser.login == "anna"


def test_an_unavailable_provider_is_reported_and_passwords_still_work(
    make_real_connection: Any, allow_http: None, alice: User
):
    with RealProvider() as stopping_provider:
        stopping_provider.register(client_registration(CALLBACK_URL))
        setting = make_real_connection(url_idp=stopping_provider.url)
        browser = Browser(stopping_provider)
        assert setting.issuer
        callback_url = browser.visitor.sign_in(browser.start(), "anna")
    response = browser.follow_redirect(callback_url)

    assert (response.status_code, refusal_code(response)) == (503, "provider_unavailable") and browser.login is None
    assert b'type="password"' in browser.client.get("/login/?local=1").content


def test_an_administrator_fills_the_form_with_the_providers_values(
    real_provider: RealProvider, browser: Browser, as_alice: Client, django_capture_on_commit_callbacks: Any
):
    columns = {"name": "Ours", "url_idp": real_provider.url, "realm": "main", "client_id": "servicebase"}
    form = {**form_data(**columns), "authorization_type": "code", "client_secret": CLIENT_SECRET, "active": "on"}
    with django_capture_on_commit_callbacks(execute=True):
        response = as_alice.post(f"{CONNECTION_LIST_PATH}add/", {**form, "enable_user_creation": "on"}, follow=True)
    setting = OidcSetting.objects.get()
    assert setting.issuer == f"{real_provider.url}/realms/main", response.content

    report = press_button(as_alice, "_test", setting).context["report"]
    assert report.is_successful, report
    assert "are up to date: 3 added" in messages_of(press_button(as_alice, "_update_certificates", setting))
    assert browser.sign_in("anna").status_code == 302 and browser.login == "anna"
    entry = SignIn.objects.get()
    page = as_alice.get("/admin/sso/signin/")
    assert entry.login.encode() in page.content and b"Ours" in page.content

"""*Test connection* checks whether the provider accepts this service as a client."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from sso.admin import connection_warnings
from sso.models import OidcSetting
from sso.provider import client_check
from system import encryption
from tests.providers.behaviours import (
    RecordedRequest,
    redirects_to,
    responds_with,
    responds_with_error,
    responds_with_html,
)
from tests.providers.hostile import HostileProvider
from tests.providers.signing import ABSENT
from tests.sso.connections import CALLBACK_URL, make_connection_at, press_button

pytestmark = pytest.mark.django_db

INVALID_GRANT = {"error": "invalid_grant"}, 400
INVALID_CLIENT = {"error": "invalid_client"}, 401


def serve_redirect(provider: HostileProvider, target: str = CALLBACK_URL, **parameters: str) -> None:
    provider.serve("auth", redirects_to(f"{target}?{urlencode(parameters)}"))


def run_connection_test(provider: HostileProvider, browser: Client, **columns: Any) -> Any:
    page = press_button(browser, "_test", None, url_idp=provider.url_idp, realm=provider.realm, **columns)
    return page.context["report"]


@pytest.fixture
def accepting_provider(provider: HostileProvider) -> HostileProvider:
    """A provider that accepts this client and would show its sign-in page."""
    provider.serve("token", responds_with(*INVALID_GRANT))
    serve_redirect(provider, error="login_required", state="x")
    return provider


def test_an_accepted_client_is_reported(accepting_provider: HostileProvider, as_sonja: Client):
    report = run_connection_test(accepting_provider, as_sonja, authorization_type="code", client_secret="s3cret")

    assert report.is_successful and report.notes == ()
    (request,) = accepting_provider.requests_to("auth")
    assert request.query["prompt"] == "none" and request.query["redirect_uri"] == CALLBACK_URL
    (token_request,) = accepting_provider.requests_to("token")
    assert (
        token_request.headers["authorization"].startswith("Basic ")
        and token_request.form["grant_type"] == "authorization_code"
    )


def test_a_redirect_uri_with_a_wrong_path_is_reported(accepting_provider: HostileProvider, as_sonja: Client):
    wrong_redirect_uri = CALLBACK_URL.replace("/sso/callback/", "/sso/callbacks/")
    accepting_provider.serve("auth", responds_with_error(400))
    report = run_connection_test(accepting_provider, as_sonja, redirect_uri=wrong_redirect_uri)

    assert not report.is_successful and "must be /sso/callback/" in report.notes[0], (
        "the warning comes before the result of the provider"
    )


def test_a_redirect_uri_at_another_host_of_the_service_causes_a_warning(
    accepting_provider: HostileProvider, as_sonja: Client
):
    redirect_uri = CALLBACK_URL.replace("http://testserver", "http://testserver:8001")
    serve_redirect(accepting_provider, target=redirect_uri, error="login_required")
    report = run_connection_test(accepting_provider, as_sonja, redirect_uri=redirect_uri)

    assert report.is_successful and "the same scheme, host and port" in report.notes[0]


@pytest.mark.parametrize("authorization_type", ["code", "pkce"])
@pytest.mark.parametrize("error", ["invalid_client", "unauthorized_client"])
def test_a_rejected_client_is_reported(
    accepting_provider: HostileProvider, as_sonja: Client, authorization_type: str, error: str
):
    accepting_provider.serve("token", responds_with({"error": error}, 401))
    report = run_connection_test(accepting_provider, as_sonja, authorization_type=authorization_type)

    assert not report.is_successful and error in report.notes[0] and "rejected the client ID" in report.notes[0]
    assert ("or client secret" in report.notes[0]) is (authorization_type == "code")


@pytest.mark.parametrize("behaviour", [responds_with_html(400), responds_with({"error": "invalid_redirect_uri"}, 400)])
def test_an_unregistered_redirect_uri_is_reported(
    accepting_provider: HostileProvider, as_sonja: Client, behaviour: Any
):
    accepting_provider.serve("auth", behaviour)
    report = run_connection_test(accepting_provider, as_sonja)

    assert not report.is_successful and report.notes == (client_check.REDIRECT_URI_REJECTED,)


@pytest.mark.parametrize("error", ["invalid_scope", "unsupported_response_type"])
def test_a_rejected_request_is_reported(accepting_provider: HostileProvider, as_sonja: Client, error: str):
    serve_redirect(accepting_provider, error=error)
    report = run_connection_test(accepting_provider, as_sonja)

    assert not report.is_successful and report.notes == (client_check.REQUEST_REJECTED.format(error=error),)
    assert "Redirect URI" not in report.notes[0], "providers redirect only to registered URIs"


def test_an_unusable_token_endpoint_is_reported(accepting_provider: HostileProvider, as_sonja: Client):
    for endpoint, message in (
        (None, "has no token endpoint"),
        ("http://127.0.0.1:9/token", "connection to 127.0.0.1 failed"),
    ):
        accepting_provider.discovery = {"token_endpoint": endpoint} if endpoint else {"token_endpoint": ABSENT}
        report = run_connection_test(accepting_provider, as_sonja)
        assert not report.is_successful and message in report.notes[0], report


def test_a_secret_that_cannot_be_decrypted_is_not_sent(
    accepting_provider: HostileProvider, as_sonja: Client, monkeypatch: Any
):
    setting = make_connection_at(accepting_provider, authorization_type="code")
    setting.client_secret = encryption.encrypt("stored")
    setting.save()
    monkeypatch.setattr(encryption, "decrypt", fail_to_decrypt)
    report = press_button(as_sonja, "_test", setting).context["report"]

    assert not report.is_successful and accepting_provider.requests_to("token") == []


def fail_to_decrypt(encrypted: str) -> str:
    raise encryption.DecryptionFailed


def test_a_connection_that_admits_no_user_fails_the_test(accepting_provider: HostileProvider, as_sonja: Client):
    report = run_connection_test(accepting_provider, as_sonja, ignore_case=True)
    assert (
        not report.is_successful
        and "nobody can sign in" in report.title
        and connection_warnings.NOBODY_CAN_SIGN_IN in report.notes
    )
    accepting_provider.algorithms = ["HS256"]
    report = run_connection_test(accepting_provider, as_sonja)
    assert not report.is_successful and "supports none of the algorithms" in report.notes[0]


INCONCLUSIVE_RESPONSES = [
    ("auth", responds_with_html(200)),
    ("auth", responds_with_error(500)),
    ("auth", responds_with_error(404)),
    ("auth", redirects_to("https://idp.example.com/sign-in")),
    ("auth", redirects_to(f"{CALLBACK_URL}?error=<script>")),
    ("auth", redirects_to(CALLBACK_URL)),
    ("auth", redirects_to("")),
    ("auth", redirects_to(f"{CALLBACK_URL}?error=server_error")),
    ("auth", redirects_to(f"{CALLBACK_URL}?error=temporarily_unavailable")),
    ("token", responds_with({"error": "invalid_request"}, 400)),
    ("token", responds_with_html(404)),
    ("token", responds_with_error(500)),
    ("token", responds_with({"id_token": "x"}, 200)),
    ("token", responds_with([], 400)),
]


@pytest.mark.parametrize(("endpoint", "behaviour"), INCONCLUSIVE_RESPONSES)
def test_an_inconclusive_response_is_reported_as_unchecked(
    accepting_provider: HostileProvider, as_sonja: Client, endpoint: str, behaviour: Any
):
    accepting_provider.serve(endpoint, behaviour)
    report = run_connection_test(accepting_provider, as_sonja)

    subject = "The Redirect URI" if endpoint == "auth" else "The client ID or secret"
    assert report.is_successful and report.notes == (client_check.CHECK_INCONCLUSIVE.format(subject=subject),)


def test_in_the_fragment_flow_the_client_is_not_checked(accepting_provider: HostileProvider, as_sonja: Client):
    accepting_provider.serve("auth", redirects_to(f"{CALLBACK_URL}#error=login_required"))
    report = run_connection_test(accepting_provider, as_sonja, response_type="id_token")

    assert report.is_successful and report.notes == () and accepting_provider.requests_to("token") == []


class TestStoredSecret:  # A56
    """A user who can change a connection must not be able to send its stored secret to another server."""

    @pytest.fixture
    def setting(self, accepting_provider: HostileProvider) -> OidcSetting:
        setting = make_connection_at(accepting_provider, authorization_type="code")
        setting.client_secret = encryption.encrypt("stored-secret-canary")
        setting.save()
        return setting

    def test_the_stored_secret_is_sent_to_its_provider(
        self, accepting_provider: HostileProvider, as_sonja: Client, setting: OidcSetting
    ):
        assert press_button(as_sonja, "_test", setting).context["report"].is_successful
        assert len(accepting_provider.requests_to("token")) == 1

    @pytest.mark.parametrize("is_other_provider", [True, False], ids=["another provider", "its endpoint moved"])
    def test_the_stored_secret_is_sent_to_no_other_server(
        self,
        accepting_provider: HostileProvider,
        as_sonja: Client,
        setting: OidcSetting,
        allow_http: None,
        is_other_provider: bool,
    ):
        with HostileProvider() as other_provider:
            requests: list[RecordedRequest] = []
            other_provider.serve("token", requests.append)
            if is_other_provider:
                columns = {"url_idp": other_provider.url_idp}
            else:
                accepting_provider.discovery = {"token_endpoint": other_provider.url("token")}
                columns = {}
            report = press_button(as_sonja, "_test", setting, **columns).context["report"]

            assert (
                requests == []
                and other_provider.requests_to("token") == []
                and accepting_provider.requests_to("token") == []
            )
            assert client_check.SECRET_NOT_SENT in report.notes

    def test_a_public_client_is_checked_at_any_provider(
        self, accepting_provider: HostileProvider, as_sonja: Client, allow_http: None
    ):
        setting = make_connection_at(accepting_provider)
        setting.client_secret = encryption.encrypt("left over")
        setting.save()
        with HostileProvider() as other_provider:
            press_button(as_sonja, "_test", setting, url_idp=other_provider.url_idp)
            (request,) = other_provider.requests_to("token")
            assert "authorization" not in request.headers and "client_secret" not in request.form

    def test_an_entered_secret_is_sent_to_the_entered_provider(
        self, accepting_provider: HostileProvider, as_sonja: Client, setting: OidcSetting, allow_http: None
    ):
        with HostileProvider() as other_provider:
            press_button(as_sonja, "_test", setting, url_idp=other_provider.url_idp, client_secret="typed")
            assert len(other_provider.requests_to("token")) == 1

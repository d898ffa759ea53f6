"""Test connection: whether the provider accepts this service, before anybody signs in."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from sso.admin import connection_warnings
from sso.models import OidcSetting
from sso.provider import client_check
from system import encryption
from tests.providers.behaviours import Visit, answers, fails, html, redirects
from tests.providers.hostile import HostileProvider
from tests.providers.signing import ABSENT
from tests.sso.connections import CALLBACK, make_at, press

pytestmark = pytest.mark.django_db

TAKEN = {"error": "invalid_grant"}, 400
NOT_TAKEN = {"error": "invalid_client"}, 401


def sent_back(provider: HostileProvider, to: str = CALLBACK, **said: str) -> None:
    provider.serve("auth", redirects(f"{to}?{urlencode(said)}"))


def says(provider: HostileProvider, browser: Client, **typed: Any) -> Any:
    page = press(browser, "_test", None, url_idp=provider.url_idp, realm=provider.realm, **typed)
    return page.context["report"]


@pytest.fixture
def willing(provider: HostileProvider) -> HostileProvider:
    """It knows this service, and would now ask somebody to sign in."""
    provider.serve("token", answers(*TAKEN))
    sent_back(provider, error="login_required", state="x")
    return provider


def test_an_accepted_client_is_reported(willing: HostileProvider, as_sonja: Client):
    report = says(willing, as_sonja, authorization_type="code", client_secret="s3cret")

    assert report.is_successful and report.notes == ()
    (request,) = willing.asked("auth")
    assert request.query["prompt"] == "none" and request.query["redirect_uri"] == CALLBACK
    (tried,) = willing.asked("token")
    assert tried.headers["authorization"].startswith("Basic ") and tried.form["grant_type"] == "authorization_code"


def test_a_redirect_uri_with_a_wrong_path_is_reported(willing: HostileProvider, as_sonja: Client):
    elsewhere = CALLBACK.replace("/sso/callback/", "/sso/callbacks/")
    willing.serve("auth", fails(400))
    report = says(willing, as_sonja, redirect_uri=elsewhere)

    assert not report.is_successful and "must be /sso/callback/" in report.notes[0], "before what the provider says"


def test_a_redirect_uri_at_another_host_of_the_service_causes_a_warning(willing: HostileProvider, as_sonja: Client):
    other = CALLBACK.replace("http://testserver", "http://testserver:8001")
    sent_back(willing, to=other, error="login_required")
    report = says(willing, as_sonja, redirect_uri=other)

    assert report.is_successful and "the same scheme, host and port" in report.notes[0]


@pytest.mark.parametrize("kind", ["code", "pkce"])
@pytest.mark.parametrize("word", ["invalid_client", "unauthorized_client"])
def test_a_rejected_client_is_reported(willing: HostileProvider, as_sonja: Client, kind: str, word: str):
    willing.serve("token", answers({"error": word}, 401))
    report = says(willing, as_sonja, authorization_type=kind)

    assert not report.is_successful and word in report.notes[0] and "rejected the client ID" in report.notes[0]
    assert ("or client secret" in report.notes[0]) is (kind == "code")


@pytest.mark.parametrize("behaviour", [html(400), answers({"error": "invalid_redirect_uri"}, 400)])
def test_an_unregistered_redirect_uri_is_reported(willing: HostileProvider, as_sonja: Client, behaviour: Any):
    willing.serve("auth", behaviour)
    report = says(willing, as_sonja)

    assert not report.is_successful and report.notes == (client_check.REDIRECT_URI_REJECTED,)


@pytest.mark.parametrize("word", ["invalid_scope", "unsupported_response_type"])
def test_a_rejected_request_is_reported(willing: HostileProvider, as_sonja: Client, word: str):
    sent_back(willing, error=word)
    report = says(willing, as_sonja)

    assert not report.is_successful and report.notes == (client_check.REQUEST_REJECTED.format(error=word),)
    assert "Redirect URI" not in report.notes[0], "only to a registered one does a provider send somebody back"


def test_an_unusable_token_endpoint_is_reported(willing: HostileProvider, as_sonja: Client):
    for endpoint, sentence in (
        (None, "has no token endpoint"),
        ("http://127.0.0.1:9/token", "connection to 127.0.0.1 failed"),
    ):
        willing.discovery = {"token_endpoint": endpoint} if endpoint else {"token_endpoint": ABSENT}
        report = says(willing, as_sonja)
        assert not report.is_successful and sentence in report.notes[0], report


def test_a_secret_that_cannot_be_decrypted_is_not_sent(willing: HostileProvider, as_sonja: Client, monkeypatch: Any):
    setting = make_at(willing, authorization_type="code")
    setting.client_secret = encryption.encrypt("stored")
    setting.save()
    monkeypatch.setattr(encryption, "decrypt", undecipherable)
    report = press(as_sonja, "_test", setting).context["report"]

    assert not report.is_successful and willing.asked("token") == []


def undecipherable(stored: str) -> str:
    raise encryption.DecryptionFailed


def test_a_connection_that_admits_nobody_fails_the_test(willing: HostileProvider, as_sonja: Client):
    report = says(willing, as_sonja, ignore_case=True)
    assert (
        not report.is_successful
        and "nobody could sign in" in report.title
        and connection_warnings.NOBODY_CAN_SIGN_IN in report.notes
    )
    willing.algorithms = ["HS256"]
    report = says(willing, as_sonja)
    assert not report.is_successful and "supports none of the algorithms" in report.notes[0]


UNCLEAR = [
    ("auth", html(200)),
    ("auth", fails(500)),
    ("auth", fails(404)),
    ("auth", redirects("https://idp.example.com/sign-in")),
    ("auth", redirects(f"{CALLBACK}?error=<script>")),
    ("auth", redirects(CALLBACK)),
    ("auth", redirects("")),
    ("auth", redirects(f"{CALLBACK}?error=server_error")),
    ("auth", redirects(f"{CALLBACK}?error=temporarily_unavailable")),
    ("token", answers({"error": "invalid_request"}, 400)),
    ("token", html(404)),
    ("token", fails(500)),
    ("token", answers({"id_token": "x"}, 200)),
    ("token", answers([], 400)),
]


@pytest.mark.parametrize(("endpoint", "behaviour"), UNCLEAR)
def test_an_inconclusive_answer_is_reported_as_unchecked(
    willing: HostileProvider, as_sonja: Client, endpoint: str, behaviour: Any
):
    willing.serve(endpoint, behaviour)
    report = says(willing, as_sonja)

    what = "The Redirect URI" if endpoint == "auth" else "The client ID or secret"
    assert report.is_successful and report.notes == (client_check.CHECK_INCONCLUSIVE.format(what=what),)


def test_in_the_fragment_flow_the_client_is_not_checked(willing: HostileProvider, as_sonja: Client):
    willing.serve("auth", redirects(f"{CALLBACK}#error=login_required"))
    report = says(willing, as_sonja, response_type="id_token")

    assert report.is_successful and report.notes == () and willing.asked("token") == []


class TestTheStoredSecret:  # A56
    """Whoever may change a connection, but not read its secret, must not have it sent to a server of their own."""

    @pytest.fixture
    def setting(self, willing: HostileProvider) -> OidcSetting:
        setting = make_at(willing, authorization_type="code")
        setting.client_secret = encryption.encrypt("stored-secret-canary")
        setting.save()
        return setting

    def test_the_stored_secret_is_sent_to_its_provider(
        self, willing: HostileProvider, as_sonja: Client, setting: OidcSetting
    ):
        assert press(as_sonja, "_test", setting).context["report"].is_successful
        assert len(willing.asked("token")) == 1

    @pytest.mark.parametrize("moved", [True, False], ids=["another provider", "its endpoint moved"])
    def test_the_stored_secret_is_sent_to_no_other_server(
        self, willing: HostileProvider, as_sonja: Client, setting: OidcSetting, http_allowed: None, moved: bool
    ):
        with HostileProvider() as other:
            visits: list[Visit] = []
            other.serve("token", visits.append)
            if moved:
                columns = {"url_idp": other.url_idp}
            else:
                willing.discovery = {"token_endpoint": other.url("token")}
                columns = {}
            report = press(as_sonja, "_test", setting, **columns).context["report"]

            assert visits == [] and other.asked("token") == [] and willing.asked("token") == []
            assert client_check.SECRET_NOT_SENT in report.notes

    def test_without_a_secret_the_client_is_checked_anywhere(
        self, willing: HostileProvider, as_sonja: Client, http_allowed: None
    ):
        setting = make_at(willing)
        setting.client_secret = encryption.encrypt("left over")
        setting.save()
        with HostileProvider() as other:
            press(as_sonja, "_test", setting, url_idp=other.url_idp)
            (request,) = other.asked("token")
            assert "authorization" not in request.headers and "client_secret" not in request.form

    def test_an_entered_secret_is_sent_to_the_entered_provider(
        self, willing: HostileProvider, as_sonja: Client, setting: OidcSetting, http_allowed: None
    ):
        with HostileProvider() as other:
            press(as_sonja, "_test", setting, url_idp=other.url_idp, client_secret="typed")
            assert len(other.asked("token")) == 1

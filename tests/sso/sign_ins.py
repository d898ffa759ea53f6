"""A browser that signs in through the hostile provider step by step, and checks of refusals."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.test import Client

from accounts.models import User
from sso.models import OidcSetting, SignIn
from system import encryption
from tests.providers.hostile import HostileProvider
from tests.sso.connections import make_connection_at

START_PATH = "/sso/start/"
CALLBACK_PATH = "/sso/callback/"
ME_PATH = "/api/me"
HTML_HEADERS = {"Accept": "text/html"}


def make_active_connection(provider: HostileProvider, **columns: Any) -> OidcSetting:
    """Saves an active connection to the provider, with its endpoints."""
    secret = columns.pop("secret", provider.client_secret)
    defaults = {"active": True, "user_field": "login", "authorization_type": "code"}
    return make_connection_at(
        provider, **{**defaults, "client_secret": encryption.encrypt(secret) if secret else "", **columns}
    )


class Browser:
    """A browser that signs in step by step."""

    def __init__(self, provider: HostileProvider, client: Client | None = None) -> None:
        self.provider = provider
        self.client = client or Client()

    def start(self, **parameters: str) -> str:
        """Starts a sign-in; returns the authorization URL to which the browser is redirected."""
        response = self.client.get(START_PATH, parameters)
        assert response.status_code == 302, response.content
        return str(response["Location"])

    def authorize(self, authorization_url: str) -> str:
        """Signs in at the provider; returns the callback URL to which it redirects."""
        return self.provider.authorize(authorization_url)

    def follow_callback(self, callback_url: str, **options: Any) -> Any:
        """Requests the callback URL; a fragment is sent by POST, as the fragment page does."""
        parsed_url = urlsplit(callback_url)
        if parsed_url.fragment:
            return self.client.post(
                parsed_url.path, dict(parse_qsl(parsed_url.fragment)), headers=HTML_HEADERS, **options
            )
        return self.client.get(f"{parsed_url.path}?{parsed_url.query}", headers=HTML_HEADERS, **options)

    def sign_in(self, **parameters: str) -> Any:
        return self.follow_callback(self.authorize(self.start(**parameters)))

    @property
    def login(self) -> str | None:
        """The login of the signed-in user."""
        response = self.client.get("/account/")
        return response.context["user"].login if response.status_code == 200 else None


def refusal_code(response: Any) -> str:
    """The code that a refusal page shows."""
    return str(response.context["refusal"].code) if response.context and "refusal" in response.context else ""


def check_refusal(response: Any, code: str, status: int) -> SignIn:
    """Checks a refusal page, and returns its entry in the sign-in log."""
    assert (response.status_code, refusal_code(response)) == (status, code), response.content
    assert code.encode() in response.content and response["Cache-Control"] == "no-store"
    entry = SignIn.objects.latest("sys_updated_at")  # equal refusals share an entry
    assert entry.outcome == code
    return entry


def make_ann(**columns: Any) -> User:
    """Creates the account of the provider's person."""
    return User.objects.create_user("ann", **{"email": "ann@example.com", **columns})

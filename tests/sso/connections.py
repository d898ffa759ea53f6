"""Creates valid connections, and the form data that a browser sends."""

from typing import Any

from django.test import Client

from sso.connections.saving import save_connection
from sso.models import OidcSetting
from system import properties
from tests.providers.hostile import HostileProvider

CALLBACK_URL = "http://testserver/sso/callback/"
VALID_COLUMNS = {
    "name": "Example",
    "url_idp": "https://idp.example.com",
    "realm": "acme",
    "authorization_type": "pkce",
    "client_id": "servicebase",
    "user_field": "email",
    "redirect_uri": CALLBACK_URL,
    "scope": "openid",
}
# If the endpoints are known, a save does not look up the provider.
KNOWN_ENDPOINTS = {
    "issuer": "https://idp.example.com/realms/acme",
    "authorization_endpoint": "https://idp.example.com/realms/acme/auth",
    "token_endpoint": "https://idp.example.com/realms/acme/token",
    "jwks_uri": "https://idp.example.com/realms/acme/certs",
}
CONNECTION_LIST_PATH = "/admin/sso/oidcsetting/"
CHECKBOXES = ("active", "enable_user_creation", "ignore_case", "enable_role_mapping", "update_data_when_login")


def make_connection(**columns: Any) -> OidcSetting:
    """Saves a connection whose endpoints are known."""
    setting = OidcSetting(**{**VALID_COLUMNS, **KNOWN_ENDPOINTS, **columns})
    save_connection(setting)
    return setting


def make_connection_at(provider: HostileProvider, **columns: Any) -> OidcSetting:
    """Saves a connection to a provider of this test, with its endpoints."""
    endpoints = {
        "issuer": provider.issuer,
        "authorization_endpoint": provider.url("auth"),
        "token_endpoint": provider.url("token"),
        "jwks_uri": provider.url("certs"),
        "userinfo_endpoint": provider.url("userinfo"),
        "end_session_endpoint": provider.url("logout"),
        "algorithms": ["RS256"],
    }
    return make_connection(**{"url_idp": provider.url_idp, "realm": provider.realm, **endpoints, **columns})


def welcome_page() -> str:
    return properties.fetch(properties.WELCOME_PAGE)


def connection_path(setting: OidcSetting | None, page: str = "change") -> str:
    return f"{CONNECTION_LIST_PATH}{setting.pk}/{page}/" if setting else f"{CONNECTION_LIST_PATH}add/"


def form_data(setting: OidcSetting | None = None, /, **columns: Any) -> dict[str, str]:
    """The form data of a record with changed columns; `None` leaves a column out."""
    stored_columns = (
        {
            name: getattr(setting, name)
            for name in (*VALID_COLUMNS, "script", "role_claim", "group_claim", "response_type", *CHECKBOXES)
        }
        if setting
        else {}
    )
    form = {
        **VALID_COLUMNS,
        "script": OidcSetting().script,
        "role_claim": "",
        "group_claim": "",
        "response_type": "code",
        **stored_columns,
        **columns,
    }
    form_values = {name: "on" if value is True else value for name, value in form.items()}
    return {name: value for name, value in form_values.items() if value is not None and value is not False}


def press_button(browser: Client, button: str, setting: OidcSetting | None = None, /, **columns: Any) -> Any:
    """Submits the form with one of its buttons."""
    return browser.post(connection_path(setting), {**form_data(setting, **columns), button: "1"}, follow=True)


def messages_of(page: Any) -> str:
    """The messages of a page."""
    return " ".join(str(message) for message in page.context["messages"])

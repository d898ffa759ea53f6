"""Takes the settings of mozilla-django-oidc from a connection instead of Django's settings."""

from collections.abc import Callable, Mapping
from typing import Any

from sso.models import OidcSetting
from sso.provider import token_client
from sso.provider.discovery import Endpoints

RANDOM_STRING_LENGTH = 43  # of letters and digits: 256 bits

LIBRARY_SETTINGS: Mapping[str, Callable[[OidcSetting, Endpoints], Any]] = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": lambda setting, endpoints: endpoints.authorization,
    "OIDC_OP_TOKEN_ENDPOINT": lambda setting, endpoints: endpoints.token,
    "OIDC_OP_USER_ENDPOINT": lambda setting, endpoints: endpoints.userinfo,
    "OIDC_OP_JWKS_ENDPOINT": lambda setting, endpoints: endpoints.jwks,
    "OIDC_RP_CLIENT_ID": lambda setting, endpoints: setting.client_id,
    "OIDC_RP_CLIENT_SECRET": lambda setting, endpoints: token_client.client_secret(setting),
    "OIDC_RP_SCOPES": lambda setting, endpoints: setting.scope,
    "OIDC_USE_PKCE": lambda setting, endpoints: setting.response_type == setting.ResponseType.CODE,
    "OIDC_STATE_SIZE": lambda setting, endpoints: RANDOM_STRING_LENGTH,
    "OIDC_NONCE_SIZE": lambda setting, endpoints: RANDOM_STRING_LENGTH,
    "OIDC_AUTHENTICATION_CALLBACK_URL": lambda setting, endpoints: "sso:callback",
}


class ConnectionSettings:
    """A mixin for the library's classes, which read their settings in the constructor.

    Until `use_connection` is called, every setting has its default: Django creates the backend on every signed-in
    request, when there is no connection.
    """

    _connection: tuple[OidcSetting, Endpoints] | None = None

    def use_connection(self, setting: OidcSetting, endpoints: Endpoints) -> None:
        self._connection = setting, endpoints
        super().__init__()

    def get_settings(self, attr: str, *default: Any) -> Any:
        if self._connection is not None and attr in LIBRARY_SETTINGS:
            return LIBRARY_SETTINGS[attr](*self._connection)
        return default[0] if default else None

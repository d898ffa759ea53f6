"""Authentication backend for provider sign-ins: mozilla-django-oidc's backend with our checks in its hooks.

authenticate ─▶ get_token ─▶ verify_token ─▶ store_tokens ─▶ get_or_create_user ─┬─▶ filter_users_by_claims
of the library  our client   our checks                      get_userinfo, script └─▶ create_user | update_user
"""

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest
from mozilla_django_oidc.auth import OIDCAuthenticationBackend

from accounts.models import User
from sso.connections import certificate_updates
from sso.models import OidcSetting
from sso.provider import discovery, request_slots, token_client
from sso.provider.discovery import Endpoints
from sso.provisioning import sign_in
from sso.provisioning.sign_in import AccountProvisioning, SignInResult
from sso.refusals import Refusal, SignInRefused
from sso.sign_in_attempts import CODE_FLOW, Attempt
from sso.tokens import token_check
from sso.tokens.token_check import Claims, ExpectedToken, UnknownKey
from system.outbound.deadline import Deadline

RANDOM_STRING_LENGTH = 43  # of letters and digits: 256 bits

LIBRARY_SETTINGS: Mapping[str, Callable[[OidcSetting, Endpoints], Any]] = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": lambda setting, endpoints: endpoints.authorization_endpoint,
    "OIDC_OP_TOKEN_ENDPOINT": lambda setting, endpoints: endpoints.token_endpoint,
    "OIDC_OP_USER_ENDPOINT": lambda setting, endpoints: endpoints.userinfo_endpoint,
    "OIDC_OP_JWKS_ENDPOINT": lambda setting, endpoints: endpoints.jwks_uri,
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


@dataclass
class AuthorizationResponse:
    """The credentials for the backend, which adds its results, because Django's `authenticate` returns only a user.

    The tokens are given in the fragment flow. In the code flow, the library reads the code from the request.
    """

    attempt: Attempt
    setting: OidcSetting
    deadline: Deadline
    id_token: str = field(default="", repr=False)
    access_token: str | None = field(default=None, repr=False)
    claims: Claims = field(default_factory=dict, repr=False)
    result: SignInResult = field(init=False, repr=False)


class OidcBackend(ConnectionSettings, OIDCAuthenticationBackend):  # type: ignore[misc]  # the library has no types
    """Signs users in or raises `SignInRefused`. Django skips it for passwords, which are passed as other arguments."""

    response: AuthorizationResponse
    endpoints: Endpoints
    provisioning: AccountProvisioning

    def authenticate(self, request: HttpRequest | None, response: AuthorizationResponse | None = None) -> User | None:
        if request is None or response is None:
            return None
        self.response = response
        self.endpoints = discovery.ensure_endpoints(response.setting, response.deadline)
        if self.endpoints.issuer != response.attempt.issuer:
            detail = "The connection was changed to another provider during the sign-in."
            raise SignInRefused(Refusal.NOT_AVAILABLE, detail)
        self.use_connection(response.setting, self.endpoints)
        attempt = response.attempt
        if attempt.kind == CODE_FLOW:
            user: User | None = super().authenticate(request, nonce=attempt.nonce_hash, code_verifier=attempt.verifier)
            return user
        # The same steps without a code. The access token from the fragment is used only to check `at_hash`.
        payload = self.verify_token(response.id_token, nonce=attempt.nonce_hash)
        self.store_tokens(None, response.id_token)
        return self.get_or_create_user(None, response.id_token, payload)

    def get_token(self, payload: Mapping[str, str]) -> dict[str, str | None]:
        """Sends the library's token request through our client, with the exact Redirect URI of the attempt."""
        form = {**payload, "redirect_uri": self.response.attempt.redirect_uri}
        tokens = token_client.redeem_code(self.endpoints, form, self.response.deadline)
        self.response.access_token = tokens["access_token"]
        return tokens

    def verify_token(self, token: str, **kwargs: Any) -> Claims:
        """Verifies the ID token and returns its claims. `nonce` is the hash of the attempt's nonce."""
        attempt, setting = self.response.attempt, self.response.setting
        expected = ExpectedToken(
            issuer=attempt.issuer,
            client_id=setting.client_id,
            now=time.time(),
            algorithms=self.endpoints.algorithms,
            nonce_hash=kwargs["nonce"],
            access_token=self.response.access_token,
            needs_at_hash=attempt.kind != CODE_FLOW and setting.response_type == setting.ResponseType.ID_TOKEN_TOKEN,
        )
        return check_with_keys(setting, partial(token_check.check_id_token, token, expected), self.response.deadline)

    def store_tokens(self, access_token: str | None, id_token: str) -> None:
        """Keeps the ID token out of the session. The view stores it, encrypted, for the sign-out at the provider."""
        self.response.id_token = id_token

    def get_userinfo(self, access_token: str | None, id_token: str, payload: Claims) -> Claims:
        """ "Another `sub` refuses the sign-in; on a conflict the ID token's claim wins." Requested only once."""
        response = self.response
        if not response.claims:
            is_code_flow = response.attempt.kind == CODE_FLOW
            response.claims = self._merge_userinfo(access_token, payload) if is_code_flow else payload
        return response.claims

    def _merge_userinfo(self, access_token: str | None, payload: Claims) -> Claims:
        userinfo = dict(token_client.fetch_userinfo(self.endpoints, access_token, self.response.deadline))
        if self.endpoints.userinfo_endpoint and userinfo.get("sub") != payload["sub"]:
            raise SignInRefused(Refusal.USERINFO_SUBJECT, "The userinfo endpoint returned a different subject.")
        if "email" in payload and userinfo.get("email") != payload["email"]:
            userinfo.pop("email_verified", None)  # it refers to the other address
        return {**userinfo, **payload}

    def get_or_create_user(self, access_token: str | None, id_token: str, payload: Claims) -> User:
        """Runs the library's steps in one transaction, after the userinfo request and the script."""
        claims = self.get_userinfo(access_token, id_token, payload)
        initial_provisioning = AccountProvisioning.prepare(self.response.setting, claims, self.response.deadline)
        library_steps = super().get_or_create_user

        def provision(provisioning: AccountProvisioning) -> User:
            self.provisioning = provisioning
            user: User = library_steps(access_token, id_token, payload)
            return user

        return sign_in.run_in_transaction(initial_provisioning, provision)

    def verify_claims(self, claims: Claims) -> bool:
        """Accepts all claims: the profile that the script returns decides whether they identify a user."""
        return True

    def filter_users_by_claims(self, claims: Claims) -> list[User]:
        user = self.provisioning.find_user()
        return [user] if user else []

    def create_user(self, claims: Claims) -> User:
        return self._complete(self.provisioning.create_user(), is_new=True)

    def update_user(self, user: User, claims: Claims) -> User:
        return self._complete(user, is_new=False)

    def _complete(self, user: User, *, is_new: bool) -> User:
        self.response.result = self.provisioning.complete(user, is_new=is_new)
        return self.response.result.user

    get_user = ModelBackend.get_user  # returns active users only, unlike the library's method


def check_with_keys(
    setting: OidcSetting,
    check: Callable[[list[dict[str, Any]]], Claims],
    deadline: Deadline,
    *,
    is_unsolicited: bool = False,
) -> Claims:
    """Run `check` with the stored keys and, if none matches, with newly fetched ones; return the claims.

    "Certificates are updated automatically when a user is authorized or created and the matching certificate is not
    found."
    """
    try:
        return check(certificate_updates.signing_keys(setting))
    except UnknownKey:
        # A sign-in already holds a slot.
        with request_slots.request_slot() if is_unsolicited else nullcontext():
            certificate_updates.refresh_for_unknown_kid(setting, deadline, is_unsolicited=is_unsolicited)
    try:
        return check(certificate_updates.signing_keys(setting))
    except UnknownKey:
        # Only a current response from the provider proves that it does not have the key.
        if reason := certificate_updates.unknown_key_reason(setting):
            raise SignInRefused(Refusal.CERTIFICATES_UNAVAILABLE, reason) from None
        raise

"""Django's door for those who come from a provider: mozilla-django-oidc's backend, with our checks at its seams."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.http import HttpRequest
from mozilla_django_oidc.auth import OIDCAuthenticationBackend

from accounts.models import User
from sso.connections import certificate_updates
from sso.models import OidcSetting
from sso.provider import discovery, token_client
from sso.provider.discovery import Endpoints, EndpointsNotFound
from sso.provider.token_client import Redemption
from sso.provisioning import sign_in
from sso.provisioning.sign_in import SignInResult
from sso.refusals import SignInRefused
from sso.sign_in_attempts import CODE, Attempt
from sso.tokens import token_check
from sso.tokens.token_check import Claims, Expected, UnknownKey
from system.outbound.deadline import Deadline


@dataclass
class AuthorizationResponse:
    """What a browser brought back for one attempt, by when it must be answered, and what became of it."""

    attempt: Attempt
    setting: OidcSetting
    deadline: Deadline
    code: str = field(default="", repr=False)
    id_token: str = field(default="", repr=False)
    access_token: str | None = field(default=None, repr=False)
    claims: Claims = field(default_factory=dict, repr=False)
    entered: SignInResult | None = None


class OidcBackend(OIDCAuthenticationBackend):  # type: ignore[misc]  # it has no types
    """Raises `Refused`; it is only asked when a response is at hand, and lets passwords pass by."""

    def __init__(self) -> None:
        """Django builds a backend on every signed-in request, so that nothing is read here."""
        self.UserModel = User

    def authenticate(
        self, request: HttpRequest | None, response: AuthorizationResponse | None = None, **_: Any
    ) -> User | None:
        if response is None:
            return None
        known = resolved(response)
        if response.attempt.kind == CODE:
            self.get_token(response, known)
        claims = self.verify_token(response, known)
        if response.attempt.kind == CODE:
            claims = self.get_userinfo(response, known, claims)
        response.claims = claims
        return self.get_or_create_user(response)

    def get_token(self, response: AuthorizationResponse, known: Endpoints) -> None:
        attempt = response.attempt
        redemption = Redemption(response.code, attempt.verifier, attempt.redirect_uri)
        tokens = token_client.redeem(response.setting, known, redemption, response.deadline)
        response.id_token, response.access_token = tokens.id_token, tokens.access_token

    def verify_token(self, response: AuthorizationResponse, known: Endpoints) -> Claims:
        """The ID token's claims. An access token that the browser brought has done its part after this."""
        attempt, setting = response.attempt, response.setting
        expected = Expected(
            issuer=attempt.issuer,
            client_id=setting.client_id,
            now=time.time(),
            algorithms=known.algorithms,
            nonce_hash=attempt.nonce_hash,
            access_token=response.access_token,
            needs_at_hash=attempt.kind != CODE and setting.response_type == setting.ResponseType.ID_TOKEN_TOKEN,
        )
        check = partial(token_check.check, response.id_token, expected)
        return checked(setting, check, response.deadline)

    def get_userinfo(self, response: AuthorizationResponse, known: Endpoints, claims: Claims) -> Claims:
        """ "Another `sub` refuses the sign-in; on a conflict the ID token's claim wins." """
        said = dict(token_client.userinfo(known, response.access_token, response.deadline))
        if known.userinfo and said.get("sub") != claims["sub"]:
            raise SignInRefused("userinfo_subject", "The userinfo endpoint speaks of another subject.")
        if "email" in claims and said.get("email") != claims["email"]:
            said.pop("email_verified", None)  # it is about the other address
        return {**said, **claims}

    def get_or_create_user(self, response: AuthorizationResponse) -> User:
        response.entered = sign_in.provision_user(response.setting, response.claims, response.deadline)
        return response.entered.user

    def get_user(self, user_id: Any) -> User | None:
        return User.objects.filter(pk=user_id, active=True).first()


def resolved(response: AuthorizationResponse) -> Endpoints:
    """The provider's endpoints, if it is still the provider that the attempt was made for."""
    known = find(response.setting, response.deadline)
    if known.issuer != response.attempt.issuer:
        raise SignInRefused("not_available", "The connection leads to another provider since the attempt was made.")
    return known


def find(setting: OidcSetting, deadline: Deadline) -> Endpoints:
    try:
        return discovery.ensure(setting, deadline)
    except EndpointsNotFound as error:
        raise SignInRefused("provider_unresolved", error.sentence) from None


def checked(
    setting: OidcSetting,
    check: Callable[[list[dict[str, Any]]], Claims],
    deadline: Deadline,
    *,
    is_from_stranger: bool = False,
) -> Claims:
    """The claims that `check` finds with the stored keys, or with those fetched because none of them fits.

    "Certificates are updated automatically when a user is authorized or created and the matching certificate is not
    found."
    """
    try:
        return check(certificate_updates.signing_keys(setting))
    except UnknownKey:
        certificate_updates.refresh_for_unknown_kid(setting, deadline, is_from_stranger=is_from_stranger)
    try:
        return check(certificate_updates.signing_keys(setting))
    except UnknownKey:
        # Only a provider that has said what its keys are can have none that fits.
        if why := certificate_updates.why_unknown(setting):
            raise SignInRefused("certificates_unavailable", why) from None
        raise

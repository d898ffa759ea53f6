"""Finds out before anybody signs in whether a provider takes this service: both of its doors are tried with something
that signs nobody in, a code that never was and a sign-in without a question (`prompt=none`)."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from mozilla_django_oidc.utils import generate_code_challenge

from sso.models import OidcSetting
from sso.provider import token_client
from sso.provider.discovery import Endpoints, policy
from sso.refusals import SignInRefused
from system import outbound
from system.outbound import OutboundError
from system.outbound.deadline import Deadline

# What a provider says that knows client and address, and would now ask somebody something.
WOULD_ASK = frozenset({"login_required", "interaction_required", "consent_required", "account_selection_required"})

CLIENT_REFUSED = (
    "It does not take this Client ID with this Client secret ({said}): compare both with what the provider shows for "
    "this client."
)
PUBLIC_CLIENT_REFUSED = (
    "It does not take this Client ID ({said}): compare it, and see that the client is a public one there, or choose "
    "the Authorization Code Flow and enter its secret."
)
NO_TOKENS = "Its token endpoint cannot be asked. {said}"
NOT_BEGUN = (
    "It does not begin a sign-in: it answers 400. Register the Redirect URI there, letter for letter, and compare "
    "Client ID."
)
SENT_BACK = (
    "It does not begin a sign-in: it sends people back with {said}. Compare Scope, Response type and Authorization "
    "type with what the client may use there."
)
SECRET_NOT_SENT = "The stored client secret was not tried at the changed address. Enter it to have it tried."
NOT_SAID = "Whether {what} is right, this provider does not say beforehand: a sign-in shows it."


@dataclass(frozen=True)
class Verdict:
    """What the provider has against this service, and what it would not say."""

    problems: tuple[str, ...]
    doubts: tuple[str, ...]


class _NotSaid(Exception):
    """The answer allows no conclusion."""


def check(setting: OidcSetting, known: Endpoints, deadline: Deadline, *, may_send_secret: bool) -> Verdict:
    problems: list[str] = []
    doubts: list[str] = []
    is_exchanged = setting.response_type == setting.ResponseType.CODE
    if is_exchanged and setting.authorization_type == setting.AuthorizationType.CODE and not may_send_secret:
        doubts.append(SECRET_NOT_SENT)
    elif is_exchanged:
        _note(problems, doubts, "the Client ID or secret", _about_client(setting, known, deadline))
    _note(problems, doubts, "the Redirect URI", _about_redirect_uri(setting, known, deadline))
    return Verdict(tuple(problems), tuple(doubts))


def _note(problems: list[str], doubts: list[str], what: str, found: Iterator[str]) -> None:
    try:
        problems.extend(found)
    except _NotSaid:
        doubts.append(NOT_SAID.format(what=what))


def _about_client(setting: OidcSetting, known: Endpoints, deadline: Deadline) -> Iterator[str]:
    """A token endpoint judges the client before the code (RFC 6749, 5.2)."""
    never_was = token_client.Redemption(secrets.token_urlsafe(32), secrets.token_urlsafe(32), setting.redirect_uri)
    try:
        word = token_client.error_of(token_client.ask_for_tokens(setting, known, never_was, deadline))
    except SignInRefused as refused:
        yield NO_TOKENS.format(said=refused.detail)
        return
    if word in token_client.CLIENT_ERRORS:
        is_public = setting.authorization_type == setting.AuthorizationType.PKCE
        yield (PUBLIC_CLIENT_REFUSED if is_public else CLIENT_REFUSED).format(said=word)
    elif word != "invalid_grant":
        raise _NotSaid


def _about_redirect_uri(setting: OidcSetting, known: Endpoints, deadline: Deadline) -> Iterator[str]:
    """Only to a registered address does a provider send somebody back, be it with an error."""
    asked = {
        "response_type": setting.response_type,
        "client_id": setting.client_id,
        "redirect_uri": setting.redirect_uri,
        "scope": setting.scope,
        "state": secrets.token_urlsafe(16),
        "nonce": secrets.token_urlsafe(16),
        "prompt": "none",
    }
    if setting.response_type == setting.ResponseType.CODE:
        challenge = generate_code_challenge(secrets.token_urlsafe(32), "S256")
        asked |= {"code_challenge": challenge, "code_challenge_method": "S256"}
    try:
        address = token_client.authorization_address(known, asked)
        status = outbound.get(address, policy().within(deadline.left()), allow_query=True).status
    except OutboundError as error:
        word = _sent_back_with(error.leads_to, setting.redirect_uri)
        if word not in WOULD_ASK:
            yield SENT_BACK.format(said=word)
    except TimeoutError:
        raise _NotSaid from None
    else:
        if status != 400:  # a page to sign in on, or what a wall before the provider answers to programs
            raise _NotSaid
        yield NOT_BEGUN


def _sent_back_with(leads_to: str, redirect_uri: str) -> str:
    if not leads_to.startswith(redirect_uri):
        raise _NotSaid
    parts = urlsplit(leads_to)
    said = {**parse_qs(parts.query), **parse_qs(parts.fragment)}.get("error", [""])[0]
    if not token_client.WORD.fullmatch(said) or said in token_client.AWAY:
        raise _NotSaid
    return said

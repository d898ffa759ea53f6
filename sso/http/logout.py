"""Signing out at both ends: ours leads to the provider's, and the provider's ends ours (back-channel logout)."""

import hmac
import secrets
import time
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import structlog
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from accounts.http import sign_in_hooks
from accounts.http.pages import SignOut
from accounts.http.sign_in_hooks import Finish
from accounts.models.sessions import PROVIDER_SESSION
from sso.backends import checked
from sso.connections import certificate_updates
from sso.http import pages
from sso.models import OidcSetting, ProviderSession, ProviderSignOut, advisory_locks
from sso.provider import request_slots
from sso.provider.request_slots import NoSlotFree
from sso.refusals import SignInRefused
from sso.tokens import token_check
from sso.tokens.token_check import Claims, Expected, UnknownKey, hashed
from system.outbound.deadline import Deadline

logger = structlog.get_logger(__name__)

STATE = "sso_logout_state"
SIGNED_OUT = "?signed_out=1"
LONGEST_STATE = 256


@sign_in_hooks.on_sign_out
def leave_the_provider(request: HttpRequest) -> Finish | None:
    """RP-initiated logout, for a session that began with the provider."""
    began = ProviderSession.objects.select_related("setting").filter(pk=request.session.get(PROVIDER_SESSION, ""))
    mine = began.first()
    if mine is None:
        return None
    setting, hint = mine.setting, mine.token_hint
    mine.delete()
    known = setting.endpoints if setting else None
    if setting is None or known is None or not known.end_session or known.issuer != mine.issuer:
        return None
    address, client_id, back = known.end_session, setting.client_id, return_address(setting)

    def finish(request: HttpRequest) -> HttpResponse:
        state = secrets.token_urlsafe(32)
        request.session[STATE] = hashed(state)
        fields = {"client_id": client_id, "post_logout_redirect_uri": back, "state": state}
        return pages.leave(request, address, {"id_token_hint": hint, **fields} if hint else fields)

    return finish


def return_address(setting: OidcSetting) -> str:
    """Where the provider sends back to: fixed, at the host of the Redirect URI, whatever host the request names."""
    parts = urlsplit(setting.redirect_uri)
    return f"{parts.scheme}://{parts.netloc}{reverse('sso:logout')}"


class Logout(SignOut):
    """`/sso/logout/`: POST signs out; a GET is the way back from the provider and signs nobody out."""

    def get(self, request: HttpRequest) -> HttpResponse:
        expected = request.session.pop(STATE, None)
        given = request.GET.get("state")
        # A provider that sends no state back says nothing wrong; one that sends another's does.
        is_ours = isinstance(expected, str) and given is not None and is_same_state(given, expected)
        if given is not None and not is_ours:
            return pages.refused(request, SignInRefused("logout_state"))
        return HttpResponseRedirect(reverse("login") + SIGNED_OUT)


def is_same_state(given: str, expected: str) -> bool:
    return len(given) <= LONGEST_STATE and hmac.compare_digest(hashed(given), expected)


@method_decorator(csrf_exempt, name="dispatch")
class BackchannelLogout(View):
    """`/sso/backchannel-logout/`: the provider says that a session or a user is signed out (its own server calls)."""

    http_method_names = ["post"]
    body_limit = 64 * 1024

    def post(self, request: HttpRequest) -> HttpResponse:
        try:
            ended = end_sessions(request.POST.getlist("logout_token"))
        except NoSlotFree:
            return said({"error": "temporarily_unavailable"}, 503)
        except SignInRefused as refusal:
            logger.warning("backchannel_logout_refused", outcome=refusal.code, detail=refusal.detail)
            if refusal.status == 503:  # the token may be right: it cannot be told just now
                return said({"error": "temporarily_unavailable"}, 503)
            return said({"error": "invalid_request", "error_description": refusal.code}, 400)
        logger.info("backchannel_logout", ended=ended)
        return said({}, 200)


def said(body: dict[str, Any], status: int) -> HttpResponse:
    response = JsonResponse(body, status=status)
    response["Cache-Control"] = "no-store"
    if status == 503:
        response["Retry-After"] = "1"
    return response


def end_sessions(sent: list[str]) -> int:
    """End what a verified logout token names: one session, or all of a subject; how many there were.

    Sign-ins that are under way stand still meanwhile, or find the note of this one when they come to their end.
    """
    if len(sent) != 1:
        raise SignInRefused("response_malformed", "There must be one logout_token.")
    claims = verified(sent[0])
    named = {name: claims[name] for name in ("sub", "sid") if name in claims}
    with transaction.atomic():
        advisory_locks.alone_with(advisory_locks.SIGN_OUTS, claims["iss"])
        if not ProviderSignOut.note(claims):
            raise SignInRefused("token_replayed", "A logout token of this id (jti) has come before.")
        return ProviderSession.end(issuer=claims["iss"], **named)


def verified(token: str) -> Claims:
    """The claims of a logout token of one of our providers, also of one that is not active any more."""
    issuer = token_check.unverified_issuer(token)
    settings = list(OidcSetting.objects.filter(issuer=issuer).order_by("-active")) if issuer else []
    refusal = SignInRefused("token_issuer", "No connection has this issuer.")
    deadline = Deadline.after(request_slots.ALTOGETHER_S)
    for setting in settings:
        known = setting.endpoints
        assert known is not None  # it has an issuer
        expected = Expected(issuer=issuer, client_id=setting.client_id, now=time.time(), algorithms=known.algorithms)
        check = partial(token_check.check_logout, token, expected)
        try:
            try:
                return check(certificate_updates.signing_keys(setting))
            except UnknownKey:
                with request_slots.request_slot():  # only this may call the provider
                    return checked(setting, check, deadline, is_from_stranger=True)
        except SignInRefused as found:
            refusal = found
    raise refusal

"""RP-initiated logout, which also signs out at the provider, and back-channel logout by the provider."""

import hmac
import secrets
import time
from functools import partial
from typing import cast
from urllib.parse import urlsplit

import structlog
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from mozilla_django_oidc.views import OIDCLogoutView

from accounts.http import sign_in_hooks
from accounts.http.sign_in_hooks import SignOutResponder
from accounts.models.sessions import PROVIDER_SESSION_KEY
from sso.backends import check_with_keys
from sso.http import pages
from sso.models import OidcSetting, ProviderSession, ProviderSignOut, advisory_locks
from sso.provider import request_slots
from sso.provider.request_slots import NoSlotFree
from sso.refusals import Refusal, SignInRefused
from sso.tokens import token_check
from sso.tokens.token_check import Claims, ExpectedToken, sha256_hex
from system.outbound.deadline import Deadline

logger = structlog.get_logger(__name__)

STATE_KEY = "sso_logout_state"
MAX_STATE_LENGTH = 256


@sign_in_hooks.SIGN_OUT_HOOKS.register
def sign_out_at_provider(request: HttpRequest) -> SignOutResponder | None:
    """Start RP-initiated logout if the session began with a sign-in through a provider."""
    sessions = ProviderSession.objects.select_related("setting")
    session = sessions.filter(pk=request.session.get(PROVIDER_SESSION_KEY, "")).first()
    if session is None:
        return None
    setting, hint = session.setting, session.token_hint
    session.delete()
    if setting is None or not setting.end_session_endpoint or setting.issuer != session.issuer:
        return None
    url, client_id = setting.end_session_endpoint, setting.client_id
    parts = urlsplit(setting.redirect_uri)  # at this host, regardless of the host in the request
    return_url = f"{parts.scheme}://{parts.netloc}{reverse('sso:logout')}"

    def respond(request: HttpRequest) -> HttpResponse:
        state = secrets.token_urlsafe(32)
        request.session[STATE_KEY] = sha256_hex(state)
        fields = {"client_id": client_id, "post_logout_redirect_uri": return_url, "state": state}
        return pages.provider_logout_page(request, url, {"id_token_hint": hint, **fields} if hint else fields)

    return respond


class LogoutView(OIDCLogoutView):  # type: ignore[misc]  # the library has no types
    """`/sso/logout/`: POST signs out; GET handles the return from the provider and signs nobody out."""

    http_method_names = ["get", "head", "post", "options"]

    @property
    def redirect_url(self) -> str:
        return reverse("login") + "?signed_out=1"

    def post(self, request: HttpRequest) -> HttpResponse:
        """End the session with the library, then sign out at the provider by form, to keep the token out of the URL."""
        responder = sign_in_hooks.run_sign_out_hooks(request)
        response = cast(HttpResponse, super().post(request))
        return responder(request) if responder else response

    def get(self, request: HttpRequest) -> HttpResponse:
        expected_hash = request.session.pop(STATE_KEY, None)
        state = request.GET.get("state")
        # A provider may omit the state, but must not return the state of another browser.
        if state is not None and not (isinstance(expected_hash, str) and matches_hash(state, expected_hash)):
            return pages.refusal_page(request, SignInRefused(Refusal.LOGOUT_STATE))
        return HttpResponseRedirect(self.redirect_url)


def matches_hash(state: str, expected_hash: str) -> bool:
    return len(state) <= MAX_STATE_LENGTH and hmac.compare_digest(sha256_hex(state), expected_hash)


@method_decorator(csrf_exempt, name="dispatch")
class BackchannelLogoutView(View):
    """`/sso/backchannel-logout/`: the provider's server reports that a session or a user was signed out."""

    http_method_names = ["post"]
    body_limit = 64 * 1024

    def post(self, request: HttpRequest) -> HttpResponse:
        try:
            ended_count = end_sessions(request.POST.getlist("logout_token"))
        except NoSlotFree:
            return unavailable_response()
        except SignInRefused as refusal:
            logger.warning("backchannel_logout_refused", outcome=refusal.code, detail=refusal.detail)
            if refusal.status == 503:  # the token may be valid; it cannot be checked at the moment
                return unavailable_response()
            return JsonResponse({"error": "invalid_request", "error_description": refusal.code}, status=400)
        logger.info("backchannel_logout", ended=ended_count)
        return JsonResponse({})


def unavailable_response() -> HttpResponse:
    return JsonResponse({"error": "temporarily_unavailable"}, status=503, headers={"Retry-After": "1"})


def end_sessions(tokens: list[str]) -> int:
    """Verify the logout token and end the session, or all sessions of the subject, that it names; return their number.

    A concurrent sign-in either waits for this transaction or finds the recorded sign-out before it completes.
    """
    if len(tokens) != 1:
        raise SignInRefused(Refusal.RESPONSE_MALFORMED, "Send exactly one logout_token.")
    claims = verify_logout_token(tokens[0])
    identifiers = {name: claims[name] for name in ("sub", "sid") if name in claims}
    with transaction.atomic():
        advisory_locks.lock_named(advisory_locks.SIGN_OUTS_LOCK, claims["iss"])
        if not ProviderSignOut.record(claims):
            raise SignInRefused(Refusal.TOKEN_REPLAYED, "A logout token with this ID (jti) has already been received.")
        return ProviderSession.end(issuer=claims["iss"], **identifiers)


def verify_logout_token(token: str) -> Claims:
    """Verify a logout token from the provider of any connection, active or not, and return its claims."""
    issuer = token_check.unverified_issuer(token)
    oidc_settings = OidcSetting.objects.filter(issuer=issuer).order_by("-active") if issuer else ()
    refusal = SignInRefused(Refusal.TOKEN_ISSUER, "No connection has this issuer.")
    deadline = Deadline.after(request_slots.MAX_REQUEST_S)
    for setting in oidc_settings:
        expected = ExpectedToken(
            issuer=issuer, client_id=setting.client_id, now=time.time(), algorithms=setting.algorithms
        )
        check = partial(token_check.check_logout_token, token, expected)
        try:
            return check_with_keys(setting, check, deadline, is_unsolicited=True)
        except SignInRefused as error:
            refusal = error
    raise refusal

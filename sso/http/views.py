"""Starts and completes sign-ins: mozilla-django-oidc's views with our attempts, checks and responses.

/sso/start/ ──▶ provider ──▶ /sso/callback/?code=…&state=…     handled directly
                         └─▶ /sso/callback/#id_token=…         the fragment page posts it to the same address
"""

import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.contrib import auth, messages
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from accounts.http import sign_in_hooks
from accounts.http.pages import safe_redirect_path
from accounts.http.sign_in_hooks import SignInOption
from accounts.models import User
from accounts.models.sessions import PROVIDER_SESSION_KEY
from sso import sign_in_attempts
from sso.backends import RANDOM_STRING_LENGTH, AuthorizationResponse, ConnectionSettings
from sso.http import pages
from sso.http.sign_in_events import SignInEvent
from sso.models import OidcSetting, ProviderSession, ProviderSignOut, SignIn, advisory_locks
from sso.provider import discovery, request_slots, token_client
from sso.provider.discovery import Endpoints
from sso.provider.request_slots import NoSlotFree
from sso.refusals import Refusal, SignInRefused
from sso.sign_in_attempts import CODE_FLOW, FRAGMENT_FLOW, Attempt
from sso.tokens.token_check import sha256_hex
from system import properties
from system.outbound.deadline import Deadline

MAX_PARAMETER_LENGTH = 4096
MAX_HINT_LENGTH = 255
MAX_NEXT_LENGTH = 2000
# The parameters that the fragment page posts. The rest of the fragment never reaches the server.
FRAGMENT_PARAMETERS = (
    "state", "session_state", "id_token", "access_token", "token_type", "expires_in", "error", "iss",
)  # fmt: skip


@method_decorator(csrf_exempt, name="dispatch")
class StartSignInView(ConnectionSettings, OIDCAuthenticationRequestView):  # type: ignore[misc]  # the library has no types
    """`/sso/start/`: redirects to the provider. Other sites can link here too (third-party-initiated login)."""

    http_method_names = ["get", "post"]

    def post(self, request: HttpRequest) -> HttpResponse:
        """Redirects to GET: a POST from another site lacks our cookie, and the response must not replace the cookie."""
        parameters = {
            name: request.POST[name] for name in ("iss", "login_hint", "target_link_uri") if name in request.POST
        }
        return HttpResponseRedirect(f"{reverse('sso:start')}?{urlencode(parameters)}", status=303)

    def get(self, request: HttpRequest) -> HttpResponse:
        event = SignInEvent.from_request(request)
        try:
            setting = event.setting = OidcSetting.get_active()
            if setting is None:
                path = requested_path(request)
                if request.user.is_authenticated:
                    return HttpResponseRedirect(path or "/")
                messages.error(request, Refusal.NOT_AVAILABLE.message)
                return redirect_to_login(path) if path else HttpResponseRedirect(reverse("login"))
            endpoints = find_endpoints(setting)
            # A site that links here can send its provider's issuer, which must be exactly ours.
            if request.GET.get("iss", endpoints.issuer) != endpoints.issuer:
                detail = "The parameter iss does not match the issuer of the active connection."
                raise SignInRefused(Refusal.ISSUER_UNKNOWN, detail)
            # Counted only after a slot was free, so that reloads of the wait page do not count as starts.
            if "again" in request.GET and not sign_in_attempts.reserve_automatic_start(request):
                return HttpResponseRedirect(reverse("login"))
            self.use_connection(setting, endpoints)
            return HttpResponseRedirect(self.authorization_url(request, setting, endpoints))
        except NoSlotFree:
            return pages.wait_page(request)
        except SignInRefused as refusal:
            return refuse_sign_in(request, event, refusal)

    def authorization_url(self, request: HttpRequest, setting: OidcSetting, endpoints: Endpoints) -> str:
        """Build the URL with the library, which generates state, nonce and PKCE verifier. The library writes to a
        scratch session, because our attempts are stored under a lock."""
        session: Any = request.session
        scratch_session: dict[str, Any] = {}
        request.session = scratch_session  # type: ignore[assignment]
        try:
            response = super().get(request)
        finally:
            request.session = session
        # Only the parameters: the library's URL is wrong if the endpoint already has a query string.
        parameters = dict(parse_qsl(response.url.rpartition("?")[2]))
        library_state = scratch_session["oidc_states"][parameters["state"]]
        attempt = Attempt(
            nonce_hash=sha256_hex(library_state["nonce"]),
            verifier=library_state["code_verifier"] or "",
            setting=setting.pk,
            issuer=endpoints.issuer,
            redirect_uri=setting.redirect_uri,
            next=requested_path(request),
            kind=CODE_FLOW if setting.response_type == setting.ResponseType.CODE else FRAGMENT_FLOW,
            time=time.time(),
        )
        sign_in_attempts.store_attempt(request, parameters["state"], attempt)
        return token_client.authorization_url(endpoints, parameters)

    def get_extra_params(self, request: HttpRequest) -> dict[str, str]:
        assert self._connection is not None
        setting, _ = self._connection
        parameters = {"response_type": setting.response_type, "redirect_uri": setting.redirect_uri}
        hint = request.GET.get("login_hint", "")
        if 0 < len(hint) <= MAX_HINT_LENGTH and "\x00" not in hint:
            parameters["login_hint"] = hint
        # "Use another account": the provider must prompt even if a user is signed in there.
        if request.GET.get("prompt") == "login":
            parameters["prompt"] = "login"
        return parameters


class CallbackView(OIDCAuthenticationCallbackView):  # type: ignore[misc]  # the library has no types
    """Handles the provider's response at `/sso/callback/`, the redirect URI to register with the provider."""

    http_method_names = ["get", "post"]
    user: User
    response: AuthorizationResponse
    event: SignInEvent

    def get(self, request: HttpRequest) -> HttpResponse:
        parameters = request.GET
        if "id_token" in parameters or "access_token" in parameters:
            return self.handle_response(request, parameters, kind=None)
        if "code" in parameters or "error" in parameters:
            return self.handle_response(request, parameters, kind=CODE_FLOW)
        if sign_in_attempts.awaits_fragment(request):
            return pages.fragment_page(request, FRAGMENT_PARAMETERS)
        if sign_in_attempts.reserve_automatic_start(request):
            return HttpResponseRedirect(reverse("sso:start"))
        return HttpResponseRedirect(reverse("login"))

    def post(self, request: HttpRequest) -> HttpResponse:
        """Handles the form of the fragment page, which has a CSRF token."""
        return self.handle_response(request, request.POST, kind=FRAGMENT_FLOW)

    def handle_response(self, request: HttpRequest, parameters: QueryDict, kind: str | None) -> HttpResponse:
        self.event = SignInEvent.from_request(request)
        try:
            if kind is None:
                raise SignInRefused(Refusal.TOKEN_IN_QUERY, "A token was sent in the URL, where it can end up in logs.")
            return self.complete_sign_in(request, read_parameters(parameters, kind), kind)
        except NoSlotFree:
            fields = {name: str(parameters[name]) for name in FRAGMENT_PARAMETERS if name in parameters}
            return pages.wait_page(request, fields if kind == FRAGMENT_FLOW else None)
        except SignInRefused as refusal:
            if refusal.refusal is Refusal.CODE_REJECTED:
                request_slots.record_rejected_code(self.event.address)
            return refuse_sign_in(request, self.event, refusal)

    @staticmethod
    def refuse_forged_form(request: HttpRequest) -> HttpResponse:
        """Refuses a POST without our CSRF token: from a provider that uses form_post, or from another site."""
        event = SignInEvent.from_request(request)
        detail = "The response was posted by another site. The provider must not use response_mode form_post."
        response = refuse_sign_in(request, event, SignInRefused(Refusal.RESPONSE_MALFORMED, detail))
        response.status_code = 403
        return response

    def complete_sign_in(self, request: HttpRequest, parameters: Mapping[str, str], kind: str) -> HttpResponse:
        attempt = sign_in_attempts.find_attempt(request.session, parameters["state"])
        self.event.is_stray = False
        self.event.setting = OidcSetting.objects.filter(pk=attempt.setting).first()
        with request_slots.request_slot(self.event.address):  # before the attempt is used up
            deadline = Deadline.after(request_slots.MAX_REQUEST_S)
            attempt = sign_in_attempts.take_attempt(request, parameters["state"])
            setting = sign_in_attempts.check_authorization_response(attempt, kind, parameters, self.event.setting)
            newest_id = ProviderSignOut.newest_id(attempt.issuer)
            self.response = AuthorizationResponse(
                attempt, setting, deadline, parameters.get("id_token", ""), parameters.get("access_token")
            )
            try:
                user = auth.authenticate(request, response=self.response)
            finally:
                self.event.set_login(self.response.claims)
        if not isinstance(user, User):  # the library returns no user if there is no code
            raise SignInRefused(Refusal.RESPONSE_MALFORMED, "The response has no code.")
        self.user = user
        try:
            with transaction.atomic():
                # A concurrent sign-out either comes later and finds this session, or came earlier and is detected here.
                advisory_locks.lock_shared(advisory_locks.SIGN_OUTS_LOCK, attempt.issuer)
                if ProviderSignOut.has_ended(self.response.claims, since_id=newest_id):
                    raise SignInRefused(Refusal.SIGNED_OUT_MEANWHILE, "The provider ended the session during sign-in.")
                response = self.login_success()
        except IntegrityError:
            raise SignInRefused(Refusal.NOT_AVAILABLE, "The connection or the account was deleted.") from None
        self.event.user = user
        self.event.record(SignIn.OK, self.response.result.summary())
        return response

    def login_success(self) -> HttpResponse:
        """Starts the session, always with a new key, even if a user is already signed in."""
        if self.request.user.is_authenticated:
            self.request.session.cycle_key()
            self.request.user = AnonymousUser()  # otherwise the library would not call `login` for the same user
        response: HttpResponse = super().login_success()
        session = ProviderSession.begin(self.user, self.response.setting, self.response.claims, self.response.id_token)
        self.request.session[PROVIDER_SESSION_KEY] = session.pk
        self.request.session.save()  # in this transaction, so that a sign-out finds it
        return response

    @property
    def success_url(self) -> str:
        return safe_redirect_path(self.response.attempt.next)


def refuse_sign_in(request: HttpRequest, event: SignInEvent, refusal: SignInRefused) -> HttpResponse:
    event.record(refusal.code, refusal.detail, is_visit=is_visit(request, event))
    return pages.refusal_page(request, refusal)


def is_visit(request: HttpRequest, event: SignInEvent) -> bool:
    """Whether somebody, or a bot, opened the URL without a sign-in. A response with a state of the right form counts
    as a sign-in: if the browser has no attempt, the Redirect URI may be at another host than the sign-in."""
    is_start = request.path == reverse("sso:start")
    if is_start or not event.is_stray or sign_in_attempts.ATTEMPTS_KEY in request.session:
        return False
    parameters = request.POST if request.method == "POST" else request.GET
    return not re.fullmatch(rf"[A-Za-z0-9]{{{RANDOM_STRING_LENGTH}}}", parameters.get("state", ""))


@sign_in_hooks.SIGN_IN_OPTIONS.register
def sign_in_option(request: HttpRequest) -> SignInOption | None:
    """The button on the sign-in page."""
    setting = OidcSetting.get_active()
    return SignInOption(setting.name, reverse("sso:start")) if setting else None


def find_endpoints(setting: OidcSetting) -> Endpoints:
    """Return the stored endpoints or run discovery, which calls the provider and needs a slot."""
    if setting.endpoints is not None:
        return setting.endpoints
    with request_slots.request_slot():
        return discovery.ensure_endpoints(setting, Deadline.after(request_slots.MAX_REQUEST_S))


def requested_path(request: HttpRequest) -> str:
    """Where to go after the sign-in: `next`, or the path of `target_link_uri` if that is a URL of this service."""
    path = request.GET.get("next", "")
    target = request.GET.get("target_link_uri", "")
    if not path and target:
        try:
            properties.check_own_url(target)
        except ValueError:
            return ""
        path = urlsplit(target)._replace(scheme="", netloc="").geturl()
    is_allowed = bool(path) and safe_redirect_path(path) == path and len(path) <= MAX_NEXT_LENGTH
    return path if is_allowed and not path.startswith(reverse("sso:start")) else ""


def read_parameters(data: QueryDict, kind: str) -> dict[str, str]:
    """Read the parameters of a response; refuse repeated and overlong ones."""
    max_lengths = {"id_token": 4 * MAX_PARAMETER_LENGTH, "access_token": 4 * MAX_PARAMETER_LENGTH}
    parameters = {}
    for name in ("state", "code", "error", "iss", "id_token", "access_token"):
        values = data.getlist(name)
        if len(values) > 1 or any(len(value) > max_lengths.get(name, MAX_PARAMETER_LENGTH) for value in values):
            raise SignInRefused(Refusal.RESPONSE_MALFORMED, f"{name} was sent more than once or is too long.")
        if values:
            parameters[name] = values[0]
    if not parameters.get("state"):
        raise SignInRefused(Refusal.STATE_UNKNOWN, "The response has no state.")
    if sum(name in parameters for name in ("code" if kind == CODE_FLOW else "id_token", "error")) != 1:
        raise SignInRefused(Refusal.RESPONSE_MALFORMED, "The response must contain either a result or an error.")
    return parameters

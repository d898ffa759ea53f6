"""The way to the provider and back: mozilla-django-oidc's views, with our attempts, checks and answers at its seams.

/sso/start/ ──▶ provider ──▶ /sso/callback/?code=…&state=…     handled at once
                         └─▶ /sso/callback/#id_token=…         the bridge page posts it to the same address
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.contrib import auth
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from accounts.http import sign_in_hooks
from accounts.http.pages import local_path
from accounts.http.sign_in_hooks import SignInOption
from accounts.models import User
from accounts.models.sessions import PROVIDER_SESSION
from sso import sign_in_attempts
from sso.backends import AuthorizationResponse, find
from sso.http import pages
from sso.http.sign_in_events import SignInEvent
from sso.models import OidcSetting, ProviderSession, ProviderSignOut, SignIn, advisory_locks
from sso.provider import request_slots, token_client
from sso.provider.discovery import Endpoints
from sso.provider.request_slots import NoSlotFree
from sso.refusals import SignInRefused
from sso.sign_in_attempts import CODE, FRAGMENT, Attempt
from system import properties
from system.outbound.deadline import Deadline

LONGEST_PARAMETER = 4096
LONGEST_HINT = 255
LONGEST_NEXT = 2000
# What the provider may put behind the #, and the bridge page hands on; nothing else of it reaches us.
FROM_FRAGMENT = (
    "state", "session_state", "id_token", "access_token", "token_type", "expires_in", "error", "iss",
)  # fmt: skip


class StartSignIn(OIDCAuthenticationRequestView):  # type: ignore[misc]  # it has no types
    """`/sso/start/`: to the provider. Another site may lead here too (third-party-initiated login)."""

    http_method_names = ["get", "post"]

    def __init__(self, **named: Any) -> None:
        View.__init__(self, **named)  # the library's reads settings that there are none of here

    @method_decorator(csrf_exempt)
    def dispatch(self, request: HttpRequest, *positional: Any, **named: Any) -> Any:
        return super().dispatch(request, *positional, **named)

    def post(self, request: HttpRequest) -> HttpResponse:
        """As a GET: a form of another site brings no cookie of ours, and must not put a new one in its place."""
        wanted = {name: request.POST[name] for name in ("iss", "login_hint", "target_link_uri") if name in request.POST}
        response = HttpResponseRedirect(f"{reverse('sso:start')}?{urlencode(wanted)}")
        response.status_code = 303
        return response

    def get(self, request: HttpRequest) -> HttpResponse:
        came = SignInEvent(request.META.get("REMOTE_ADDR", ""))
        try:
            setting = came.setting = active()
            known = known_endpoints(setting)
            check_initiator(request, known)
            # After the wait for a place: the page that waits starts nothing, however often it comes again.
            if "again" in request.GET and not sign_in_attempts.may_start_by_itself(request):
                return HttpResponseRedirect(reverse("login"))
            return HttpResponseRedirect(authorization_request(request, setting, known))
        except NoSlotFree:
            return pages.wait(request)
        except SignInRefused as refusal:
            return refuse_sign_in(request, came, refusal)


class Callback(OIDCAuthenticationCallbackView):  # type: ignore[misc]  # it has no types
    """`/sso/callback/`: back from the provider; the Redirect URI to register there."""

    http_method_names = ["get", "post"]

    def get(self, request: HttpRequest) -> HttpResponse:
        given = request.GET
        if "id_token" in given or "access_token" in given:
            return self.answer(request, given, kind=None)
        if "code" in given or "error" in given:
            return self.answer(request, given, kind=CODE)
        if sign_in_attempts.awaits_fragment(request):
            return pages.bridge(request, FROM_FRAGMENT)
        if sign_in_attempts.may_start_by_itself(request):
            return HttpResponseRedirect(reverse("sso:start"))
        return HttpResponseRedirect(reverse("login"))

    def post(self, request: HttpRequest) -> HttpResponse:
        """From the bridge page, with the token against forgery of our own pages."""
        return self.answer(request, request.POST, kind=FRAGMENT)

    def answer(self, request: HttpRequest, given: QueryDict, kind: str | None) -> HttpResponse:
        came = SignInEvent(request.META.get("REMOTE_ADDR", ""))
        try:
            if kind is None:
                raise SignInRefused("token_in_query", "A token came in the address, where logs and histories keep it.")
            return self.come_in(request, read(given, kind), kind, came)
        except NoSlotFree:
            fields = {name: str(given[name]) for name in FROM_FRAGMENT if name in given}
            return pages.wait(request, fields if kind == FRAGMENT else None)
        except SignInRefused as refusal:
            if refusal.code == "code_rejected":
                request_slots.DOUBTFUL.note(came.address)
            return refuse_sign_in(request, came, refusal)

    @staticmethod
    def forged(request: HttpRequest) -> HttpResponse:
        """A POST that no page of ours made: of a provider that answers in that way, or of another site."""
        said = "The answer was posted from elsewhere: the provider must not use response_mode form_post."
        response = refuse_sign_in(
            request, SignInEvent(request.META.get("REMOTE_ADDR", "")), SignInRefused("response_malformed", said)
        )
        response.status_code = 403
        return response

    def come_in(self, request: HttpRequest, given: Mapping[str, str], kind: str, came: SignInEvent) -> HttpResponse:
        attempt = sign_in_attempts.look(request, given["state"])
        came.is_stray = False
        came.setting = OidcSetting.objects.filter(pk=attempt.setting).first()
        with request_slots.request_slot(came.address):  # before the attempt is used up
            deadline = Deadline.after(request_slots.ALTOGETHER_S)
            attempt = sign_in_attempts.take(request, given["state"])
            setting = check_attempt(attempt, kind, given, came.setting)
            newest = ProviderSignOut.newest(attempt.issuer)
            response = AuthorizationResponse(
                attempt=attempt,
                setting=setting,
                deadline=deadline,
                code=given.get("code", ""),
                id_token=given.get("id_token", ""),
                access_token=given.get("access_token"),
            )
            try:
                user = auth.authenticate(request, response=response)
            finally:
                came.names(response.claims)
        assert isinstance(user, User) and response.entered is not None
        try:
            with transaction.atomic():
                # A sign-out at this moment comes after it and finds its session, or came before it and is found here.
                advisory_locks.beside_others_with(advisory_locks.SIGN_OUTS, attempt.issuer)
                if ProviderSignOut.has_ended(response.claims, since=newest):
                    raise SignInRefused("signed_out_meanwhile", "The provider signed them out during the sign-in.")
                answer = self.begin_session(request, user, response)
        except IntegrityError:
            raise SignInRefused("not_available", "The connection or the account was deleted meanwhile.") from None
        came.user = user
        came.note(SignIn.OK, response.entered.told())
        return answer

    def begin_session(self, request: HttpRequest, user: User, response: AuthorizationResponse) -> HttpResponse:
        """Under a new key, whoever was signed in before."""
        if request.user.is_authenticated:
            request.session.cycle_key()
        auth.login(request, user)
        began = ProviderSession.begin(user, response.setting, response.claims, response.id_token)
        request.session[PROVIDER_SESSION] = began.pk
        request.session.save()  # in this transaction, so that a sign-out finds it
        return HttpResponseRedirect(local_path(request, response.attempt.next))


def refuse_sign_in(request: HttpRequest, came: SignInEvent, refusal: SignInRefused) -> HttpResponse:
    """To the person, and in the log."""
    came.note(refusal.code, refusal.detail)
    return pages.refused(request, refusal)


@sign_in_hooks.register_option
def button(request: HttpRequest) -> SignInOption | None:
    """On the sign-in page."""
    setting = OidcSetting.active_one()
    return SignInOption(setting.name, reverse("sso:start")) if setting else None


def active() -> OidcSetting:
    setting = OidcSetting.active_one()
    if setting is None:
        raise SignInRefused("not_available", "No connection is active.")
    return setting


def known_endpoints(setting: OidcSetting) -> Endpoints:
    """Normally as stored; looking for them calls the provider and takes a place."""
    if setting.endpoints is not None:
        return setting.endpoints
    with request_slots.request_slot():
        return find(setting, Deadline.after(request_slots.ALTOGETHER_S))


def check_initiator(request: HttpRequest, known: Endpoints) -> None:
    """A site that leads here names whose user it means; that must be our provider, exactly."""
    if "iss" in request.GET and request.GET["iss"] != known.issuer:
        raise SignInRefused("issuer_unknown", "The parameter iss is not the issuer of the active connection.")


def authorization_request(request: HttpRequest, setting: OidcSetting, known: Endpoints) -> str:
    kind = CODE if setting.response_type == setting.ResponseType.CODE else FRAGMENT
    left = sign_in_attempts.make(
        request,
        setting=setting.pk,
        issuer=known.issuer,
        redirect_uri=setting.redirect_uri,
        next=wanted_path(request),
        kind=kind,
    )
    asked = {
        "response_type": setting.response_type,
        "client_id": setting.client_id,
        "redirect_uri": setting.redirect_uri,
        "scope": setting.scope,
        "state": left.state,
        "nonce": left.nonce,
    }
    if kind == CODE:
        asked |= {"code_challenge": left.challenge, "code_challenge_method": "S256"}
    hint = request.GET.get("login_hint", "")
    if 0 < len(hint) <= LONGEST_HINT and "\x00" not in hint:
        asked["login_hint"] = hint
    # "Use another account": the provider asks anew, whoever is signed in there.
    if request.GET.get("prompt") == "login":
        asked["prompt"] = "login"
    return token_client.authorization_address(known, asked)


def wanted_path(request: HttpRequest) -> str:
    """Where to go after the sign-in: a path of ours, or the path of `target_link_uri` if that is an address of ours."""
    wanted = request.GET.get("next", "")
    target = request.GET.get("target_link_uri", "")
    if not wanted and target:
        try:
            properties.own_address(target)
        except ValueError:
            return ""
        parts = urlsplit(target)
        wanted = parts._replace(scheme="", netloc="").geturl()
    is_ours = bool(wanted) and local_path(request, wanted) == wanted and len(wanted) <= LONGEST_NEXT
    return wanted if is_ours and not wanted.startswith(reverse("sso:start")) else ""


def read(given: QueryDict, kind: str) -> dict[str, str]:
    """What came back, each parameter once."""
    longest = {"id_token": 4 * LONGEST_PARAMETER, "access_token": 4 * LONGEST_PARAMETER}
    found = {}
    for name in ("state", "code", "error", "iss", "id_token", "access_token"):
        values = given.getlist(name)
        if len(values) > 1 or any(len(value) > longest.get(name, LONGEST_PARAMETER) for value in values):
            raise SignInRefused("response_malformed", f"{name} came twice, or is too long.")
        if values:
            found[name] = values[0]
    if not found.get("state"):
        raise SignInRefused("state_unknown", "No state came back.")
    if sum(name in found for name in ("code" if kind == CODE else "id_token", "error")) != 1:
        raise SignInRefused("response_malformed", "What came back is neither an answer nor an error.")
    return found


def check_attempt(attempt: Attempt, kind: str, given: Mapping[str, str], setting: OidcSetting | None) -> OidcSetting:
    """Whether this is an answer to that attempt, and of that provider (A19, RFC 9207)."""
    if attempt.kind != kind and "error" not in given:  # which some providers put into the query of either kind
        raise SignInRefused("response_malformed", f"The attempt awaits another kind of answer: {attempt.kind}.")
    if setting is None or not setting.active:
        raise SignInRefused("not_available", "The connection was deactivated or deleted meanwhile.")
    known = setting.endpoints
    if given.get("iss", attempt.issuer) != attempt.issuer:
        raise SignInRefused("response_issuer", "The answer comes from another provider.")
    # Beside an ID token, which says it too, a provider need not say it again.
    if kind == CODE and known is not None and known.iss_in_response and "iss" not in given:
        raise SignInRefused(
            "response_issuer", "The answer does not say from which provider it comes, which this one does."
        )
    if "error" in given:
        word = given["error"] if token_client.WORD.fullmatch(given["error"]) else "an error"
        raise SignInRefused(
            "provider_unavailable" if word in token_client.AWAY else "provider_denied", f"The provider said {word}."
        )
    return setting

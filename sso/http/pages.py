"""In charge of the pages on the way: a refusal, waiting for a place, the bridge out of the fragment, the way out."""

import secrets
from collections.abc import Collection, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from sso.refusals import SignInRefused

RETRY_AFTER_S = 1
# One script with the nonce and nothing else. `form-action` is the caller's: Chromium holds it against redirects too.
STRICT = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'"
)


def refused(request: HttpRequest, refusal: SignInRefused) -> HttpResponse:
    """The sentence for the user and the code for the administrator; never what was sent."""
    return render(request, "sso/refused.html", {"refusal": refusal}, status=refusal.status)


def wait(request: HttpRequest, fields: Mapping[str, str] | None = None) -> HttpResponse:
    """Two others are asking the provider: the same request once more in a second, by the browser itself."""
    response = scripted(request, "sso/wait.html", {"fields": fields, "after_s": RETRY_AFTER_S}, status=503)
    response["Retry-After"] = str(RETRY_AFTER_S)
    return response


def bridge(request: HttpRequest, names: Collection[str]) -> HttpResponse:
    """Hands what stands behind the # to the server, which a browser never sends by itself."""
    return scripted(request, "sso/bridge.html", {"names": names})


def leave(request: HttpRequest, address: str, fields: Mapping[str, str]) -> HttpResponse:
    """To the provider's sign-out, by a form: a token has no place in an address."""
    return scripted(request, "sso/leave.html", {"address": address, "fields": fields}, leads_away=True)


def scripted(
    request: HttpRequest, template: str, seen: dict[str, Any], status: int = 200, *, leads_away: bool = False
) -> HttpResponse:
    nonce = secrets.token_urlsafe(16)
    response = render(request, template, {**seen, "nonce": nonce}, status=status)
    policy = STRICT.format(nonce=nonce)
    response["Content-Security-Policy"] = policy if leads_away else f"{policy}; form-action 'self'"
    # Not `no-referrer`: with it Chromium sends `Origin: null`, which counts as forged.
    response["Referrer-Policy"] = "strict-origin"
    response["Cache-Control"] = "no-store"
    return response

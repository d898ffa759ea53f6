"""Pages for a refused sign-in, waiting for a slot, the fragment response and sign-out at the provider."""

import secrets
from collections.abc import Collection, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from sso.refusals import SignInRefused

RETRY_AFTER_S = 1
# Allows only scripts with the nonce. `form-action` is added below, because Chromium applies it to redirects too.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; font-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'"
)


def refusal_page(request: HttpRequest, refusal: SignInRefused) -> HttpResponse:
    """Shows the message for the user and the code for the administrator, but no part of the response."""
    return render(request, "sso/refusal.html", {"refusal": refusal}, status=refusal.status)


def wait_page(request: HttpRequest, fields: Mapping[str, str] | None = None) -> HttpResponse:
    """Shown if no slot is free. The browser repeats the request after a second."""
    response = render_with_script(request, "sso/wait.html", {"fields": fields, "after_s": RETRY_AFTER_S}, status=503)
    response["Retry-After"] = str(RETRY_AFTER_S)
    return response


def fragment_page(request: HttpRequest, names: Collection[str]) -> HttpResponse:
    """Posts the URL fragment, which browsers do not send to the server."""
    return render_with_script(request, "sso/sign_in_response.html", {"names": names})


def provider_logout_page(request: HttpRequest, url: str, fields: Mapping[str, str]) -> HttpResponse:
    """Posts to the provider's logout endpoint, because a token must not be part of a URL."""
    return render_with_script(request, "sso/provider_logout.html", {"url": url, "fields": fields}, leaves_site=True)


def render_with_script(
    request: HttpRequest, template: str, context: dict[str, Any], status: int = 200, *, leaves_site: bool = False
) -> HttpResponse:
    nonce = secrets.token_urlsafe(16)
    response = render(request, template, {**context, "nonce": nonce}, status=status)
    policy = CONTENT_SECURITY_POLICY.format(nonce=nonce)
    response["Content-Security-Policy"] = policy if leaves_site else f"{policy}; form-action 'self'"
    return response

"""Hooks for other apps: buttons on the sign-in page, and a last step of sign-out at the provider.

The apps register hooks, because `accounts` must not import `sso`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse

from system.registry import Registry


@dataclass(frozen=True)
class SignInOption:
    """An alternative to signing in with a password."""

    title: str
    url: str


SignOutResponder = Callable[[HttpRequest], HttpResponse]

# Each returns None while its option is not available.
SIGN_IN_OPTIONS: Registry[Callable[[HttpRequest], SignInOption | None]] = Registry()
# These run before the session ends; the function that a hook returns builds the response afterwards.
SIGN_OUT_HOOKS: Registry[Callable[[HttpRequest], SignOutResponder | None]] = Registry()


def sign_in_options(request: HttpRequest) -> list[SignInOption]:
    return [option for factory in SIGN_IN_OPTIONS if (option := factory(request)) is not None]


def run_sign_out_hooks(request: HttpRequest) -> SignOutResponder | None:
    return next((responder for hook in SIGN_OUT_HOOKS if (responder := hook(request)) is not None), None)

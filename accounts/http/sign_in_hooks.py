"""What other apps add to sign-in and sign-out: buttons on the sign-in page, and a last step at the provider.

Apps register themselves here because `accounts` must not import `sso`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse


@dataclass(frozen=True)
class SignInOption:
    """A way to sign in other than by password."""

    title: str
    url: str


OptionFactory = Callable[[HttpRequest], SignInOption | None]
Finish = Callable[[HttpRequest], HttpResponse]
SignOutHook = Callable[[HttpRequest], Finish | None]

SIGN_IN_OPTIONS: list[OptionFactory] = []
SIGN_OUT_HOOKS: list[SignOutHook] = []


def register_option(factory: OptionFactory) -> OptionFactory:
    """Registers a sign-in option; the factory returns None while the option is not available."""
    SIGN_IN_OPTIONS.append(factory)
    return factory


def options(request: HttpRequest) -> list[SignInOption]:
    return [option for factory in SIGN_IN_OPTIONS if (option := factory(request)) is not None]


def on_sign_out(hook: SignOutHook) -> SignOutHook:
    """Registers a hook that runs before the session ends; what it returns builds the response afterwards."""
    SIGN_OUT_HOOKS.append(hook)
    return hook


def sign_out_step(request: HttpRequest) -> Finish | None:
    return next((finish for hook in SIGN_OUT_HOOKS if (finish := hook(request)) is not None), None)

"""What other areas add to signing in and out: buttons on the sign-in page, and what is left to do elsewhere at the end.

The direction of imports is the reason: single sign-on knows accounts, accounts do not know single sign-on.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse


@dataclass(frozen=True)
class SignInOption:
    """Another way to sign in than by password."""

    title: str
    address: str


Offer = Callable[[HttpRequest], SignInOption | None]
Finish = Callable[[HttpRequest], HttpResponse]
Leave = Callable[[HttpRequest], Finish | None]

OFFERS: list[Offer] = []
LEAVES: list[Leave] = []


def offer(make: Offer) -> Offer:
    """Add a way; it returns None while it is closed."""
    OFFERS.append(make)
    return make


def ways(request: HttpRequest) -> list[SignInOption]:
    return [way for make in OFFERS if (way := make(request)) is not None]


def on_sign_out(prepare: Leave) -> Leave:
    """Add what a sign-out leads to: asked before the session ends, what it returns answers after that."""
    LEAVES.append(prepare)
    return prepare


def leaving(request: HttpRequest) -> Finish | None:
    return next((finish for prepare in LEAVES if (finish := prepare(request)) is not None), None)

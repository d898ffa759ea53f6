"""What the start page offers; each area adds its entries."""

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest


@dataclass(frozen=True)
class Entry:
    """A link of the start page."""

    title: str
    about: str
    address: str


Offer = Callable[[HttpRequest], Entry | None]
OFFERS: list[Offer] = []


def register_entry(make: Offer) -> Offer:
    """Add an entry; it returns None for somebody who may not use it."""
    OFFERS.append(make)
    return make


def entries(request: HttpRequest) -> list[Entry]:
    return [entry for make in OFFERS if (entry := make(request)) is not None]

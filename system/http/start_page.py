"""The links of the start page; each app registers its own."""

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest


@dataclass(frozen=True)
class StartPageEntry:
    """A link of the start page."""

    title: str
    description: str
    url: str


EntryFactory = Callable[[HttpRequest], StartPageEntry | None]
ENTRIES: list[EntryFactory] = []


def register_entry(factory: EntryFactory) -> EntryFactory:
    """Add an entry; the factory returns None for users who may not use it."""
    ENTRIES.append(factory)
    return factory


def entries(request: HttpRequest) -> list[StartPageEntry]:
    return [entry for factory in ENTRIES if (entry := factory(request)) is not None]

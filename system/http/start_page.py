"""The links of the start page; each app registers its own."""

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest

from system.registry import Registry


@dataclass(frozen=True)
class StartPageEntry:
    title: str
    description: str
    url: str
    # Entries with a lower position come first.
    position: int = 50


EntryFactory = Callable[[HttpRequest], StartPageEntry | None]
# A factory returns None for users who may not use the entry.
ENTRIES: Registry[EntryFactory] = Registry()
register_entry = ENTRIES.register


def entries(request: HttpRequest) -> list[StartPageEntry]:
    found = [entry for factory in ENTRIES if (entry := factory(request)) is not None]
    return sorted(found, key=lambda entry: entry.position)

"""What is derived from one catalogue: caller views, plans and statements. Pure."""

from collections.abc import Hashable
from typing import Any

from system.process_cache import WeightedCache

# In bytes of a process: some thousand usual plans and statements, or some hundred of 500 fields.
STATEMENT_CACHE_BYTES = 32 * 1024 * 1024
VIEW_CACHE_BYTES = 64 * 1024 * 1024


class DerivedCaches:
    """Caches that a catalogue owns, so that they are freed together with it."""

    def __init__(self) -> None:
        self.caller_views: WeightedCache[frozenset[str], Any] = WeightedCache(limit=VIEW_CACHE_BYTES, weigh=_weigh)
        self.statements: WeightedCache[Hashable, Any] = WeightedCache(limit=STATEMENT_CACHE_BYTES, weigh=_weigh)


def _weigh(key: Hashable, item: Any) -> int:
    return _weight(item) + len(repr(key))


def _weight(item: Any) -> int:
    """About the bytes of an item; views, plans and statements estimate their own."""
    if isinstance(item, tuple):
        return sum(map(_weight, item))
    weight = getattr(item, "weight", None)
    return weight if isinstance(weight, int) else len(repr(item))

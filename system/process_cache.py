"""Caches of one process, each limited by the total weight of its items. `clear_all` clears all of them."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Item = TypeVar("Item")

_clear_functions: dict[str, Callable[[], None]] = {}


def register(name: str, clear: Callable[[], None]) -> None:
    """Make `clear_all` call this function; for caches that are not a `WeightedCache`."""
    assert name not in _clear_functions, f"{name} is registered twice"
    _clear_functions[name] = clear


def clear_all() -> None:
    """Clear all caches, as in a new process; called before each test."""
    for clear in _clear_functions.values():
        clear()


class WeightedCache(Generic[Key, Item]):
    """The most recently used items, up to a total weight of `max_weight`; `weigh` returns the weight of one item,
    usually its approximate size in bytes.

    A cache without a name belongs to another object, is freed together with it, and is not cleared by `clear_all`.

    >>> cache = WeightedCache("an example", max_weight=5, weigh=lambda key, item: len(item))
    >>> for text in ("abc", "de", "f"):
    ...     cache.put(text, text)
    >>> cache.get("abc"), cache.get("de"), cache.weight
    (None, 'de', 3)
    """

    def __init__(self, name: str | None = None, *, max_weight: int, weigh: Callable[[Key, Item], int]) -> None:
        self.max_weight = max_weight
        self.weight = 0
        self._weigh = weigh
        self._items: OrderedDict[Key, tuple[Item, int]] = OrderedDict()
        self._lock = threading.Lock()
        if name is not None:
            register(name, self.clear)

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: Key) -> Item | None:
        # Without the lock: each call on the dictionary is atomic.
        entry = self._items.get(key)
        if entry is None:
            return None
        try:
            self._items.move_to_end(key)
        except KeyError:  # another thread has just removed it
            pass
        return entry[0]

    def put(self, key: Key, item: Item) -> None:
        weight = self._weigh(key, item)
        with self._lock:
            if key in self._items:
                self.weight -= self._items.pop(key)[1]
            if weight > self.max_weight:
                return
            self._items[key] = (item, weight)
            self.weight += weight
            while self.weight > self.max_weight:
                self.weight -= self._items.popitem(last=False)[1][1]

    def get_or_make(self, key: Key, make: Callable[[], Item]) -> Item:
        """The cached item, otherwise a new one. Two threads may create it at the same time; one item is kept."""
        item = self.get(key)
        if item is None:
            item = make()
            self.put(key, item)
        return item

    def clear(self) -> None:
        with self._lock:
            self._items.clear()
            self.weight = 0

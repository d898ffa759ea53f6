"""Lists that apps add to, because code below them must not import them."""

from typing import TypeVar

Item = TypeVar("Item")


class Registry(list[Item]):
    def register(self, item: Item) -> Item:
        """Add a function; can be used as a decorator."""
        self.append(item)
        return item

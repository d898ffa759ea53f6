"""The names that another dialect has for tables and columns. Pure."""

from collections.abc import Sequence
from typing import Protocol

from tableapi.catalogue.definitions import Catalogue, Table


class Names(Protocol):
    """A dialect. The same object always returns the same names, so that it can be part of the keys of caches."""

    def table(self, name: str) -> str:
        """The dialect's name of a table of this service."""

    def keys(self, table: Table, path: str) -> Sequence[str]:
        """The dialect's names of a path of this service."""

    def is_masked(self, table: Table, key: str) -> bool:
        """Whether the value of a name is hidden, but the name shown."""

    def paths(self, catalogue: Catalogue, table: Table, key: str) -> Sequence[tuple[str, ...]]:
        """The paths of this service for a name of the dialect. If there are several, their values are joined."""

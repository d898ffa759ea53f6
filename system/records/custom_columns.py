"""The columns that administrators added to product tables. The Table API registers itself here, so that other apps can
write them without importing it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from system.records.record import Record

PREFIX = "x_"


class CustomColumns(Protocol):
    def column_names(self, table: str) -> frozenset[str]:
        """The names of the custom columns of a table."""

    def save(self, record: Record, values: Mapping[str, Any]) -> list[str]:
        """Store changed values in the caller's transaction; returns a message for each invalid value."""


_registered: list[CustomColumns] = []
register = _registered.append


def column_names(table: str) -> frozenset[str]:
    return _registered[0].column_names(table)


def save(record: Record, values: Mapping[str, Any]) -> list[str]:
    return _registered[0].save(record, values)

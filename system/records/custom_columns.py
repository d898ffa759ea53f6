"""The columns that administrators added to the product's own tables. The Table API knows them and registers itself
here, so that an app which it does not know can fill them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from system.records.record import Record

PREFIX = "x_"


class CustomColumns(Protocol):
    def names(self, table: str) -> frozenset[str]:
        """Those of the table."""

    def save(self, record: Record, values: Mapping[str, Any]) -> list[str]:
        """Stores values that differ, and returns a sentence on each that is invalid. Runs in the caller's
        transaction."""


_registered: list[CustomColumns] = []
register = _registered.append


def names(table: str) -> frozenset[str]:
    return _registered[0].names(table)


def save(record: Record, values: Mapping[str, Any]) -> list[str]:
    return _registered[0].save(record, values)

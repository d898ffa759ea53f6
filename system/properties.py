"""Reads and writes system properties by name."""

import time
from typing import Any

from system.models import Property
from system.property_definitions import (
    CASE_SENSITIVE,
    KNOWN,
    VALUES,
    WELCOME_PAGE,
    WYSIWYG_COLUMNS,
    Definition,
    own_address,
)

__all__ = ["CASE_SENSITIVE", "WELCOME_PAGE", "WYSIWYG_COLUMNS", "Definition", "get", "own_address", "put"]

# A change applies in all processes within this time, and immediately in the process that saved it.
FRESH_FOR_S = 1.0


def get(definition: Definition) -> Any:
    """The current typed value."""
    now = time.monotonic()
    entry = VALUES.get(definition.name)
    if entry is None or now - entry[0] > FRESH_FOR_S:
        entry = (now, stored(definition))
        VALUES.put(definition.name, entry)
    return definition.read(entry[1])


def stored(definition: Definition) -> str:
    """The stored text, read from the database, for callers who are about to change it."""
    return Property.objects.filter(name=definition.name).values_list("value", flat=True).first() or ""


def put(definition: Definition, value: str) -> None:
    """Set a property, with history, in the caller's transaction."""
    row = Property.objects.select_for_update().get(name=definition.name)
    row.value = definition.normalise(value)
    row.save()


def make_rows() -> None:
    """Create or update the row of each property after a migration; values are kept."""
    for definition in KNOWN.values():
        row = Property.objects.filter(name=definition.name).first() or Property(name=definition.name)
        metadata = (definition.type, definition.description, definition.default)
        if row.is_new or (row.type, row.description, row.default_value) != metadata:
            row.type, row.description, row.default_value = metadata
            row.save()

"""Reads and writes system properties by name."""

import time
from typing import Any

from system.models import Property
from system.property_definitions import CASE_SENSITIVE as CASE_SENSITIVE
from system.property_definitions import DEFINITIONS, VALUE_CACHE, PropertyDefinition
from system.property_definitions import WELCOME_PAGE as WELCOME_PAGE
from system.property_definitions import WYSIWYG_COLUMNS as WYSIWYG_COLUMNS
from system.property_definitions import check_own_url as check_own_url

# A change applies in all processes within this time, and immediately in the process that saved it.
CACHE_TTL_S = 1.0


def get(definition: PropertyDefinition) -> Any:
    now = time.monotonic()
    entry = VALUE_CACHE.get(definition.name)
    if entry is None or now - entry[0] > CACHE_TTL_S:
        entry = (now, fetch(definition))
        VALUE_CACHE.put(definition.name, entry)
    return definition.read(entry[1])


def fetch(definition: PropertyDefinition) -> str:
    """The stored text from the database instead of the cache, for callers that are about to change it."""
    return Property.objects.filter(name=definition.name).values_list("value", flat=True).first() or ""


def put(definition: PropertyDefinition, value: str) -> None:
    """Set a property, with history, in the caller's transaction."""
    row = Property.objects.select_for_update().get(name=definition.name)
    row.value = definition.normalize(value)
    row.save()


def store_definitions() -> None:
    """Create or update the row of each property after a migration, without changing values."""
    for definition in DEFINITIONS.values():
        row = Property.objects.filter(name=definition.name).first() or Property(name=definition.name)
        metadata = (definition.type, definition.description, definition.default)
        if row.is_new or (row.type, row.description, row.default_value) != metadata:
            row.type, row.description, row.default_value = metadata
            row.save()

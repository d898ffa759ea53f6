"""Parses column values in request bodies, compares them with stored values, merges and logs them."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from django.contrib.auth.hashers import make_password
from psycopg.types.json import Jsonb

from system import encryption
from system.errors import InvalidInput
from system.strict_json import InvalidJson, refuse_unstorable
from tableapi.catalogue import html
from tableapi.catalogue.column_type import StorageFormat
from tableapi.catalogue.definitions import Column
from tableapi.catalogue.value_readers import InvalidValue

# Converts values that are not stored as they are to values for psycopg.
_STORAGE_CONVERTERS: Mapping[StorageFormat, Callable[[Any], Any]] = MappingProxyType(
    {StorageFormat.JSON: Jsonb, StorageFormat.HASHED: make_password, StorageFormat.ENCRYPTED: encryption.encrypt}
)


def parse(column: Column, value: Any) -> Any:
    """Parse the value of a column in a JSON body, and return the value that psycopg stores."""
    column_type = column.column_type
    if value is None or (value == "" and column_type.empty_text_clears):
        return None
    try:
        refuse_unstorable(value)
        read_value = column_type.read(column, value)
    except (InvalidValue, InvalidJson) as error:
        raise InvalidInput(str(error), field=column.name) from None
    convert = None if read_value is None else _STORAGE_CONVERTERS.get(column_type.storage)
    return convert(read_value) if convert else read_value


def stored_value(column: Column, value: Any) -> Any:
    """Return the value that psycopg stores for a parsed value that was queued as JSON."""
    return Jsonb(value) if column.column_type.is_json else value


def plain_text(value: str | None) -> str | None:
    """Return the plain text that is stored with the HTML."""
    return None if value is None else html.extract_plain_text(value)


def is_same(column: Column, stored_value: Any, new_value: Any) -> bool:
    """Whether writing `new_value` leaves the stored value unchanged. Both are as psycopg returns or accepts them."""
    if stored_value is None or new_value is None:
        return stored_value is None and new_value is None
    return column.column_type.is_same(_unwrap_json(stored_value), _unwrap_json(new_value))


def _unwrap_json(value: Any) -> Any:
    return value.obj if isinstance(value, Jsonb) else value


def merge_patch(stored_value: Any, patch: Any) -> Any:
    """RFC 7396: an object changes the members that it names, null removes one, anything else replaces the value.

    >>> merge_patch({"a": 1, "b": {"c": 2, "d": 3}}, {"a": None, "b": {"c": 4}})
    {'b': {'c': 4, 'd': 3}}
    """
    if not isinstance(patch, dict):
        return patch
    members = dict(stored_value) if isinstance(stored_value, dict) else {}
    for key, value in patch.items():
        if value is None:
            members.pop(key, None)
        else:
            members[key] = merge_patch(members.get(key), value)
    return members


def to_log_value(column: Column, value: Any) -> Any:
    """Convert a value to JSON for the deletion log; secrets become None."""
    if value is None or column.column_type.is_write_only:
        return None
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None, microsecond=0).isoformat(" ")
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else _unwrap_json(value)

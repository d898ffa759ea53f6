"""Validates a document's metadata: six typed fields and any other fields, within limits."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings

from collections_app.metadata.fields import FIELD_KINDS, INTEGER_BOUND, FieldKind
from system.errors import BadRequest, combine_errors
from system.strict_json import InvalidJson, parse_json, refuse_unstorable

MAX_DEPTH = 5
# The longest name that a filter can contain.
MAX_FIELD_NAME_LENGTH = 200
NOT_JSON_MESSAGE = 'Metadata must be a JSON object, such as {"type": "manual", "priority": 2}.'

_INSTANT_PATTERN = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)"
)


class InvalidMetadata(BadRequest):
    code = "invalid_metadata"
    message = "Metadata must be a JSON object."


def validate_metadata(metadata: Any) -> dict[str, Any]:
    """Returns the metadata unchanged; raises a 400 error that names each invalid field."""
    if not isinstance(metadata, dict):
        raise InvalidMetadata(field="metadata")
    refuse_unstorable_metadata(metadata)
    errors = [*_type_errors(metadata), *_name_errors(metadata)]
    if errors:
        raise combine_errors(errors)
    limit = settings.COLLECTIONS["metadata_limit"]
    if len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode()) > limit:
        raise InvalidMetadata(f"Metadata must not exceed {limit:,} bytes.", field="metadata")
    return metadata


def parse_metadata(text: str) -> dict[str, Any]:
    """Parses and validates metadata that was sent as text in a form.

    >>> parse_metadata('{"type": "manual"}')
    {'type': 'manual'}
    """
    try:
        metadata = parse_json(text.encode("utf-8", "surrogatepass"))
    except InvalidJson as error:
        has_reason = error.message != InvalidJson.message
        message = error.message.replace("The JSON is", "The metadata is") if has_reason else NOT_JSON_MESSAGE
        raise InvalidMetadata(message, field="metadata") from None
    return validate_metadata(metadata)


def refuse_unstorable_metadata(metadata: Mapping[str, Any]) -> None:
    """Refuse values that cannot be stored and returned unchanged."""
    if any(level >= MAX_DEPTH and isinstance(value, dict | list) for level, value in nested_values(metadata)):
        raise InvalidMetadata(f"Metadata must not be nested deeper than {MAX_DEPTH} levels.", field="metadata")
    try:
        refuse_unstorable(metadata)
    except InvalidJson as error:
        raise InvalidMetadata(error.message, field="metadata") from None
    for field, value in metadata.items():
        for _, item in nested_values(value):
            # NaN and infinity, and numbers that a float cannot represent exactly.
            if isinstance(item, Decimal) or (isinstance(item, float) and item - item != 0.0):
                raise InvalidMetadata(
                    f"{field} contains a number that cannot be stored exactly. Send it as a string.",
                    field=field or "metadata",
                )


def nested_values(value: Any, level: int = 0) -> Iterator[tuple[int, Any]]:
    """Yields a value and all values nested in it, each with its nesting level.

    >>> list(nested_values({"a": [1, {}]}))
    [(0, {'a': [1, {}]}), (1, [1, {}]), (2, 1), (2, {})]
    """
    yield level, value
    if isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from nested_values(child, level + 1)


def _type_errors(metadata: Mapping[str, Any]) -> Iterator[InvalidMetadata]:
    for field, kind in FIELD_KINDS.items():
        is_valid, expected_type = VALUE_CHECKS[kind]
        # Chosen: null means no value, like an omitted field.
        value = metadata.get(field)
        if value is not None and not is_valid(value):
            yield InvalidMetadata(f"{field} must be {expected_type}.", field=field)


def _name_errors(metadata: Mapping[str, Any]) -> Iterator[InvalidMetadata]:
    for field in metadata:
        if not 1 <= len(field) <= MAX_FIELD_NAME_LENGTH:
            yield InvalidMetadata(
                f"Field names must be 1 to {MAX_FIELD_NAME_LENGTH} characters long.", field=field[:80] or "metadata"
            )


def is_integer(value: Any) -> bool:
    """
    >>> [is_integer(value) for value in (5, True, "5", 5.0, 10**20)]
    [True, False, False, False, False]
    """
    return type(value) is int and -INTEGER_BOUND <= value < INTEGER_BOUND


def is_instant(value: Any) -> bool:
    """Whether the value is an ISO 8601 string with date, time and zone.

    >>> is_instant("2024-05-19T15:30:00Z"), is_instant("2024-05-19T15:30:00"), is_instant("2024-02-30T10:00:00Z")
    (True, False, False)
    """
    if not isinstance(value, str) or not _INSTANT_PATTERN.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value).utctimetuple()
    except (ValueError, OverflowError):
        return False
    return True


def iso_timestamp(value: datetime) -> str:
    """Formats an instant in ISO 8601 in UTC, like the metadata field `created`.

    >>> from datetime import UTC
    >>> iso_timestamp(datetime(2024, 5, 19, 13, 45, tzinfo=UTC))
    '2024-05-19T13:45:00Z'
    """
    return value.isoformat(timespec="seconds").replace("+00:00", "Z")


VALUE_CHECKS: Mapping[FieldKind, tuple[Callable[[Any], bool], str]] = {
    FieldKind.TEXT: (lambda value: isinstance(value, str), "a string"),
    FieldKind.INTEGER: (is_integer, "a whole number of at most 64 bits, without quotation marks"),
    FieldKind.BOOLEAN: (lambda value: isinstance(value, bool), "true or false, without quotation marks"),
    FieldKind.INSTANT: (is_instant, "a date and time with a time zone, such as 2024-05-19T15:30:00Z"),
}

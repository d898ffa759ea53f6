"""Converts the texts of submitted controls to the values of a JSON body, which the write pipeline checks."""

from datetime import UTC, datetime
from typing import Any

from system.encoded_query import ComparisonKind
from system.errors import InvalidInput
from system.strict_json import InvalidJson, parse_json, refuse_unstorable
from tableapi.catalogue.definitions import Column
from tableapi.catalogue.value_readers import MAX_REFERENCES
from tableapi.read.context import ReadContext
from tableapi.read.pipeline import RECORD_ID
from tableapi.values import display_values
from tableapi.write import payload

from .options import readable_ids

# Types whose white space counts.
VERBATIM_TYPES = frozenset({"string", "text", "wysiwyg", "password", "secret"})


def parse_control(context: ReadContext, column: Column, text: str) -> Any:
    """The value of a control for the body of a write; None for an empty control. Raises InvalidInput with the field.

    For changes of JSON columns, set `WriteInput.replaces_json`, because the control contains the whole value. Omit
    empty passwords and secrets, whose controls do not show the stored value.
    """
    text = text.replace("\r\n", "\n") if column.type in VERBATIM_TYPES else text.strip()
    if not text:
        return None
    try:
        refuse_unstorable(text)
        return _parse(context, column, text)
    except InvalidJson as error:
        raise InvalidInput(error.message, field=column.name) from None


def _parse(context: ReadContext, column: Column, text: str) -> Any:
    column_type = column.column_type
    if column_type.has_target:
        names = [name for part in text.split(",") if (name := part.strip())] if column_type.is_list else [text]
        ids = _reference_ids(context, column, names)
        return ids if column_type.is_list else ids[0]
    if column_type.is_json:
        return parse_json(text.encode())
    if column.compare_as is ComparisonKind.DATETIME:
        return _utc_text(context, column, text)
    # Choices are sent as their values.
    return text if column_type.has_choices else display_values.parse_display_value(column, text)


def _reference_ids(context: ReadContext, column: Column, texts: list[str]) -> list[str]:
    """The ids of records that are given by their id or, without the picker, by their display value."""
    if len(texts) > MAX_REFERENCES:
        raise InvalidInput(f"Expected at most {MAX_REFERENCES} references.", field=column.name)
    target = context.view.table(column.reference or "")
    ids = filter(RECORD_ID.fullmatch, texts)
    known_ids = readable_ids(context, target, ids) if target is not None else set()
    names = [text for text in dict.fromkeys(texts) if text not in known_ids]
    try:
        ids_by_name = payload.ids_by_display_value(context, column, names)
    except InvalidInput:
        # The message of the API explains how to send an id in JSON.
        raise InvalidInput(payload.NAME_EXPECTED, field=column.name) from None
    return [ids_by_name.get(text, text) for text in texts]


def _utc_text(context: ReadContext, column: Column, text: str) -> str:
    """The time in UTC, as the Table API expects it. A time without an offset is in the caller's time zone."""
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            time = time.replace(tzinfo=context.caller.time_zone)
        return time.astimezone(UTC).replace(tzinfo=None, microsecond=0).isoformat(" ")
    except (ValueError, OverflowError):
        # The reader of the type accepts other formats, or explains what it expects.
        return text

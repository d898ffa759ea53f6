"""The control of a column, as `workspace/control.html` shows it: its text, and the value of a text that was sent."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any

from django.urls import reverse

from system.encoded_query import ComparisonKind
from system.errors import InvalidInput
from system.strict_json import InvalidJson, parse_json, refuse_unstorable
from tableapi.catalogue.definitions import Column, Table
from tableapi.catalogue.display_formats import NO_LABEL, YES_LABEL, duration_text
from tableapi.catalogue.value_readers import MAX_REFERENCES
from tableapi.read.context import ReadContext
from tableapi.read.pipeline import RECORD_ID
from tableapi.values import display_values
from tableapi.write import payload

from .display import column_label, local_time
from .options import label, labels_of, readable_ids

MAX_LINE_LENGTH = 1_000
# Types whose white space counts.
VERBATIM_TYPES = frozenset({"string", "text", "wysiwyg", "password", "secret"})

Item = dict[str, str]


def is_wide(column: Column) -> bool:
    """Whether the control has several lines."""
    return column.type in ("text", "wysiwyg", "json")


@dataclass(frozen=True, kw_only=True)
class Control:
    """One control. `items` are the records in a picker."""

    column: Column
    text: str = ""
    items: Sequence[Item] = ()
    picker_url: str = ""
    errors: Sequence[str] = ()
    id_prefix: str = "control-"

    @property
    def has_lines(self) -> bool:
        # A line would lose the line breaks of a string.
        is_long = "\n" in self.text or len(self.text) > MAX_LINE_LENGTH
        return is_wide(self.column) or (self.column.type == "string" and is_long)

    @property
    def label(self) -> str:
        return column_label(self.column)

    @property
    def id(self) -> str:
        return f"{self.id_prefix}{self.column.name}"

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """The values of a select with their labels. A stored value that is no longer a choice can stay."""
        is_boolean = self.column.type == "boolean"
        options = (("true", YES_LABEL), ("false", NO_LABEL)) if is_boolean else self.column.choices
        return options if not self.text or self.text in dict(options) else ((self.text, self.text), *options)

    @property
    def items_json(self) -> str:
        return json.dumps(self.items, ensure_ascii=False)

    @property
    def has_seconds(self) -> bool:
        return self.text.count(":") > 1

    @property
    def rows(self) -> int:
        return min(max(3, self.text.count("\n") + len(self.text) // 90 + 2), 16)


def control_of_field(context: ReadContext, column: Column, field: Any, **attributes: Any) -> Control:
    """The control with the value of a field that was read with `sysparm_display_value=all`."""
    text = form_text(column, field, context.caller.time_zone)
    return _control(context, column, text, items_of(column, field), **attributes)


def control_of_text(context: ReadContext, column: Column, text: str, **attributes: Any) -> Control:
    """The control with a text that a person sent or that a link contains: of references, ids or display values."""
    target = _target(context, column)
    ids = [part.strip() for part in text.split(",")]
    items: list[Item] = []
    if target is not None and len(ids) <= MAX_REFERENCES and all(map(RECORD_ID.fullmatch, ids)):
        labels = labels_of(context, target, ids)
        if labels.keys() == set(ids):
            items = [{"id": sys_id, "label": labels[sys_id]} for sys_id in ids]
            text = label_text(items)
    return _control(context, column, text, items, **attributes)


def _control(context: ReadContext, column: Column, text: str, items: Sequence[Item], **attributes: Any) -> Control:
    url = reverse("record-options", args=[column.reference]) if _target(context, column) else ""
    return Control(column=column, text=text, items=items, picker_url=url, **attributes)


def _target(context: ReadContext, column: Column) -> Table | None:
    """The table that the column refers to, if the caller can see it."""
    return context.view.table(column.reference) if column.column_type.has_target and column.reference else None


def label_text(items: Sequence[Item]) -> str:
    return ", ".join(item["label"] for item in items)


def items_of(column: Column, field: Any) -> list[Item]:
    """The referenced records of a field that was read with `sysparm_display_value=all`."""
    fields = field if isinstance(field, list) else [field] if isinstance(field, Mapping) else []
    if not column.column_type.has_target:
        return []
    return [{"id": item["value"], "label": label(dict(item))} for item in fields if item.get("value")]


def form_text(column: Column, field: Any, zone: tzinfo) -> str:
    """The text in the control for a field that was read with `sysparm_display_value=all`.

    >>> from datetime import timedelta, timezone
    >>> zone = timezone(timedelta(hours=2))
    >>> form_text(Column("due", "datetime", "", "due"), {"value": "2024-05-09 23:30:00"}, zone)
    '2024-05-10T01:30'
    >>> form_text(Column("left", "duration", "", "left"), {"value": 93600, "display_value": "1d 2h"}, zone)
    '1d 2h'
    """
    if column.column_type.has_target:
        return label_text(items_of(column, field))
    value = field.get("value") if isinstance(field, Mapping) else None
    if value is None:
        return ""
    if column.column_type.is_json:
        return json.dumps(value, ensure_ascii=False, indent=2, default=float)
    if column.compare_as is ComparisonKind.DATETIME:
        time = local_time(value, zone).replace(tzinfo=None)
        return time.isoformat(timespec="seconds" if time.second else "minutes")
    if isinstance(value, bool):
        return "true" if value else "false"
    if column.compare_as is ComparisonKind.DECIMAL:
        return format(Decimal(str(value)), "f")
    if column.type == "duration":
        return str(field.get("display_value") or duration_text(value))
    return str(value).replace("\r\n", "\n")


def sent_texts(column: Column, field: Any, zone: tzinfo) -> list[str]:
    """Every text with which a control sends the stored value unchanged: pickers send ids, plain inputs names."""
    ids = [item["id"] for item in items_of(column, field)]
    return [*([",".join(ids)] if ids else []), form_text(column, field, zone)]


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
        if not column_type.is_list:
            return _reference_ids(context, column, [text])[0]
        return _reference_ids(context, column, list(filter(None, map(str.strip, text.split(",")))))
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
    target = _target(context, column)
    known_ids = readable_ids(context, target, filter(RECORD_ID.fullmatch, texts)) if target is not None else set()
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

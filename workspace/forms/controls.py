"""Describes the control of a column, for `workspace/control.html`, and the text that it contains."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from django.urls import reverse

from system.encoded_query import ComparisonKind
from tableapi.catalogue.definitions import Column
from tableapi.catalogue.display_formats import NO_LABEL, UNIT_SECONDS, YES_LABEL
from tableapi.catalogue.value_readers import MAX_REFERENCES
from tableapi.read.context import ReadContext
from tableapi.read.pipeline import RECORD_ID

from .display import local_time
from .options import label, labels_of

MAX_LINE_LENGTH = 1_000

# The labels of columns that every table has.
SYSTEM_LABELS: Mapping[str, str] = MappingProxyType(
    {
        "sys_id": "ID",
        "sys_created_at": "Created",
        "sys_created_by": "Created by",
        "sys_updated_at": "Updated",
        "sys_updated_by": "Updated by",
        "sys_version": "Version",
    }
)

Item = dict[str, str]


def column_label(column: Column) -> str:
    return SYSTEM_LABELS.get(column.name) or column.label or column.name


@dataclass(frozen=True, kw_only=True)
class ControlKind:
    """The element of a control; `script` names the enhancement of record-form.js."""

    element: str = "input"
    input_type: str = "text"
    input_mode: str = ""
    script: str = ""
    help: str = ""
    suffix: str = ""
    is_wide: bool = False


_LINE, _SECRET = ControlKind(), ControlKind(input_type="password")
_LINES = ControlKind(element="textarea", is_wide=True)
_SELECT = ControlKind(element="select")
KINDS: Mapping[str, ControlKind] = MappingProxyType(
    {
        "text": _LINES,
        "wysiwyg": ControlKind(element="textarea", script="rich-text", is_wide=True),
        "json": ControlKind(element="textarea", script="json", is_wide=True),
        "url": ControlKind(input_type="url", input_mode="url"),
        "email": ControlKind(input_type="email", input_mode="email"),
        "integer": ControlKind(input_mode="numeric"),
        "decimal": ControlKind(input_mode="decimal"),
        "percent": ControlKind(input_mode="decimal", suffix="%"),
        "duration": ControlKind(help="For example 1d 2h 30m."),
        "boolean": _SELECT,
        "choice": _SELECT,
        "date": ControlKind(input_type="date"),
        "datetime": ControlKind(input_type="datetime-local"),
        "password": _SECRET,
        "secret": _SECRET,
    }
)


@dataclass(frozen=True, kw_only=True)
class Control:
    """One control. `items` are the records in a picker; `options` are the values of a select with their labels."""

    column: Column
    kind: ControlKind
    text: str = ""
    items: tuple[Item, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    picker_url: str = ""
    errors: tuple[str, ...] = ()
    id_prefix: str = "control-"

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def label(self) -> str:
        return column_label(self.column)

    @property
    def id(self) -> str:
        return f"{self.id_prefix}{self.name}"

    @property
    def is_multiple(self) -> bool:
        return self.column.column_type.is_list

    @property
    def items_json(self) -> str:
        return json.dumps(self.items, ensure_ascii=False)

    @property
    def has_seconds(self) -> bool:
        return self.kind.input_type == "datetime-local" and self.text.count(":") > 1

    @property
    def rows(self) -> int:
        lines = self.text.count("\n") + len(self.text) // 90 + 2
        return max(3, min(lines, 16))

    @property
    def described_by(self) -> str:
        return " ".join([f"{self.id}-help"] * bool(self.kind.help) + [f"{self.id}-errors"] * bool(self.errors))


def control_of_field(context: ReadContext, column: Column, field: Any, **attributes: Any) -> Control:
    """The control with the value of a field that was read with `sysparm_display_value=all`."""
    text = form_text(column, field, context.caller.time_zone)
    return _control(context, column, text, items_of(column, field), **attributes)


def control_of_text(context: ReadContext, column: Column, text: str, **attributes: Any) -> Control:
    """The control with a text that a person sent or that a link contains: of references, ids or display values."""
    items: list[Item] = []
    target = context.view.table(column.reference or "") if text and column.column_type.has_target else None
    if target is not None:
        ids = [part.strip() for part in text.split(",")] if column.column_type.is_list else [text.strip()]
        known = len(ids) <= MAX_REFERENCES and all(map(RECORD_ID.fullmatch, ids))
        labels = labels_of(context, target, ids) if known else {}
        if labels and len(labels) == len(set(ids)):
            items = [{"id": sys_id, "label": labels[sys_id]} for sys_id in ids]
            text = ", ".join(item["label"] for item in items)
    return _control(context, column, text, items, **attributes)


def _control(context: ReadContext, column: Column, text: str, items: Sequence[Item], **attributes: Any) -> Control:
    kind, url = KINDS.get(column.type, _LINE), ""
    if column.column_type.has_target and context.view.table(column.reference or "") is not None:
        url = reverse("record-options", args=[column.reference])
    if column.type == "string" and ("\n" in text or len(text) > MAX_LINE_LENGTH):
        kind = _LINES  # a line would lose the line breaks
    options = _options(column, text) if kind is _SELECT else ()
    return Control(
        column=column, kind=kind, text=text, items=tuple(items), options=options, picker_url=url, **attributes
    )


def _options(column: Column, text: str) -> tuple[tuple[str, str], ...]:
    options = (("true", YES_LABEL), ("false", NO_LABEL)) if column.type == "boolean" else column.choices
    # A stored value that is no longer a choice can stay.
    return options if not text or text in dict(options) else ((text, text), *options)


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
        return ", ".join(item["label"] for item in items_of(column, field))
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


def duration_text(seconds: int) -> str:
    """
    >>> duration_text(93_784), duration_text(0)
    ('1d 2h 3m 4s', '0m')
    """
    parts = []
    for unit, size in UNIT_SECONDS.items():
        count, seconds = divmod(seconds, size)
        parts += [f"{count}{unit}"] * bool(count)
    return " ".join(parts) or "0m"

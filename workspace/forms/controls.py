"""Describes the control of a column, for `workspace/control.html`, and the text that it contains."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from decimal import Decimal
from typing import Any

from django.urls import reverse

from system.encoded_query import ComparisonKind
from tableapi.catalogue.definitions import Column
from tableapi.catalogue.display_formats import NO_LABEL, YES_LABEL, duration_text
from tableapi.catalogue.value_readers import MAX_REFERENCES
from tableapi.read.context import ReadContext
from tableapi.read.pipeline import RECORD_ID

from .display import local_time
from .options import label, labels_of

MAX_LINE_LENGTH = 1_000

Item = dict[str, str]


def column_label(column: Column) -> str:
    return column.label or column.name


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
    target = context.view.table(column.reference or "") if text and column.column_type.has_target else None
    ids = [part.strip() for part in text.split(",")] if target is not None else []
    items: list[Item] = []
    if target is not None and len(ids) <= MAX_REFERENCES and all(map(RECORD_ID.fullmatch, ids)):
        labels = labels_of(context, target, ids)
        if labels.keys() == set(ids):
            items = [{"id": sys_id, "label": labels[sys_id]} for sys_id in ids]
            text = label_text(items)
    return _control(context, column, text, items, **attributes)


def _control(context: ReadContext, column: Column, text: str, items: Sequence[Item], **attributes: Any) -> Control:
    has_picker = column.column_type.has_target and context.view.table(column.reference or "") is not None
    url = reverse("record-options", args=[column.reference]) if has_picker else ""
    return Control(column=column, text=text, items=items, picker_url=url, **attributes)


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

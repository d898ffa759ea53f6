"""The form of a record: its sections with a control or a text for each column, errors, and conflicts."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.urls import reverse

from system.errors import PreconditionFailed, ServiceError
from tableapi.catalogue.definitions import CREATE, DELETE, WRITE, Column, Table
from tableapi.query.expressions import NEVER
from tableapi.read.context import ReadContext
from tableapi.write import current_record

from . import record_values
from .controls import Control, Item, column_label, control_of_field, control_of_text, form_text, items_of
from .display import display_text
from .layout import FormPath, LayoutSection, layout
from .submission import Submission, visible_column

STALE_MESSAGE = "Another person changed this record in the meantime. Check the values, then save again."
CONFLICT_MESSAGE, CHANGED_NOTE = "Both of you changed this. Choose a value.", "Changed by the other person."


@dataclass(frozen=True)
class Choice:
    """One of two values of a column that two people changed. `text` is what a control would send."""

    who: str
    text: str
    display: str
    is_mine: bool


@dataclass(frozen=True)
class FormField:
    """A column with a control, with two values to choose from, or with a text and links for reading."""

    path: FormPath
    control: Control | None = None
    choices: tuple[Choice, ...] = ()
    text: str = ""
    links: tuple[tuple[str, str], ...] = ()
    note: str = ""

    @property
    def id(self) -> str:
        return f"control-{self.path.key}"

    @property
    def is_wide(self) -> bool:
        return self.path.is_wide or bool(self.choices)


@dataclass(frozen=True)
class FormSection:
    title: str
    fields: tuple[FormField, ...]

    @property
    def is_read_only(self) -> bool:
        return not any(field.control or field.choices for field in self.fields)


@dataclass(frozen=True)
class RecordForm:
    """`base` and `version` are sent back to find out what changed. `sys_id` is empty for a new record.

    Each of the errors is a message with the label of its column, if it has one, and a link to the control.
    """

    table: Table
    sections: tuple[FormSection, ...]
    errors: tuple[tuple[str, str, str], ...] = ()
    title: str = ""
    sys_id: str = ""
    base: str = ""
    version: int | None = None
    can_delete: bool = False
    can_create: bool = False

    @property
    def is_editable(self) -> bool:
        return any(not section.is_read_only for section in self.sections)

    @property
    def has_rich_text(self) -> bool:
        controls = [field.control for section in self.sections for field in section.fields]
        return any(control.kind.script == "rich-text" for control in controls if control)


@dataclass(frozen=True)
class FieldValues:
    """What the fields contain: stored values, texts that replace them, and what to tell about them."""

    stored: Mapping[str, Any]
    writable: Collection[Column]
    texts: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    conflicts: Collection[str] = ()
    notes: Mapping[str, str] = field(default_factory=dict)


def _field(context: ReadContext, path: FormPath, values: FieldValues) -> FormField:
    key, column, stored = path.key, path.column, values.stored.get(path.key)
    note, errors = values.notes.get(key, ""), values.errors.get(key, ())
    if key in values.conflicts:
        return FormField(path, choices=_choices(context, column, values.texts[key], stored), note=note)
    # A text that a person sent is shown even if the column has become read-only.
    if path.is_own and (column in values.writable or key in values.texts):
        if key in values.texts and column.is_readable:
            control = control_of_text(context, column, values.texts[key], errors=errors)
        else:
            control = control_of_field(context, column, stored, errors=errors)
        return FormField(path, control, links=_links(context, column, control.items), note=note)
    text = display_text(column, stored, context.caller.time_zone)
    links = _links(context, column, items_of(column, stored))
    if column.type == "url" and text:
        links = ((text, text),)
    return FormField(path, text=text, links=links, note=note)


def _links(context: ReadContext, column: Column, items: Sequence[Item]) -> tuple[tuple[str, str], ...]:
    """The pages of the referenced records, with their display values."""
    target = context.view.table(column.reference or "")
    if target is None or not context.view.can_read(target):
        return ()
    return tuple((item["label"], record_url(target, item["id"])) for item in items)


def record_url(table: Table, sys_id: str) -> str:
    return reverse("record-page", args=[table.name, sys_id])


def _choices(context: ReadContext, column: Column, mine: str, stored: Any) -> tuple[Choice, ...]:
    control = control_of_text(context, column, mine)
    zone = context.caller.time_zone
    theirs = ",".join(item["id"] for item in items_of(column, stored)) or form_text(column, stored, zone)
    shown = dict(control.options).get(mine, control.text)
    if column.column_type.is_html:
        shown = display_text(column, {"value": mine}, zone)
    return (
        Choice("Your value", mine, shown, True),
        Choice("The other person's value", theirs, display_text(column, stored, zone), False),
    )


def build_sections(
    context: ReadContext, sections: Sequence[LayoutSection], values: FieldValues
) -> tuple[FormSection, ...]:
    return tuple(
        FormSection(section.title, tuple(_field(context, path, values) for path in section.paths))
        for section in sections
    )


def record_form(
    context: ReadContext, table: Table, sys_id: str, sent: Submission | None = None, error: ServiceError | None = None
) -> RecordForm:
    """The form of a record; after a refused save, with what the person sent. Raises 404 like a read."""
    sent = sent or Submission({})
    sections = _layout(context, table, sent)
    paths = [path for section in sections for path in section.paths]
    own_columns = [path.column for path in paths if path.is_own]
    display = [table.display_column.name] if table.display_column else []
    stored = record_values.read_stored(context, table, sys_id, [*display, *(path.key for path in paths)])
    allowed = current_record.read_permissions(context, table, sys_id, (WRITE, DELETE), own_columns)
    writable = [column for column in own_columns if column in allowed.columns and column.is_readable]
    prints = record_values.fingerprints
    base: Mapping[str, list[str]] = {
        column.name: prints(context, column, stored.fields.get(column.name)) for column in writable
    }
    values, version = FieldValues(stored.fields, allowed.columns), stored.version
    if isinstance(error, PreconditionFailed):
        values = _merged(context, table, sent, values)
    elif error is not None:
        texts = {name: sent.texts[name] for name in _visible_columns(context, table, sent)}
        values = replace(values, texts=texts, errors=errors_by_column(error))
        # Changes by others since the form was opened must still be noticed.
        base, version = sent.base or base, version if sent.version is None else sent.version
    return RecordForm(
        table,
        build_sections(context, sections, values),
        summary(context, table, error, values.conflicts) if error else (),
        title=record_values.record_title(context, table, sys_id, stored.fields),
        sys_id=sys_id,
        base=json.dumps(base),
        version=version,
        can_delete=DELETE in allowed.operations,
        can_create=context.view.permissions.record_decision(CREATE, table) != NEVER,
    )


def _layout(context: ReadContext, table: Table, sent: Submission) -> list[LayoutSection]:
    """The layout with readable columns, secrets that may be writable, and all columns that were sent."""
    permissions = context.view.permissions

    def is_shown(column: Column) -> bool:
        if column.is_readable:
            return context.view.column(table, column.name) is not None
        can_write = permissions.column_decision(WRITE, table, column) != NEVER
        return can_write and not table.is_server_managed(column) and permissions.can_see_column(table, column)

    return layout(context.view, table, is_shown, sent.texts)


def _merged(context: ReadContext, table: Table, sent: Submission, values: FieldValues) -> FieldValues:
    """What another person changed where the caller changed nothing, and a choice where both did."""
    texts, conflicts, notes = {}, [], {}
    for name, column in _visible_columns(context, table, sent).items():
        stored = values.stored.get(name)
        prints = record_values.fingerprints(context, column, stored) if column.is_readable else []
        is_theirs = set(prints).isdisjoint(sent.base.get(name) or prints) if prints else False
        if sent.is_changed(context, column, name, stored):
            texts[name] = sent.texts[name]
            conflicts += [name] * (is_theirs and record_values.fingerprint(sent.texts[name]) not in prints)
        elif is_theirs:
            notes[name] = CHANGED_NOTE
    return replace(values, texts=texts, conflicts=conflicts, notes=notes)


def _visible_columns(context: ReadContext, table: Table, sent: Submission) -> dict[str, Column]:
    columns = {name: visible_column(context, table, name) for name in sent.texts}
    return {name: column for name, column in columns.items() if column is not None and not column.is_sys}


def errors_by_column(error: ServiceError) -> dict[str, tuple[str, ...]]:
    errors: dict[str, tuple[str, ...]] = {}
    for item in (error, *error.other_errors):
        if item.field:
            errors[item.field] = (*errors.get(item.field, ()), item.message)
    return errors


def summary(
    context: ReadContext, table: Table, error: ServiceError, conflicts: Collection[str] = ()
) -> tuple[tuple[str, str, str], ...]:
    """The errors, each with the label of its column and a link to its control."""
    if isinstance(error, PreconditionFailed):
        items = [(STALE_MESSAGE, None), *((CONFLICT_MESSAGE, name) for name in conflicts)]
    else:
        items = [(item.message, item.field) for item in (error, *error.other_errors)]
    columns = [visible_column(context, table, name) if name else None for _, name in items]
    links = [(column_label(column), f"#control-{column.name}") if column else ("", "") for column in columns]
    return tuple((message, *link) for (message, _), link in zip(items, links, strict=True))

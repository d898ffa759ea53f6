"""The form of a new or stored record: its sections with a control or a text for each column, errors, and conflicts."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from system.errors import PreconditionFailed, ServiceError
from tableapi.catalogue.definitions import CREATE, DELETE, WRITE, Column, Table
from tableapi.query.expressions import NEVER, ResolvedPath
from tableapi.read.context import ReadContext
from tableapi.write import current_record

from . import submission
from .controls import control_of_field, control_of_text, is_wide, items_of, sent_texts
from .display import display_text, path_label
from .layout import TITLE_NAMES, Sections, layout
from .submission import Changes, Submission

STALE_MESSAGE = "Another person changed this record in the meantime. Check the values, then save again."
CONFLICT_MESSAGE = "Both of you changed this. Choose a value."

# A message and the name of its column.
Message = tuple[str, str | None]


@dataclass(frozen=True)
class FormContents:
    """The stored values, the columns that can be set, what a person changed, and what to tell about it."""

    stored: Mapping[str, Any]
    writable: Collection[Column]
    changes: Changes = Changes()
    errors: Sequence[Message] = ()


def form_values(context: ReadContext, table: Table, sections: Sections, contents: FormContents) -> dict[str, Any]:
    shown: list[dict[str, Any]] = []
    for title, paths in sections.items():
        fields = [_field(context, key, path, contents) for key, path in paths.items()]
        is_editable = any(field["control"] or field["choices"] for field in fields)
        shown.append({"title": title, "fields": fields, "is_editable": is_editable})
    controls = [field["control"] for section in shown for field in section["fields"] if field["control"]]
    return {
        "table": table,
        "sections": shown,
        "errors": [
            (text, context.view.permissions.visible_column(table, name or "")) for text, name in contents.errors
        ],
        "is_editable": any(section["is_editable"] for section in shown),
        "has_rich_text": any(control.column.type == "wysiwyg" for control in controls),
    }


def _field(context: ReadContext, key: str, path: ResolvedPath, contents: FormContents) -> dict[str, Any]:
    """A column with a control, with two values to choose from, or with a text for reading."""
    column, stored, texts = path.column, contents.stored.get(key), contents.changes.texts
    control, choices = None, []
    # A text that a person sent is shown even if the column has become read-only.
    is_control = not path.steps and (column in contents.writable or (key in texts and not column.is_sys))
    if is_control and key in contents.changes.conflicts:
        choices = _choices(context, column, texts[key], stored)
    elif is_control:
        errors = [text for text, name in contents.errors if name == key]
        if key in texts and column.is_readable:
            control = control_of_text(context, column, texts[key], errors=errors)
        else:
            control = control_of_field(context, column, stored, errors=errors)
    target = context.view.table(column.reference or "")
    return {
        "key": key,
        "column": column,
        "label": path_label(path),
        "is_wide": is_wide(column),
        "control": control,
        "choices": choices,
        "text": "" if control else display_text(column, stored, context.caller.time_zone),
        "records": control.items if control else items_of(column, stored),
        "can_open": target is not None and context.view.can_read(target),
        "is_changed_by_others": key in contents.changes.by_others,
    }


def _choices(context: ReadContext, column: Column, mine: str, stored: Any) -> list[tuple[str, str, str]]:
    """The values of two people: whose, what a control would send, and what is shown. The caller's is the first."""
    control, zone = control_of_text(context, column, mine), context.caller.time_zone
    shown = dict(control.options).get(mine, control.text)
    if column.column_type.is_html:
        shown = display_text(column, {"value": mine}, zone)
    theirs = sent_texts(column, stored, zone)[0]
    return [
        ("Your value", mine, shown),
        ("The other person's value", theirs, display_text(column, stored, zone)),
    ]


def record_form(
    context: ReadContext, table: Table, sys_id: str, sent: Submission, error: ServiceError | None = None
) -> dict[str, Any]:
    """The form of a record. After a refused save, it has what the person sent, what others changed in the meantime
    where the person changed nothing, and a choice where both did. Raises 404 like a read."""
    sections = layout(context.view, table, partial(_is_shown, context, table), sent.texts)
    paths = {key: path for section in sections.values() for key, path in section.items()}
    own_columns = [path.column for path in paths.values() if not path.steps]
    stored = submission.read_stored(context, table, sys_id, paths)
    allowed, columns = current_record.read_permissions(context, table, sys_id, (WRITE, DELETE), own_columns)
    writable = columns if WRITE in allowed else set()
    prints = (submission.fingerprints(context, column, stored.fields.get(column.name)) for column in writable)
    changes = submission.compare(context, table, sent, stored.fields) if error else Changes()
    errors = messages_of(error) + [(CONFLICT_MESSAGE, name) for name in changes.conflicts]
    # What the record is about, beside its title.
    subjects = (column for column in own_columns if column.name in TITLE_NAMES and column is not table.display_column)
    texts = (display_text(column, stored.fields.get(column.name), context.caller.time_zone) for column in subjects)
    return form_values(context, table, sections, FormContents(stored.fields, writable, changes, errors)) | {
        "sys_id": sys_id,
        "title": stored.title,
        "subject": next(texts, ""),
        # Sent back to find out what changed.
        "base": " ".join(sorted(chain.from_iterable(prints))),
        "version": stored.version,
        "can_delete": DELETE in allowed,
        "can_create": context.view.permissions.record_decision(CREATE, table) != NEVER,
    }


def _is_shown(context: ReadContext, table: Table, path: ResolvedPath) -> bool:
    """Whether the column is readable, or a secret that may be writable. Walked columns exist as long as the record."""
    column, permissions = path.steps[0].column if path.steps else path.column, context.view.permissions
    if column.is_readable:
        return context.view.column(table, column.name) is not None
    can_write = permissions.column_decision(WRITE, table, column) != NEVER
    return can_write and not table.is_server_managed(column) and permissions.can_see_column(table, column)


def messages_of(error: ServiceError | None) -> list[Message]:
    if isinstance(error, PreconditionFailed):
        return [(STALE_MESSAGE, None)]
    return [(item.message, item.field) for item in (error, *error.other_errors)] if error else []


def new_form(
    context: ReadContext, table: Table, sent: Submission, error: ServiceError | None = None, *, source: str = ""
) -> dict[str, Any]:
    """The form of a new record. Texts of links or of a refused form replace the values of the record with the id
    `source`, and these replace the defaults that the Table API would set."""
    columns = submission.creatable_columns(context, table)
    texts = submission.default_texts(context, columns)
    if source:
        texts |= _copied_texts(context, table, source, columns)
    texts |= {column.name: sent.texts[column.name] for column in columns if column.name in sent.texts}
    required = [column.name for column in columns if column.name in sent.texts or column.mandatory]
    sections = layout(context.view, table, lambda path: not path.steps and path.column in columns, required)
    return form_values(context, table, sections, FormContents({}, columns, Changes(texts), messages_of(error)))


def _copied_texts(context: ReadContext, table: Table, sys_id: str, columns: Iterable[Column]) -> dict[str, str]:
    """The values of a record for a copy of it, without unique ones. References are copied by their ids."""
    copied = [column for column in columns if column.is_readable and not column.is_unique]
    fields = submission.read_stored(context, table, sys_id, [column.name for column in copied]).fields
    zone = context.caller.time_zone
    return {column.name: sent_texts(column, fields.get(column.name), zone)[0] for column in copied}

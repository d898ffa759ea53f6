"""A submitted form: the texts of its controls, what they were based on, and the body of the write."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from system.errors import InvalidInput, PreconditionFailed, combine_errors
from tableapi.catalogue.column_type import StorageFormat
from tableapi.catalogue.definitions import Column, Table
from tableapi.read.context import ReadContext
from tableapi.values import column_values, defaults
from tableapi.write.column_errors import VALUE_REQUIRED, collecting_errors

from .record_values import fingerprint, fingerprints, read_stored
from .submitted import parse_control

VERSION = re.compile("[0-9]{1,18}")
TOKEN_NAME = "csrfmiddlewaretoken"
# Names of columns start with a letter.
BASE_NAME, VERSION_NAME, SAVE_NAME = "_base", "_version", "_save"


@dataclass(frozen=True)
class Submission:
    """`base` has the fingerprints of the values that the form showed. Without it, the stored values count."""

    texts: Mapping[str, str]
    base: Mapping[str, list[str]] = field(default_factory=dict)
    version: int | None = None

    @classmethod
    def of(cls, post: QueryDict) -> "Submission":
        names = [name for name in post if name != TOKEN_NAME and not name.startswith("_")]
        texts = {name: post.getlist(name)[-1].replace("\r\n", "\n") for name in names}
        version = post.get(VERSION_NAME, "")
        return cls(texts, _read_base(post.get(BASE_NAME, "")), int(version) if VERSION.fullmatch(version) else None)

    def is_changed(self, context: ReadContext, column: Column | None, name: str, stored: Any) -> bool:
        """Whether the person changed the value of a column. Unknown columns count, so that the API reports them."""
        text = self.texts[name]
        if column is None:
            return True
        if column.column_type.is_write_only:
            return text != ""
        return fingerprint(text) not in (self.base.get(name) or fingerprints(context, column, stored))


def _read_base(text: str) -> dict[str, list[str]]:
    """The fingerprints by column, without what this service did not write."""
    try:
        base = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {name: value for name, value in base.items() if isinstance(value, list)} if isinstance(base, dict) else {}


def visible_column(context: ReadContext, table: Table, name: str) -> Column | None:
    """The column, or None for both a missing one and one that the caller may not know."""
    column = table.columns.get(name)
    return column if column is not None and context.view.permissions.can_see_column(table, column) else None


@dataclass(frozen=True)
class Change:
    """The body of an update, and the version of the record that it was compared with."""

    body: dict[str, Any]
    version: int | None


def read_change(context: ReadContext, table: Table, sys_id: str, sent: Submission) -> Change:
    """Find out what a person changed. Raises PreconditionFailed if the form is based on an older record."""
    columns = {name: visible_column(context, table, name) for name in sent.texts}
    stored = read_stored(context, table, sys_id, [name for name, column in columns.items() if column])
    changed = {
        name: text
        for name, text in sent.texts.items()
        if sent.is_changed(context, columns[name], name, stored.fields.get(name))
    }
    if changed and sent.version is not None and sent.version != stored.version:
        raise PreconditionFailed
    return Change(body_of(context, table, changed), stored.version)


def body_of(context: ReadContext, table: Table, texts: Mapping[str, str]) -> dict[str, Any]:
    """The body of a write with these texts. Raises all errors together."""
    errors: list[InvalidInput] = []
    body: dict[str, Any] = {}
    for name, text in texts.items():
        column = visible_column(context, table, name)
        with collecting_errors(errors):
            body[name] = text if column is None else parse_control(context, column, text)
    if not errors:
        return body
    # The write, which would report the other errors, does not run.
    for name, value in body.items():
        column = visible_column(context, table, name)
        if column is not None and column.column_type.storage not in (StorageFormat.HASHED, StorageFormat.ENCRYPTED):
            with collecting_errors(errors):
                column_values.parse(column, value)
                if defaults.lacks_mandatory_value(column, value):
                    raise InvalidInput(VALUE_REQUIRED, code="mandatory", field=name)
    raise combine_errors(errors)

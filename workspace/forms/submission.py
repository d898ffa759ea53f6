"""Reads the stored values of a form, compares what was submitted with them, and builds the body of the write."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.http import QueryDict

from system.errors import InvalidInput, PreconditionFailed, combine_errors
from tableapi.catalogue.definitions import CREATE, Column, Table
from tableapi.query.expressions import NEVER
from tableapi.query.parameters import DisplayMode, OutputOptions
from tableapi.read import pipeline
from tableapi.read.context import ReadContext
from tableapi.values import column_values, defaults
from tableapi.write import current_record, payload
from tableapi.write.column_errors import check_mandatory, collecting_errors
from tableapi.write.write_request import WriteInput

from .controls import form_text, parse_control, sent_texts
from .display import display_text

FINGERPRINT_LENGTH = 16
VERSION, FINGERPRINT = re.compile("[0-9]{1,18}"), re.compile(rf"\b[0-9a-f]{{{FINGERPRINT_LENGTH}}}\b")


@dataclass(frozen=True)
class StoredRecord:
    """Fields as `sysparm_display_value=all` returns them. `version` is None if the caller cannot read it."""

    fields: Mapping[str, Any]
    version: int | None
    title: str


def read_stored(context: ReadContext, table: Table, sys_id: str, keys: Iterable[str] = ()) -> StoredRecord:
    """Read these columns and paths, and the title: the display value or the id. Raises 404 like the API."""
    display, zone = table.display_column, context.caller.time_zone
    names = dict.fromkeys([*keys, *([display.name] if display else [])])
    readable = tuple(key for key in names if "." in key or context.view.column(table, key) is not None)
    output = OutputOptions(readable, display_mode=DisplayMode.BOTH, with_links=False)
    result = pipeline.fetch_record(
        context, table, sys_id, output if readable else pipeline.minimal_output(context, table)
    )
    # A float would change the digits of decimals.
    fields = json.loads(result.body, parse_float=Decimal)
    title = display_text(display, fields.get(display.name), zone) if display else ""
    return StoredRecord(fields, result.version, title or sys_id)


@dataclass(frozen=True)
class Submission:
    """`base` has the fingerprints of the values that the form showed. Without it, the stored values count."""

    texts: Mapping[str, str]
    base: frozenset[str] = frozenset()
    version: int | None = None

    @classmethod
    def of(cls, post: QueryDict) -> "Submission":
        # Names of columns start with a letter.
        names = [name for name in post if name != "csrfmiddlewaretoken" and not name.startswith("_")]
        texts = {name: post.getlist(name)[-1].replace("\r\n", "\n") for name in names}
        version = post.get("_version", "")
        base = frozenset(FINGERPRINT.findall(post.get("_base", "")))
        return cls(texts, base, int(version) if VERSION.fullmatch(version) else None)


def fingerprint(column_name: str, text: str) -> str:
    return hashlib.sha256(f"{column_name}={text}".encode(errors="surrogatepass")).hexdigest()[:FINGERPRINT_LENGTH]


def fingerprints(context: ReadContext, column: Column, field: Any) -> set[str]:
    """The fingerprints of the texts that leave the value unchanged. Secrets have none."""
    texts = sent_texts(column, field, context.caller.time_zone) if column.is_readable else []
    return {fingerprint(column.name, text) for text in texts}


@dataclass(frozen=True)
class Changes:
    """The texts that the person changed, and the columns that others changed: to another value, or only they."""

    texts: Mapping[str, str] = field(default_factory=dict)
    conflicts: Collection[str] = ()
    by_others: Collection[str] = ()


def compare(context: ReadContext, table: Table, sent: Submission, fields: Mapping[str, Any]) -> Changes:
    """Compare what was sent with what the form showed and with what is stored now. Unknown columns count as changed, so
    that the API reports them."""
    texts, conflicts, by_others = {}, [], []
    for name, text in sent.texts.items():
        column = context.view.permissions.visible_column(table, name)
        prints = fingerprints(context, column, fields.get(name)) if column else set()
        is_by_others = bool(sent.base and prints) and sent.base.isdisjoint(prints)
        is_empty_secret = column is not None and not column.is_readable and not text
        if fingerprint(name, text) not in (sent.base or prints) and not is_empty_secret:
            texts[name] = text
            conflicts += [name] * (is_by_others and fingerprint(name, text) not in prints)
        elif is_by_others:
            by_others.append(name)
    return Changes(texts, conflicts, by_others)


def read_change(context: ReadContext, table: Table, sys_id: str, sent: Submission) -> WriteInput:
    """The update with what the person changed. Raises PreconditionFailed if another person changed the record since the
    form was opened."""
    known_names = [name for name in sent.texts if context.view.permissions.visible_column(table, name)]
    stored = read_stored(context, table, sys_id, known_names)
    changes = compare(context, table, sent, stored.fields)
    # Only those who cannot read the version depend on the values.
    if changes.texts and (changes.conflicts if sent.version is None else sent.version != stored.version):
        raise PreconditionFailed
    # Nobody may change the record between the comparison and the write.
    is_current = None if sent.version is None else lambda version: bool(version == stored.version)
    body = body_of(context, table, changes.texts)
    return WriteInput(body, OutputOptions(), is_current=is_current, replaces_json=True)


def creatable_columns(context: ReadContext, table: Table) -> list[Column]:
    """The columns that the caller may set. Raises the error of the API if they may create no record."""
    permissions = context.view.permissions
    if permissions.record_decision(CREATE, table) == NEVER:
        raise current_record.create_denied_error(context, table)
    return [
        column
        for column in table.columns.values()
        if not table.is_server_managed(column)
        and permissions.can_see_column(table, column)
        and permissions.column_decision(CREATE, table, column) != NEVER
    ]


def default_texts(context: ReadContext, columns: Iterable[Column]) -> dict[str, str]:
    """The texts of the values that the API sets if the columns are not sent."""
    values = {column: defaults.default_value(column, context.moment) for column in columns if column.is_readable}
    zone = context.caller.time_zone
    return {
        column.name: form_text(column, {"value": column_values.to_log_value(column, value)}, zone)
        for column, value in values.items()
    }


def read_creation(context: ReadContext, table: Table, sent: Submission) -> WriteInput:
    """The write of a new record. Raises all errors of the texts together.

    The API sets defaults itself, also of columns that the caller cannot set, so they are not sent.
    """
    shown = default_texts(context, creatable_columns(context, table))

    def is_needed(name: str, text: str) -> bool:
        column = context.view.permissions.visible_column(table, name)
        # So that all errors are found together.
        is_missing = column is not None and column.mandatory and not text and not defaults.is_number_default(column)
        return is_missing or text != shown.get(name, "")

    texts = {name: text for name, text in sent.texts.items() if is_needed(name, text)}
    return WriteInput(body_of(context, table, texts), OutputOptions())


def body_of(context: ReadContext, table: Table, texts: Mapping[str, str]) -> dict[str, Any]:
    """The body of a write with these texts. Raises all errors together."""
    errors: list[InvalidInput] = []
    body: dict[str, Any] = {}
    columns = {name: context.view.permissions.visible_column(table, name) for name in texts}
    for name, column in columns.items():
        with collecting_errors(errors):
            body[name] = texts[name] if column is None else parse_control(context, column, texts[name])
    if not errors:
        return body
    # The write, which would report the other errors, does not run.
    change = WriteInput(body, OutputOptions()).for_table(context, table)
    for name, column in columns.items():
        if column is not None and name in body:
            with collecting_errors(errors):
                payload.parse_value(change, column, body[name])
                check_mandatory(change, column, body[name])
    raise combine_errors(errors)

"""Formats what the activity of a record shows: values, times, names and comments, as text that templates escape."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, timedelta, tzinfo
from typing import Any

from django.contrib.humanize.templatetags.humanize import naturaltime
from django.utils.text import Truncator

from tableapi.attached.comments import MENTION
from tableapi.catalogue.definitions import Column
from tableapi.catalogue.display_formats import NO_LABEL, YES_LABEL, duration_text
from tableapi.catalogue.html import extract_plain_text
from tableapi.read.context import Caller, ReadContext
from tableapi.read.pipeline import RECORD_ID
from workspace.forms.display import MINUTE_FORMAT, display_text, local_time
from workspace.forms.options import labels_of

# The display values of records, by table and id; without those that the caller cannot read.
Names = Mapping[tuple[str, str | None], str]

MAX_SHOWN_CHARACTERS = 200
MAX_SHOWN_REFERENCES = 10
# After that, the date says more than "3 weeks ago".
MAX_RELATIVE_AGE = timedelta(days=7)
UNNAMED = "(not available)"
LINK_OR_MENTION = re.compile(rf"(?P<link>https?://[^\s<>\"]+[^\s<>\".,;:!?)\]}}'])|(?P<mention>{MENTION.pattern})")
# The display value of a value in the history, which contains stored values only.
DISPLAY_VALUES: Mapping[str, Callable[[Any], str]] = {
    "boolean": lambda value: YES_LABEL if value else NO_LABEL,
    "date": lambda value: "{0.day} {0:%b %Y}".format(date.fromisoformat(value)),
    "duration": lambda value: duration_text(int(value)),
    "percent": lambda value: f"{value}%",
}


def find_names(context: ReadContext, ids: Iterable[tuple[str, str | None]]) -> Names:
    """The display values of records, by table and id. Reads them with one statement per table."""
    by_table: dict[str, list[str]] = {}
    for table_name, sys_id in ids:
        if sys_id:
            by_table.setdefault(table_name, []).append(sys_id)
    return {
        (table.name, sys_id): label
        for table in map(context.view.table, by_table)
        if table is not None
        for sys_id, label in labels_of(context, table, by_table[table.name]).items()
    }


def references_in(column: Column, value: Any) -> Iterator[tuple[str, str]]:
    """The table and id of each record that a value refers to, as far as it is shown."""
    if column.reference and value:
        ids = value if isinstance(value, list) else [value]
        yield from ((column.reference, id_) for id_ in ids[:MAX_SHOWN_REFERENCES] if RECORD_ID.fullmatch(str(id_)))


def field_text(column: Column, value: Any, names: Names, zone: tzinfo) -> str:
    """The text of a value in the history.

    >>> from datetime import UTC
    >>> field_text(Column("state", "choice", "task", "state", choices=(("1", "New"),)), "1", {}, UTC)
    'New'
    >>> field_text(Column("caller", "reference", "task", "caller", reference="user"), "7", {("user", "7"): "anna"}, UTC)
    'anna'
    """
    if value is None:
        return ""
    if column.reference:
        shown = [names.get(key, UNNAMED) for key in references_in(column, value)]
        more = len(value) - MAX_SHOWN_REFERENCES if isinstance(value, list) else 0
        return ", ".join([*shown, f"{more} more"] if more > 0 else shown)
    if column.column_type.is_html and not column.converted_from_text:
        return Truncator(extract_plain_text(value)).chars(MAX_SHOWN_CHARACTERS)
    to_display = DISPLAY_VALUES.get(column.type)
    display = dict(column.choices).get(value) if column.choices else to_display(value) if to_display else None
    field = {"value": value, "display_value": display}
    return Truncator(display_text(column, field, zone)).chars(MAX_SHOWN_CHARACTERS)


def time_context(value: str | None, caller: Caller) -> dict[str, str]:
    """A time as the Table API returns it: for machines, on the caller's clock, and relative to now. Empty if hidden."""
    if value is None:
        return {}
    at = local_time(value, caller.time_zone)
    exact = MINUTE_FORMAT.format(at)
    is_recent = caller.now - at < MAX_RELATIVE_AGE
    return {"iso": at.isoformat(), "exact": exact, "text": naturaltime(at) if is_recent else exact}


def comment_parts(text: str) -> list[dict[str, str | None]]:
    """Splits a comment where links and mentions begin and end.

    >>> [(part["kind"], part["text"]) for part in comment_parts("See https://a.b/c?d=1. @anna")]
    [('text', 'See '), ('link', 'https://a.b/c?d=1'), ('text', '. '), ('mention', '@anna')]
    """
    parts: list[dict[str, str | None]] = []
    position = 0
    for match in LINK_OR_MENTION.finditer(text):
        parts.append({"kind": "text", "text": text[position : match.start()]})
        parts.append({"kind": match.lastgroup, "text": match[0]})
        position = match.end()
    parts.append({"kind": "text", "text": text[position:]})
    return [part for part in parts if part["text"]]

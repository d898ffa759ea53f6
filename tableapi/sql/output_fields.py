"""Writes the SQL of one field of an answer, as the database's JSON takes it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tableapi.catalogue.definitions import TEXT_TYPES, Column
from tableapi.query.expressions import ResolvedPath
from tableapi.query.read_plan import OutputField

from . import predicates
from .statement_builder import StatementBuilder, TableAlias, literal

VALUE, DISPLAY, BOTH = "0", "1", "all"

# A time's own text begins so: `YYYY-MM-DD HH:MM:SS`. Measured: to_char takes half as long again.
INSTANT_LENGTH = 19
DISPLAY_INSTANT = "'FMDD Mon YYYY HH24:MI:SS'"
DISPLAY_DATE = "'FMDD Mon YYYY'"
YES, NO = "Yes", "No"


@dataclass(frozen=True, slots=True)
class OutputStyle:
    """How values are shown: database values, what people read, or both; with links or without."""

    display: str = VALUE
    with_links: bool = True
    # Ids of converted columns that are answered as HTML.
    as_html: tuple[str, ...] = ()


def field(text: StatementBuilder, style: OutputStyle, output: OutputField, anchor: TableAlias) -> str:
    """The JSON of one field; the anchor is the record at the end of the field's path."""
    column = output.leaf.column
    if column.type == "reference":
        stored = predicates.guarded(text, output.leaf.guard, anchor, anchor.column(column))
        return _reference(text, style, output, stored)
    if column.type == "list":
        stored = predicates.guarded(text, output.leaf.guard, anchor, anchor.column(column))
        return _list(text, style, output, stored)
    value = predicates.guarded(text, output.leaf.guard, anchor, _stored(style, column, anchor))
    if style.display == VALUE:
        return _value(column, value)
    if style.display == DISPLAY:
        return shown(column, value)
    return f"json_build_object('value', {_value(column, value)}, 'display_value', {shown(column, value)})"


def _stored(style: OutputStyle, column: Column, anchor: TableAlias) -> str:
    if column.type != "wysiwyg" or (column.converted_from_text and column.id not in style.as_html):
        return anchor.column(column)
    html = anchor.column(column, plain=False)
    if not column.converted_from_text:
        return html
    escaped = f"replace(replace(replace({html}, '&', '&amp;'), '<', '&lt;'), '>', '&gt;')"
    return f"CASE WHEN {anchor.is_html(column)} THEN {html} ELSE {escaped} END"


def _value(column: Column, sql: str) -> str:
    if column.type in TEXT_TYPES or column.type == "choice":
        return f"nullif({sql}, '')"
    if column.type == "datetime":
        return f"left(({sql} AT TIME ZONE 'UTC')::text, {INSTANT_LENGTH})"
    return sql


def shown(column: Column, sql: str) -> str:
    """As people read it."""
    match column.type:
        case "choice" if column.choices:
            labels = " ".join(f"WHEN {literal(value)} THEN {literal(label)}" for value, label in column.choices)
            return f"CASE {sql} {labels} ELSE nullif({sql}, '') END"
        case "boolean":
            return f"CASE {sql} WHEN TRUE THEN '{YES}' WHEN FALSE THEN '{NO}' END"
        case "date":
            return f"to_char({sql}, {DISPLAY_DATE})"
        case "datetime":
            return f"to_char({sql} AT TIME ZONE 'UTC', {DISPLAY_INSTANT})"
    return _value(column, sql)


def _called(text: StatementBuilder, display: ResolvedPath | None, reference: str) -> str:
    """The display value of a record by its id; NULL where the caller may not read it."""
    if display is None:
        # Mentions the reference: its guard may have bound parameters, and PostgreSQL refuses one that no text mentions.
        return f"CASE WHEN {reference} IS NULL THEN NULL::text END"
    hop = display.hops[0]
    target = TableAlias(text, hop.target)
    value = predicates.guarded(text, display.guard, target, shown(display.column, target.column(display.column)))
    readable = predicates.decision(text, hop.records, target)
    condition = f" AND {readable}" if readable else ""
    return f"(SELECT ({value})::text FROM {target.joined()} WHERE {target.sys_id()} = {reference}{condition})"


def _reference(text: StatementBuilder, style: OutputStyle, output: OutputField, stored: str) -> str:
    column = output.leaf.column
    if style.display == VALUE and not style.with_links:
        return f"nullif({stored}, '')"
    if style.display == DISPLAY and not style.with_links:
        return _called(text, output.display, stored)
    if style.display == VALUE:
        return f"CASE WHEN {stored} <> '' THEN {_linked(text, column, stored)} END"
    built = f"json_build_object({_pairs(text, style, column, output.display, stored)})"
    return built if style.display == BOTH else f"CASE WHEN {stored} <> '' THEN {built} END"


def _linked(text: StatementBuilder, column: Column, stored: str) -> str:
    """Id and link as JSON text: an id has only digits and letters. Measured: json_build_object takes twice as long."""
    start, middle = literal('{"value":"'), literal('","link":"')
    link = f"{text.link()} || {literal(f'{column.reference}/')}"
    return f"({start} || {stored} || {middle} || {link} || {stored} || '\"}}')::json"


def _list(text: StatementBuilder, style: OutputStyle, output: OutputField, stored: str) -> str:
    column = output.leaf.column
    # With its alias: a column of the records referred to may be called like anything here.
    each_of = text.alias()
    item, place = f"{each_of}.item", f"{each_of}.place"
    if style.display == VALUE and style.with_links:
        each = _linked(text, column, item)
    elif style.with_links or style.display == BOTH:
        each = f"json_build_object({_pairs(text, style, column, output.display, item)})"
    else:
        each = item if style.display == VALUE else _called(text, output.display, item)
    source = f"unnest({stored}) WITH ORDINALITY AS {each_of}(item, place)"
    items = f"(SELECT json_agg({each} ORDER BY {place}) FROM {source})"
    # Most lists are empty; asking that first saves a sub-select for each.
    return f"CASE WHEN cardinality({stored}) > 0 THEN {items} END"


def _pairs(
    text: StatementBuilder, style: OutputStyle, column: Column, display: ResolvedPath | None, stored: str
) -> str:
    pairs = []
    if style.display != DISPLAY:
        pairs += ["'value'", stored]
    if style.display != VALUE:
        pairs += ["'display_value'", _called(text, display, stored)]
    if style.with_links:
        pairs += ["'link'", f"{text.link()} || {literal(f'{column.reference}/')} || {stored}"]
    return ", ".join(pairs)

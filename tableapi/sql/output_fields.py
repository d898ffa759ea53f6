"""Compiles one field of an answer to an SQL expression for the database's JSON functions. Pure."""

from typing import NamedTuple

from tableapi.catalogue.definitions import Column
from tableapi.query.expressions import ResolvedPath
from tableapi.query.parameters import DisplayMode
from tableapi.query.read_plan import OutputField

from . import predicates
from .statement_builder import StatementBuilder, TableAlias, literal


class OutputStyle(NamedTuple):
    """How values are returned: stored values, display values or both; with links or without."""

    display: DisplayMode = DisplayMode.VALUE
    with_links: bool = True
    # Ids of converted columns that are returned as HTML.
    html_column_ids: tuple[str, ...] = ()


def field_sql(builder: StatementBuilder, style: OutputStyle, output: OutputField, alias: TableAlias) -> str:
    """The JSON of one field as text; `alias` is the record at the end of its path."""
    column = output.path.column
    value = predicates.guarded_value(builder, output.path.guard, alias, _stored_sql(style, column, alias))
    if style.display == DisplayMode.VALUE and column.column_type.is_reference and style.with_links:
        return f"CASE WHEN {value} <> '' THEN {_linked_sql(builder, column, value)} ELSE 'null' END"
    if style.display == DisplayMode.VALUE and not column.column_type.has_target:
        json = column.column_type.json_sql.format(_value(column, value))
    else:
        json = f"to_json({_json_sql(builder, style, output, value)})::text"
    return f"coalesce({json}, 'null')"


def _json_sql(builder: StatementBuilder, style: OutputStyle, output: OutputField, value: str) -> str:
    column = output.path.column
    if column.column_type.is_list:
        return _list_sql(builder, style, output, value)
    if column.column_type.is_reference:
        return _reference_sql(builder, style, output, value)
    display_value = display_value_sql(column, value)
    if style.display == DisplayMode.DISPLAY:
        return display_value
    return f"json_build_object('value', {_value(column, value)}, 'display_value', {display_value})"


def _stored_sql(style: OutputStyle, column: Column, alias: TableAlias) -> str:
    if not column.column_type.is_html or (column.converted_from_text and column.id not in style.html_column_ids):
        return alias.column(column)
    html = alias.column(column, plain=False)
    if not column.converted_from_text:
        return html
    escaped = f"replace(replace(replace({html}, '&', '&amp;'), '<', '&lt;'), '>', '&gt;')"
    return f"CASE WHEN {alias.is_html(column)} THEN {html} ELSE {escaped} END"


def _value(column: Column, sql: str) -> str:
    return column.column_type.value_sql.format(sql)


def display_value_sql(column: Column, sql: str) -> str:
    if column.choices:
        labels = " ".join(f"WHEN {literal(value)} THEN {literal(label)}" for value, label in column.choices)
        return f"CASE {sql} {labels} ELSE {_value(column, sql)} END"
    display = column.column_type.display
    return display.sql.format(sql) if display else _value(column, sql)


def _referenced_name_sql(builder: StatementBuilder, display: ResolvedPath | None, reference: str) -> str:
    """The display value of the record that a reference refers to; NULL where the caller may not read it."""
    if display is None:
        # With the reference: its guard may have bound parameters, and PostgreSQL refuses those that the text lacks.
        return f"CASE WHEN {reference} IS NULL THEN NULL::text END"
    step = display.steps[0]
    target = TableAlias(builder, step.target)
    value = predicates.guarded_value(
        builder, display.guard, target, display_value_sql(display.column, target.column(display.column))
    )
    where = [f"{target.sys_id()} = {reference}", *predicates.decision_conditions(builder, step.records, target)]
    return f"(SELECT ({value})::text FROM {target.from_sql()} WHERE {' AND '.join(where)})"


def _reference_sql(builder: StatementBuilder, style: OutputStyle, output: OutputField, stored: str) -> str:
    column = output.path.column
    if style.display == DisplayMode.VALUE and not style.with_links:
        return f"nullif({stored}, '')"
    if style.display == DisplayMode.DISPLAY and not style.with_links:
        return _referenced_name_sql(builder, output.display, stored)
    json_object = f"json_build_object({_json_members(builder, style, column, output.display, stored)})"
    return json_object if style.display == DisplayMode.BOTH else f"CASE WHEN {stored} <> '' THEN {json_object} END"


def _linked_sql(builder: StatementBuilder, column: Column, stored: str) -> str:
    """Id and link as JSON text: an id has only digits and letters. Measured: json_build_object takes twice as long."""
    start, middle, table = literal('{"value":"'), literal('","link":"'), literal(f"{column.reference}/")
    return f"concat({start}, {stored}, {middle}, {builder.link()}, {table}, {stored}, '\"}}')"


def _list_sql(builder: StatementBuilder, style: OutputStyle, output: OutputField, stored: str) -> str:
    column = output.path.column
    # With its alias: a column of the records that it refers to may have any of these names.
    items_alias = builder.alias()
    item, place = f"{items_alias}.item", f"{items_alias}.place"
    if style.display == DisplayMode.VALUE and style.with_links:
        json = f"{_linked_sql(builder, column, item)}::json"
    elif style.with_links or style.display == DisplayMode.BOTH:
        json = f"json_build_object({_json_members(builder, style, column, output.display, item)})"
    else:
        json = item if style.display == DisplayMode.VALUE else _referenced_name_sql(builder, output.display, item)
    source = f"unnest({stored}) WITH ORDINALITY AS {items_alias}(item, place)"
    items = f"(SELECT json_agg({json} ORDER BY {place}) FROM {source})"
    # Most lists are empty; checking that first saves a sub-select for each.
    return f"CASE WHEN cardinality({stored}) > 0 THEN {items} END"


def _json_members(
    builder: StatementBuilder, style: OutputStyle, column: Column, display: ResolvedPath | None, stored: str
) -> str:
    pairs = []
    if style.display != DisplayMode.DISPLAY:
        pairs += ["'value'", stored]
    if style.display != DisplayMode.VALUE:
        pairs += ["'display_value'", _referenced_name_sql(builder, display, stored)]
    if style.with_links:
        pairs += ["'link'", f"{builder.link()} || {literal(f'{column.reference}/')} || {stored}"]
    return ", ".join(pairs)

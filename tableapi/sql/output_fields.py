"""Compiles one field of a response to an SQL expression that returns JSON. Pure."""

from typing import NamedTuple

from tableapi.catalogue.definitions import Column
from tableapi.query.expressions import ResolvedPath
from tableapi.query.names import Names
from tableapi.query.parameters import DisplayMode
from tableapi.query.read_plan import OutputField

from . import predicates
from .statement_builder import StatementBuilder, TableAlias, literal


class OutputStyle(NamedTuple):
    """How values are returned: as stored values, display values or both, with or without links."""

    mode: DisplayMode = DisplayMode.VALUE
    with_links: bool = True
    # Ids of converted columns that are returned as HTML.
    html_column_ids: tuple[str, ...] = ()
    # In exports, whether to put an apostrophe before text that is a formula in spreadsheets.
    escapes_formulas: bool = True
    # In exports, whether dates and times are returned as values even in the mode of display values.
    has_typed_times: bool = False
    # The dialect of the names, in which every value is text.
    names: Names | None = None


def member_sql(
    builder: StatementBuilder, style: OutputStyle, output: OutputField, alias: TableAlias, prefix: str
) -> str:
    """Return an SQL expression for the prefix followed by the field as JSON text. `alias` is the table of the record at
    the end of its path. Measured: a prefix that is an argument of `concat` of its own takes longer."""
    column = output.path.column
    value = predicates.guarded_value(builder, output.path.guard, alias, stored_sql(style, column, alias))
    if style.mode == DisplayMode.VALUE and column.column_type.is_reference and style.with_links:
        link_object = _link_object_sql(builder, column, value, prefix)
        return f"CASE WHEN {value} <> '' THEN {link_object} ELSE {literal(f'{prefix}null')} END"
    if style.mode == DisplayMode.VALUE and not column.column_type.has_target:
        json = column.column_type.json_sql.format(value_sql(column, value))
    else:
        json = f"to_json({_json_sql(builder, style, output, value)})::text"
    return f"coalesce({literal(prefix)} || {json}, {literal(f'{prefix}null')})"


def _json_sql(builder: StatementBuilder, style: OutputStyle, output: OutputField, value: str) -> str:
    column = output.path.column
    if column.column_type.is_list:
        return _list_sql(builder, style, output, value)
    if column.column_type.is_reference:
        return _reference_sql(builder, style, output, value)
    display_value = display_value_sql(column, value)
    if style.mode == DisplayMode.DISPLAY:
        return display_value
    return f"json_build_object('value', {value_sql(column, value)}, 'display_value', {display_value})"


def stored_sql(style: OutputStyle, column: Column, alias: TableAlias) -> str:
    if not column.column_type.is_html or (column.converted_from_text and column.id not in style.html_column_ids):
        return alias.column(column)
    html = alias.column(column, is_plain=False)
    if not column.converted_from_text:
        return html
    escaped = f"replace(replace(replace({html}, '&', '&amp;'), '<', '&lt;'), '>', '&gt;')"
    return f"CASE WHEN {alias.is_html(column)} THEN {html} ELSE {escaped} END"


def value_json_sql(column: Column, sql: str) -> str:
    """The stored value as JSON text."""
    return f"coalesce({column.column_type.json_sql.format(value_sql(column, sql))}, 'null')"


def value_sql(column: Column, sql: str) -> str:
    return column.column_type.value_sql.format(sql)


def display_value_sql(column: Column, sql: str) -> str:
    if column.choices:
        labels = " ".join(f"WHEN {literal(value)} THEN {literal(label)}" for value, label in column.choices)
        return f"CASE {sql} {labels} ELSE {value_sql(column, sql)} END"
    display_format = column.column_type.display_format
    return display_format.sql.format(sql) if display_format else value_sql(column, sql)


def reference_display_sql(builder: StatementBuilder, display_path: ResolvedPath | None, reference: str) -> str:
    """Return the display value of the referenced record; NULL if the caller cannot read it."""
    if display_path is None:
        # Contains the reference, because its guard may have bound parameters that the text must contain.
        return f"CASE WHEN {reference} IS NULL THEN NULL::text END"
    step = display_path.steps[0]
    target = TableAlias(builder, step.target)
    value = predicates.guarded_value(
        builder, display_path.guard, target, display_value_sql(display_path.column, target.column(display_path.column))
    )
    where = [f"{target.sys_id()} = {reference}", *predicates.decision_conditions(builder, step.records, target)]
    return f"(SELECT ({value})::text FROM {target.from_sql()} WHERE {' AND '.join(where)})"


def _reference_sql(builder: StatementBuilder, style: OutputStyle, output: OutputField, stored_sql: str) -> str:
    column = output.path.column
    if style.mode == DisplayMode.VALUE and not style.with_links:
        return f"nullif({stored_sql}, '')"
    if style.mode == DisplayMode.DISPLAY and not style.with_links:
        return reference_display_sql(builder, output.display_path, stored_sql)
    json_object = f"json_build_object({_json_members(builder, style, column, output.display_path, stored_sql)})"
    return json_object if style.mode == DisplayMode.BOTH else f"CASE WHEN {stored_sql} <> '' THEN {json_object} END"


def _link_object_sql(builder: StatementBuilder, column: Column, stored_sql: str, prefix: str = "") -> str:
    """Return id and link as JSON text. Ids need no escaping. Measured: json_build_object takes three times as long. The
    text between the two is one parameter, so that PostgreSQL need not join it."""
    table, start = column.reference, literal(f'{prefix}{{"value":"')
    middle = builder.shared_parameter(f"link {table}", lambda inputs: f'","link":"{inputs.api_url}{table}/', "text")
    return f"({start} || {stored_sql} || {middle} || {stored_sql} || '\"}}')"


def _list_sql(builder: StatementBuilder, style: OutputStyle, output: OutputField, stored_sql: str) -> str:
    column = output.path.column
    # Qualified with an alias, because the referenced records may have columns with these names.
    items_alias = builder.alias()
    item, place = f"{items_alias}.item", f"{items_alias}.place"
    if style.mode == DisplayMode.VALUE and style.with_links:
        json = f"{_link_object_sql(builder, column, item)}::json"
    elif style.with_links or style.mode == DisplayMode.BOTH:
        json = f"json_build_object({_json_members(builder, style, column, output.display_path, item)})"
    else:
        json = item if style.mode == DisplayMode.VALUE else reference_display_sql(builder, output.display_path, item)
    source = f"unnest({stored_sql}) WITH ORDINALITY AS {items_alias}(item, place)"
    items = f"(SELECT json_agg({json} ORDER BY {place}) FROM {source})"
    # Most lists are empty; checking that first saves a sub-select for each.
    return f"CASE WHEN cardinality({stored_sql}) > 0 THEN {items} END"


def _json_members(
    builder: StatementBuilder, style: OutputStyle, column: Column, display_path: ResolvedPath | None, stored_sql: str
) -> str:
    pairs = []
    if style.mode != DisplayMode.DISPLAY:
        pairs += ["'value'", stored_sql]
    if style.mode != DisplayMode.VALUE:
        pairs += ["'display_value'", reference_display_sql(builder, display_path, stored_sql)]
    if style.with_links:
        url = builder.shared_parameter("api_url", lambda inputs: inputs.api_url, "text")
        pairs += ["'link'", f"{url} || {literal(f'{column.reference}/')} || {stored_sql}"]
    return ", ".join(pairs)

"""Compiles fields of a dialect in which every value is text and an empty one is an empty text. Pure."""

from collections.abc import Callable

from tableapi.query.names import Names
from tableapi.query.parameters import DisplayMode
from tableapi.query.read_plan import OutputField

from .output_fields import OutputStyle, display_value_sql, reference_display_sql, stored_sql, value_sql
from .predicates import guarded_value
from .statement_builder import StatementBuilder, TableAlias, literal

MASK = literal("********")


def member_sql(
    builder: StatementBuilder, style: OutputStyle, names: Names, output: OutputField, alias: TableAlias, prefix: str
) -> str:
    """Return an SQL expression for the prefix followed by the field as JSON text."""
    if output.is_masked:
        return f"{literal(prefix)} || {_plain_json(style, MASK, lambda: MASK)}"
    column = output.path.column
    value = guarded_value(builder, output.path.guard, alias, stored_sql(style, column, alias))
    texts = [guarded_value(builder, path.guard, alias, alias.column(path.column)) for path in output.joined_paths]
    if texts:
        parts = [f"nullif({text}, '')" for text in (value, *texts)]
        text = f"concat_ws(' ', {', '.join(parts)})"
        return f"{literal(prefix)} || {_plain_json(style, text, lambda: text)}"
    if column.column_type.has_target:
        return f"{literal(prefix)} || {_reference_json(builder, style, names, output, value)}"
    json = _plain_json(style, value_sql(column, value), lambda: display_value_sql(column, value))
    return f"{literal(prefix)} || {json}"


def _text(sql: str) -> str:
    return f"coalesce(({sql})::text, '')"


def _plain_json(style: OutputStyle, value: str, display_value: Callable[[], str]) -> str:
    """The display value is compiled only if it is used, because it may bind parameters."""
    if style.mode == DisplayMode.BOTH:
        return f"json_build_object('display_value', {_text(display_value())}, 'value', {_text(value)})::text"
    return f"to_json({_text(display_value() if style.mode == DisplayMode.DISPLAY else value)})::text"


def _reference_json(
    builder: StatementBuilder, style: OutputStyle, names: Names, output: OutputField, value: str
) -> str:
    column = output.path.column
    foreign_table = names.table(column.reference or "")
    if style.mode == DisplayMode.VALUE and style.with_links and column.column_type.is_reference:
        # Ids need no escaping, and json_build_object takes three times as long.
        middle = builder.shared_parameter(
            f"link {foreign_table}", lambda inputs: f'","link":"{inputs.api_url}{foreign_table}/', "text"
        )
        start, end = literal('{"value":"'), literal('"}')
        link_object = f"{start} || {value} || {middle} || {value} || {end}"
        return f"CASE WHEN {value} <> '' THEN {link_object} ELSE '\"\"' END"
    is_list = column.column_type.is_list
    ids = _text(f"array_to_string({value}, ',')" if is_list else value)
    members = []
    if style.mode != DisplayMode.VALUE:
        members += ["'display_value'", _target_display_values(builder, output, value)]
    if style.mode != DisplayMode.DISPLAY:
        members += ["'value'", ids]
    if style.with_links and not is_list:
        url = builder.shared_parameter("api_url", lambda inputs: inputs.api_url, "text")
        members += ["'link'", f"{url} || {literal(f'{foreign_table}/')} || {ids}"]
    if len(members) == 2:
        return f"to_json({members[1]})::text"
    empty = '{"display_value":"","value":""}' if style.mode == DisplayMode.BOTH else '""'
    return f"CASE WHEN {ids} <> '' THEN json_build_object({', '.join(members)})::text ELSE {literal(empty)} END"


def _target_display_values(builder: StatementBuilder, output: OutputField, value: str) -> str:
    if not output.path.column.column_type.is_list:
        return _text(reference_display_sql(builder, output.display_path, value))
    alias = builder.alias()
    item = f"{alias}.item"
    shown = reference_display_sql(builder, output.display_path, item)
    source = f"unnest({value}) WITH ORDINALITY AS {alias}(item, place)"
    return _text(f"(SELECT string_agg({shown}, ', ' ORDER BY {alias}.place) FROM {source})")

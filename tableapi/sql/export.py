"""Compiles the statement of an export, which COPY turns into the lines of the file. Pure."""

from collections.abc import Callable
from typing import Any

from system.encoded_query import ComparisonKind
from tableapi.query.parameters import DisplayMode
from tableapi.query.read_plan import OutputField, ReadPlan

from . import output_fields, predicates, select
from .output_fields import OutputStyle
from .select import FromClause
from .statement_builder import Parameter, StatementBuilder, StatementInputs, TableAlias, literal

# Text that starts with one of these is a formula in spreadsheets.
FORMULA_STARTS = "('=', '+', '-', '@', E'\\t', E'\\r')"
TIME_KINDS = frozenset({ComparisonKind.DATE, ComparisonKind.DATETIME})
SAFE_KINDS = TIME_KINDS | {ComparisonKind.INTEGER, ComparisonKind.DECIMAL, ComparisonKind.BOOLEAN}
# JSON contains neither of these characters, so COPY does not change it.
JSON_LINES = "FORMAT csv, DELIMITER E'\\x01', QUOTE E'\\x02'"


class ValueWriter(StatementBuilder):
    """Writes values into the SQL text, quoted by the driver, because COPY accepts no parameters."""

    def __init__(self, inputs: StatementInputs, quote_value: Callable[[Any], str]) -> None:
        super().__init__()
        self.inputs = inputs
        self.quote_value = quote_value

    def parameter(self, value: Parameter, sql_type: str) -> str:
        return f"({self.quote_value(value(self.inputs))})::{sql_type}"


def export_sql(builder: StatementBuilder, plan: ReadPlan, style: OutputStyle, limit: int, *, as_csv: bool) -> str:
    """Compile the COPY statement. It reads one record more than the limit, to show that there are more, and none under
    another version of the catalogue."""
    from_clause = FromClause(builder, plan)
    if as_csv:
        cells = [_cell_sql(builder, style, output, from_clause.alias_at(output.path.steps)) for output in plan.fields]
        line = ", ".join(cells) or "NULL"
    else:
        line = select.record_json_sql(builder, style, plan.fields, from_clause)
    is_current = f"(SELECT version FROM public.tableapi_state) = {builder.input('version', 'bigint')}"
    where = " AND ".join([is_current, *from_clause.conditions(plan)])
    order = select.order_sql(plan, select.sort_keys(plan, from_clause))
    rows = f"SELECT {line} FROM {from_clause.sql()} WHERE {where} ORDER BY {order} LIMIT {limit + 1}"
    return f"COPY ({rows}) TO STDOUT ({'FORMAT csv' if as_csv else JSON_LINES})"


def _cell_sql(builder: StatementBuilder, style: OutputStyle, output: OutputField, alias: TableAlias) -> str:
    column = output.path.column
    stored_value = output_fields.stored_sql(style, column, alias)
    value = predicates.guarded_value(builder, output.path.guard, alias, stored_value)
    as_display = style.mode == DisplayMode.DISPLAY and column.column_type.has_target
    if column.column_type.is_list:
        item = output_fields.reference_display_sql(builder, output.display_path, "i.item") if as_display else "i.item"
        items = f"unnest({value}) WITH ORDINALITY AS i(item, place)"
        text = f"(SELECT string_agg({item}, ', ' ORDER BY i.place) FROM {items})"
    elif as_display:
        text = output_fields.reference_display_sql(builder, output.display_path, value)
    elif style.mode == DisplayMode.DISPLAY and not (style.has_typed_times and column.compare_as in TIME_KINDS):
        text = output_fields.display_value_sql(column, value)
    else:
        text = column.column_type.value_sql.format(value)
    text = f"({text})::text"
    if not style.escapes_formulas or (column.compare_as in SAFE_KINDS and not column.choices):
        return text
    return f"CASE WHEN left({text}, 1) IN {FORMULA_STARTS} THEN {literal(chr(39))} || {text} ELSE {text} END"

"""Computes the values of columns that are set when another column changes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from system.encoded_query import Moment
from system.errors import InvalidInput
from tableapi.catalogue.definitions import Column, SetOnChangeRule, Table
from tableapi.sql.statement_builder import StatementBuilder
from tableapi.values import column_values, defaults


def rules_of_change(table: Table, columns: Iterable[Column]) -> list[SetOnChangeRule]:
    """Return the rules that watch one of these columns."""
    names = {column.name for column in columns}
    return [rule for rule in table.set_on_change_rules if rule.watched.name in names]


def values_to_set(
    table: Table, changed_values: Mapping[Column, Any], value_of: Callable[[Column], Any], moment: Moment
) -> dict[Column, Any]:
    """Return the values to set after a change of these columns, if they differ from the stored ones."""
    values: dict[Column, Any] = {}
    for rule in rules_of_change(table, changed_values):
        old, new = value_of(rule.watched), changed_values[rule.watched]
        if column_values.is_same(rule.watched, old, new):
            continue
        if _matches(rule, new):
            values[rule.column] = defaults.default_value(rule.column_with_default, moment)
        elif rule.clears and _matches(rule, old):
            values[rule.column] = None
    return {
        column: value for column, value in values.items() if not column_values.is_same(column, value_of(column), value)
    }


def watched_value(rule: SetOnChangeRule) -> Any:
    """Return the value that triggers a rule; None if it has become invalid, such as a deleted choice."""
    try:
        return column_values.parse(rule.watched, rule.value)
    except InvalidInput:
        return None


def _matches(rule: SetOnChangeRule, value: Any) -> bool:
    return value is not None and (not rule.value or column_values.is_same(rule.watched, watched_value(rule), value))


def value_sql(
    builder: StatementBuilder, number: int, rule: SetOnChangeRule, sql_of: Callable[[Column], str], new: str
) -> str:
    """Compile the value after an update. `sql_of` returns stored values, and `new` is the new value of the watched
    column. The inputs come from `inputs_of`."""
    stored_value, old = sql_of(rule.column), sql_of(rule.watched)
    value = builder.input(f"set{number}", rule.column.column_type.sql_type)
    cases = f"WHEN {old} IS NOT DISTINCT FROM {new} THEN {stored_value}"
    if not rule.value:
        return f"CASE {cases} WHEN {new} IS NOT NULL THEN {value} ELSE {stored_value} END"
    match = builder.input(f"match{number}", rule.watched.column_type.sql_type)
    cases += f" WHEN {new} = {match} THEN {value}"
    if rule.clears:
        cases += f" WHEN {old} = {match} THEN NULL"
    return f"CASE {cases} ELSE {stored_value} END"


def inputs_of(rules: Iterable[SetOnChangeRule], moment: Moment) -> dict[str, Any]:
    numbered = list(enumerate(rules))
    values = {f"set{number}": defaults.default_value(rule.column_with_default, moment) for number, rule in numbered}
    return values | {f"match{number}": watched_value(rule) for number, rule in numbered if rule.value}

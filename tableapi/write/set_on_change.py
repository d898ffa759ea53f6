"""The values of columns that are set when another column changes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from system.encoded_query import Moment
from system.errors import InvalidInput
from tableapi.catalogue.definitions import Column, SetOnChangeRule, Table
from tableapi.sql.statement_builder import StatementBuilder
from tableapi.values import column_values, defaults


def rules_of_change(table: Table, columns: Iterable[Column]) -> list[SetOnChangeRule]:
    """The rules that watch one of these columns."""
    names = {column.name for column in columns}
    return [rule for rule in table.set_on_change_rules if rule.watched.name in names]


def values_to_set(
    table: Table, changed: Mapping[Column, Any], stored: Callable[[Column], Any], moment: Moment
) -> dict[Column, Any]:
    """After a change of these columns; only values that differ from the stored ones."""
    values: dict[Column, Any] = {}
    for rule in rules_of_change(table, changed):
        old, new = stored(rule.watched), changed[rule.watched]
        if column_values.is_same(rule.watched, old, new):
            continue
        if _matches(rule, new):
            values[rule.column] = defaults.default_value(rule.source, moment)
        elif rule.clears and _matches(rule, old):
            values[rule.column] = None
    return {
        column: value for column, value in values.items() if not column_values.is_same(column, stored(column), value)
    }


def watched_value(rule: SetOnChangeRule) -> Any:
    """None if it has become invalid, such as a deleted choice: then the rule never matches."""
    try:
        return column_values.parse(rule.watched, rule.value)
    except InvalidInput:
        return None


def _matches(rule: SetOnChangeRule, value: Any) -> bool:
    return value is not None and (not rule.value or column_values.is_same(rule.watched, watched_value(rule), value))


def value_sql(
    builder: StatementBuilder, number: int, rule: SetOnChangeRule, sql_of: Callable[[Column], str], new: str
) -> str:
    """The value after an update; `sql_of` gives the stored ones, and `new` is that of the watched column. The inputs
    are those of `inputs_of`."""
    stored, old = sql_of(rule.column), sql_of(rule.watched)
    value = builder.input(f"set{number}", rule.column.column_type.sql_type)
    cases = f"WHEN {old} IS NOT DISTINCT FROM {new} THEN {stored}"
    if not rule.value:
        return f"CASE {cases} WHEN {new} IS NOT NULL THEN {value} ELSE {stored} END"
    match = builder.input(f"match{number}", rule.watched.column_type.sql_type)
    cases += f" WHEN {new} = {match} THEN {value}"
    if rule.clears:
        cases += f" WHEN {old} = {match} THEN NULL"
    return f"CASE {cases} ELSE {stored} END"


def inputs_of(rules: Iterable[SetOnChangeRule], moment: Moment) -> dict[str, Any]:
    numbered = list(enumerate(rules))
    values = {f"set{number}": defaults.default_value(rule.source, moment) for number, rule in numbered}
    return values | {f"match{number}": watched_value(rule) for number, rule in numbered if rule.value}

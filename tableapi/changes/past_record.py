"""Reconstructs a record before or after a change from the change log. Pure."""

from collections.abc import Callable

from system.records.change_log import HASH_SUFFIX
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import OWN_TABLE_COLUMN, Column, Table
from tableapi.query.expressions import ALWAYS, NEVER
from tableapi.sql import change_rows, predicates
from tableapi.sql.statement_builder import StatementBuilder, TableAlias, literal

from . import logged_values

# Every change sets these, so the log contains them only for deletions.
STAMP_COLUMNS = frozenset({"sys_updated_at", "sys_updated_by", "sys_version"})

# Returns SQL for the JSON object that contains the value of a column.
ImageOf = Callable[[Column], str]


class UnknownValue(Exception):
    """A rule needs a value that the log does not contain."""


class PastRecord(TableAlias):
    """Reads column values from JSON in the log; `change` is the alias of a row of the log."""

    def __init__(self, table: Table, change: str, image_of: ImageOf) -> None:
        self.table = table
        self.change = change
        self.image_of = image_of
        # Conditions that are true if the log contains the used values in full.
        self.known_conditions: list[str] = []

    def sys_id(self) -> str:
        return f"{self.change}.record_id"

    def column(self, column: Column, *, is_plain: bool = True) -> str:
        if column.name == "sys_id":
            return self.sys_id()
        if column.name == OWN_TABLE_COLUMN:
            return f"{self.change}.table_key"
        key, image = logged_values.value_key(self.table, column), self.image_of(column)
        self.known_conditions.append(f"NOT coalesce({image} ? {literal(key + HASH_SUFFIX)}, FALSE)")
        value = f"({image} ->> {literal(key)})::{column.column_type.sql_type}"
        if column.column_type.is_list:
            items = f"ARRAY(SELECT jsonb_array_elements_text({image} -> {literal(key)}))"
            return f"CASE WHEN {image} ? {literal(key)} THEN {items}::varchar[] END"
        if column.column_type.is_html and is_plain:
            plain_text = f"{image} ->> {literal(column.plain_text_name)}"
            return f"coalesce({plain_text}, {value})" if column.converted_from_text else f"({plain_text})"
        return value


def became_unreadable_sql(builder: StatementBuilder, view: CallerView, table: Table, change: str) -> tuple[str, str]:
    """SQL for whether the caller could read the record before the change but not after it, and the join this needs.
    `table` is the record's own table. The result is false if this cannot be decided."""
    decision = view.record_decision(table)
    if decision in (ALWAYS, NEVER):
        return f"({change}.operation = 'delete' AND {'TRUE' if decision == ALWAYS else 'FALSE'})", ""
    trial = StatementBuilder()
    predicates.decision_sql(trial, decision, PastRecord(table, change, lambda column: "NULL"))
    if trial.table_count:
        return "FALSE", ""  # the rule needs other records, and the log does not tell what they were at that time
    stored = TableAlias(builder, table)

    def readable_in(image_of: ImageOf) -> tuple[str, list[str]]:
        record = PastRecord(table, change, image_of)
        condition = predicates.decision_sql(builder, decision, record)
        return f"(({condition}) IS TRUE)", record.known_conditions

    was_readable, known = readable_in(lambda column: f"{change}.old_values")
    deleted = " AND ".join([f"{change}.operation = 'delete'", was_readable, *known])
    try:
        readable_before, known_before = readable_in(lambda column: _image_sql(stored, column, change, ">="))
        readable_after, known_after = readable_in(lambda column: _image_sql(stored, column, change, ">"))
    except UnknownValue:
        return f"({deleted})", ""
    is_update = f"{change}.operation IN ('update', 'clear')"
    hidden = " AND ".join([is_update, readable_before, f"NOT {readable_after}", *known_before, *known_after])
    return f"({deleted} OR {hidden})", f" LEFT JOIN {stored.join_sql()} ON {stored.sys_id()} = {change}.record_id"


def same_record_sql(alias: str, other: str) -> str:
    """SQL for whether two log rows belong to the same record. Imported ids are unique only within their table."""
    return f"{alias}.record_id = {other}.record_id AND {alias}.table_key = {other}.table_key"


def _image_sql(stored: TableAlias, column: Column, change: str, comparison: str) -> str:
    """SQL for the JSON object with a past value of the column: the old value in the next change that mentions it, or
    the current value if there is no such change."""
    if column.name in STAMP_COLUMNS:
        raise UnknownValue
    key = literal(logged_values.value_key(stored.table, column))
    mentions = f"(h.operation = 'delete' OR h.old_values ? {key} OR h.new_values ? {key})"
    later = f"{same_record_sql('h', change)} AND h.id {comparison} {change}.id AND {mentions}"
    logged = f"SELECT h.old_values FROM public.sys_change h WHERE {later} ORDER BY h.id LIMIT 1"
    if stored.table.is_system and not column.is_custom:
        current = f"jsonb_build_object({key}, {stored.database_column(column, column.database_name)})"
    else:
        current = change_rows.values_sql([column], stored.database_column)
    return f"coalesce(({logged}), {current})"

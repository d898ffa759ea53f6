"""Compiles the statement of the change feed, which reconstructs records before and after a change. Pure."""

from collections.abc import Callable

from system.records.change_log import HASH_SUFFIX
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import OWN_TABLE_COLUMN, Column, Table
from tableapi.query.expressions import ALWAYS, NEVER
from tableapi.query.read_plan import ReadPlan
from tableapi.sql import change_rows, predicates, select
from tableapi.sql.output_fields import OutputStyle
from tableapi.sql.select import FromClause, Statement
from tableapi.sql.statement_builder import StatementBuilder, TableAlias, literal

from . import logged_values

# A restored database differs in its oid or, in a new cluster, in the identifier of the cluster.
DATABASE = (
    "(SELECT system_identifier # (oid::bigint << 32) FROM pg_control_system(), pg_database "
    "WHERE datname = current_database())"
)
# The end of the JSON of a removed record.
REMOVED_END = b'","removed":true}'
# A transaction that is still running may write a row with a lower number, which the next page would miss.
IS_SETTLED = "transaction < pg_snapshot_xmin(pg_current_snapshot())"
# Every change sets these, so the log contains them only for deletions.
STAMP_COLUMNS = frozenset({"sys_updated_at", "sys_updated_by", "sys_version"})

# Returns SQL for the JSON object that contains the value of a column.
ImageOf = Callable[[Column], str]


def reset_position_sql(table: str) -> str:
    """SQL that moves a position to the end of the restored changes after a restore. They all have transaction 3."""
    end = "transaction = '3', change_id = 9223372036854775807, at = now()"
    return f"UPDATE public.{table} SET database = {DATABASE}, {end} WHERE database <> {DATABASE}"


def feed_statement(view: CallerView, plan: ReadPlan, style: OutputStyle, limit: int) -> Statement:
    """Selects the visible changes after a position: catalogue version, database, transaction, id, JSON."""
    builder = StatementBuilder()
    from_clause = FromClause(builder, plan)
    record = from_clause.alias
    body = select.record_json_sql(builder, style, plan.fields, from_clause)
    readable = [f"{record.sys_id()} = c.record_id", *from_clause.readable_conditions(plan.records)]
    removed, removed_joins = removed_sql(builder, view, plan.table)
    # Only the last change of each record, which is returned as it is now.
    later = f"{_same_record_sql('later', 'c')} AND later.id > c.id"
    later = f"SELECT FROM public.sys_change later WHERE {later} AND {is_visible_sql(view, plan.table, 'later')}"
    is_last = f"{is_visible_sql(view, plan.table, 'c')} AND NOT EXISTS ({later})"
    is_shown = f"CASE WHEN {record.sys_id()} IS NULL THEN {removed} ELSE {is_last} END"
    start, end = literal('{"sys_id":"'), literal(REMOVED_END.decode())
    removed_body = f"concat({start}, c.record_id, {end})"
    joins = f" LEFT JOIN {record.join_sql()} ON {' AND '.join(readable)}{from_clause.joins()}{removed_joins}"
    changes = (
        f"SELECT c.transaction::text AS transaction, c.id, "
        f"CASE WHEN {record.sys_id()} IS NULL THEN {removed_body} ELSE {body} END AS body "
        f"FROM ({_log_rows_sql(builder, view, plan.table)}) c{joins} WHERE {is_shown} "
        f"ORDER BY c.transaction, c.id LIMIT {limit + 1}"
    )
    return select.versioned_statement(builder, f"{DATABASE}, r.transaction, r.id, r.body", changes)


def _log_rows_sql(builder: StatementBuilder, view: CallerView, table: Table) -> str:
    """The log rows after the position. Each table of the family is a separate range of the index."""
    position = f"({builder.input('transaction', 'text')}::xid8, {builder.input('id', 'bigint')})"
    return " UNION ALL ".join(
        f"SELECT * FROM public.sys_change WHERE table_key = {literal(key)} AND {IS_SETTLED} "
        f"AND (transaction, id) > {position}"
        for key in logged_values.family_keys(view.catalogue, table)
    )


def is_visible_sql(view: CallerView, table: Table, change: str) -> str:
    """A cleared reference is visible to callers who can read its column in every record of that table."""
    cases = ""
    for member in (view.catalogue.tables[name] for name in table.family):
        columns = logged_values.readable_columns(view, member).items()
        keys = ", ".join([literal(key) for key, column in columns if column.column_type.has_target])
        cases += f" WHEN {literal(logged_values.table_key(member))} THEN ARRAY[{keys}]::text[]"
    return f"({change}.operation <> 'clear' OR {change}.old_values ?| CASE {change}.table_key{cases} END)"


def removed_sql(builder: StatementBuilder, view: CallerView, table: Table) -> tuple[str, str]:
    """When to return an unreadable record as removed, for each table of the family, and the joins this needs."""
    sys_id = view.column(table, "sys_id")
    if sys_id is None or sys_id[1] != ALWAYS:
        return "FALSE", ""
    cases, joins = "", ""
    for name in table.family:
        member = view.catalogue.tables[name]
        condition, join = _became_unreadable_sql(builder, view, member, "c")
        cases += f" WHEN {literal(logged_values.table_key(member))} THEN {condition}"
        joins += join
    return f"CASE c.table_key{cases} ELSE FALSE END", joins


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


def _became_unreadable_sql(builder: StatementBuilder, view: CallerView, table: Table, change: str) -> tuple[str, str]:
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


def _same_record_sql(alias: str, other: str) -> str:
    """SQL for whether two log rows belong to the same record. Imported ids are unique only within their table."""
    return f"{alias}.record_id = {other}.record_id AND {alias}.table_key = {other}.table_key"


def _image_sql(stored: TableAlias, column: Column, change: str, comparison: str) -> str:
    """SQL for the JSON object with a past value of the column: the old value in the next change that mentions it, or
    the current value if there is no such change."""
    if column.name in STAMP_COLUMNS:
        raise UnknownValue
    key = literal(logged_values.value_key(stored.table, column))
    mentions = f"(h.operation = 'delete' OR h.old_values ? {key} OR h.new_values ? {key})"
    later = f"{_same_record_sql('h', change)} AND h.id {comparison} {change}.id AND {mentions}"
    logged = f"SELECT h.old_values FROM public.sys_change h WHERE {later} ORDER BY h.id LIMIT 1"
    if stored.table.is_system and not column.is_custom:
        current = f"jsonb_build_object({key}, {stored.database_column(column, column.database_name)})"
    else:
        current = change_rows.values_sql([column], stored.database_column)
    return f"coalesce(({logged}), {current})"

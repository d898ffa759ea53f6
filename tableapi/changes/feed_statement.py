"""Compiles the statement of the change feed. Pure."""

from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import Table
from tableapi.query.expressions import ALWAYS
from tableapi.query.read_plan import ReadPlan
from tableapi.sql import select
from tableapi.sql.output_fields import OutputStyle
from tableapi.sql.select import FromClause, Statement
from tableapi.sql.statement_builder import StatementBuilder, literal

from . import logged_values, past_record

# A restored database differs in its oid or, in a new cluster, in the identifier of the cluster.
DATABASE = (
    "(SELECT system_identifier # (oid::bigint << 32) FROM pg_control_system(), pg_database "
    "WHERE datname = current_database())"
)
# The end of the JSON of a removed record.
REMOVED_END = b'","removed":true}'
# A transaction that is still running may write a row with a lower number, which the next page would miss.
IS_SETTLED = "transaction < pg_snapshot_xmin(pg_current_snapshot())"


def feed_statement(view: CallerView, plan: ReadPlan, style: OutputStyle, limit: int) -> Statement:
    """Selects the visible changes after a position: catalogue version, database, transaction, id, JSON."""
    builder = StatementBuilder()
    from_clause = FromClause(builder, plan)
    record = from_clause.alias
    body = select.record_json_sql(builder, style, plan.fields, from_clause)
    readable = [f"{record.sys_id()} = c.record_id", *from_clause.readable_conditions(plan.records)]
    removed, removed_joins = _removed_sql(builder, view, plan.table)
    # Only the last change of each record, which is returned as it is now.
    later = f"{past_record.same_record_sql('later', 'c')} AND later.id > c.id"
    later = f"SELECT FROM public.sys_change later WHERE {later} AND {_is_visible_sql(view, plan.table, 'later')}"
    is_last = f"{_is_visible_sql(view, plan.table, 'c')} AND NOT EXISTS ({later})"
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


def _is_visible_sql(view: CallerView, table: Table, change: str) -> str:
    """A cleared reference is visible to callers who can read its column in every record of that table."""
    cases = ""
    for member in (view.catalogue.tables[name] for name in table.family):
        columns = logged_values.readable_columns(view, member).items()
        keys = ", ".join([literal(key) for key, column in columns if column.column_type.has_target])
        cases += f" WHEN {literal(logged_values.table_key(member))} THEN ARRAY[{keys}]::text[]"
    return f"({change}.operation <> 'clear' OR {change}.old_values ?| CASE {change}.table_key{cases} END)"


def _removed_sql(builder: StatementBuilder, view: CallerView, table: Table) -> tuple[str, str]:
    """When to return an unreadable record as removed, for each table of the family, and the joins this needs."""
    sys_id = view.column(table, "sys_id")
    if sys_id is None or sys_id[1] != ALWAYS:
        return "FALSE", ""
    cases, joins = "", ""
    for name in table.family:
        member = view.catalogue.tables[name]
        condition, join = past_record.became_unreadable_sql(builder, view, member, "c")
        cases += f" WHEN {literal(logged_values.table_key(member))} THEN {condition}"
        joins += join
    return f"CASE c.table_key{cases} ELSE FALSE END", joins

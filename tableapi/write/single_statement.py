"""Creates or updates a record, logs the change and reads the record, in one statement that is its own transaction.

This is possible if the rules need no other records, and no column needs more than a comparison. The statement checks
the catalogue version, the rules on the record before and after the write, that the caller can read the referenced
records, and that an update changes something. If it writes nothing, `create` or `update` repeats the write in a
transaction and reports the error.
"""

import operator
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from django.db import IntegrityError, connection, transaction

from system.errors import BadRequest, InvalidInput
from system.records import acting_user
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.column_type import StorageFormat
from tableapi.catalogue.definitions import CREATE, READ, WRITE, Column, Table
from tableapi.database import statement_runner
from tableapi.query.expressions import Decision
from tableapi.read import pipeline
from tableapi.sql import change_rows, select
from tableapi.sql.select import Statement
from tableapi.sql.statement_builder import StatementBuilder, TableAlias, literal, quote, table_identifier

from . import designed_records, payload, permission_queries, set_on_change
from .write_request import WriteRequest, WriteResult

Values = Mapping[Column, Any]
Columns = tuple[Column, ...]
# The SQL of the values to write.
NewValues = Mapping[Column, str]
NO_STATEMENT = "no such statement"


def create(change: WriteRequest, values: Values, sent_columns: Iterable[Column]) -> WriteResult | None:
    """Create the record; None if nothing was written."""
    if change.is_idempotent or change.is_import or change.table.deferred_create:
        return None
    if not supports_single_statement(change.table) or not all(map(has_plain_storage, values)):
        return None
    return _run(change, CREATE, values, sent_columns)


def update(change: WriteRequest, sys_id: str) -> WriteResult | None:
    """Update the record for PATCH; None if nothing was written."""
    needs_transaction = change.is_idempotent or change.uses_display_values or change.is_current is not None
    if needs_transaction or not pipeline.RECORD_ID.fullmatch(sys_id):
        return None
    columns = tuple(column for name in change.body if (column := change.table.columns.get(name)) is not None)
    if len(columns) != len(change.body) or not columns or not supports_single_statement(change.table):
        return None
    if not all(has_plain_storage(column) and _is_compared_by_value(change.table, column) for column in columns):
        return None
    try:
        values = {column: payload.parse_value(change, column, change.body[column.name]) for column in columns}
    except (InvalidInput, BadRequest):
        return None
    # NULL and empty text count as equal, and mandatory columns must not be empty.
    is_empty = any(value is None or value == "" for value in values.values())
    return None if is_empty else _run(change, WRITE, values, values, sys_id=sys_id)


def supports_single_statement(table: Table) -> bool:
    """Whether each record is one row, and the database alone checks it."""
    return not table.is_system and len(table.family) == len(table.lineage) == 1


def sorted_by_name(columns: Iterable[Column]) -> Columns:
    """Sort columns, so that any order in the body has the same statement."""
    return tuple(sorted(columns, key=lambda column: column.name))


def has_plain_storage(column: Column) -> bool:
    return column.column_type.storage is StorageFormat.PLAIN and not column.column_type.is_list


def _is_compared_by_value(table: Table, column: Column) -> bool:
    if table.is_server_managed(column) or column.converted_from_text:
        return False
    return column.column_type.is_same is operator.eq


def _run(
    change: WriteRequest, operation: str, values: Values, sent_columns: Iterable[Column], **inputs: str
) -> WriteResult | None:
    context, table = change.context, change.table
    columns = sorted_by_name(values)
    reference_columns = tuple(column for column in columns if column.column_type.is_reference and values[column])
    groups = (columns, reference_columns, sorted_by_name(sent_columns))
    plan, _ = pipeline.compile_record(context, table, change.output)
    names = tuple(tuple(column.name for column in group) for group in groups)
    statement: Statement | str = context.view.cached(
        ("single statement", operation, table.name, change.output, pipeline.style_of(change.output), names),
        lambda: _statement(change, operation, *groups) or NO_STATEMENT,
    )
    if isinstance(statement, str):
        return None
    bindings: dict[str, Any] = {"version": context.view.catalogue.version, "user": acting_user.current(), **inputs}
    bindings |= {f"v{number}": values[column] for number, column in enumerate(columns)}
    bindings |= {f"ids{number}": [values[column]] for number, column in enumerate(reference_columns)}
    if operation == WRITE:
        bindings |= set_on_change.inputs_of(set_on_change.rules_of_change(table, columns), context.moment)
    try:
        # Outside a transaction, the statement is a transaction by itself.
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            rows = statement_runner.fetch_bytes(statement, context.inputs(**bindings))
    except IntegrityError:
        return None
    if not rows:
        return None
    ((sys_id, version, body),) = rows
    assert sys_id is not None and body is not None
    return WriteResult(sys_id.decode(), pipeline.record_result(version, body, plan))


def _statement(
    change: WriteRequest, operation: str, columns: Columns, reference_columns: Columns, sent_columns: Columns
) -> Statement | None:
    """Return None if rules or the response need other records, which would be read as before the write."""
    builder = StatementBuilder()
    conditions = write_conditions(builder, change.context.view, reference_columns)
    if conditions is None:
        return None
    new = {column: builder.input(f"v{number}", column.column_type.sql_type) for number, column in enumerate(columns)}
    write = insert_parts if operation == CREATE else _update_parts
    parts = write(builder, change, new, sent_columns, conditions)
    plan, _ = pipeline.compile_record(change.context, change.table, change.output)
    select_sql = select.written_record_sql(builder, plan, pipeline.style_of(change.output))
    if parts is None or select_sql is None:
        return None
    return Statement(f"WITH {parts} {select_sql}", builder.parameters)


def write_conditions(builder: StatementBuilder, view: CallerView, references: Iterable[Column]) -> list[str] | None:
    """Require that the catalogue is current and that the caller can read all referenced records, whose distinct ids are
    the inputs `ids…`. None if they cannot read a referenced table."""
    conditions = [f"c.version = {builder.input('version', 'bigint')}"]
    for number, column in enumerate(references):
        target = view.catalogue.tables.get(column.reference or "")
        if target is None or not view.can_read(target):
            return None
        ids = f"ids{number}"
        count = permission_queries.count_sql(builder, view.permissions, target, ids)
        conditions.append(f"{count} = cardinality({builder.input(ids, 'varchar[]')})")
    return conditions


def insert_parts(
    builder: StatementBuilder,
    change: WriteRequest,
    new: NewValues,
    sent_columns: Columns,
    conditions: list[str],
    rows: str = "",
) -> str | None:
    """Return the CTEs `written` and `change`. `rows` names another CTE whose columns `new` refers to, if any."""
    table, permissions = change.table, change.context.view.permissions
    user = builder.input("user", "varchar")
    row = {column.database_name: value for column, value in new.items()}
    row |= {"sys_created_by": user, "sys_updated_by": user, "sys_db_table_id": literal(table.id)}
    columns, values = list(row), list(row.values())
    number = designed_records.add_number_columns(table, columns, values) if designed_records.number_owner(table) else ""
    generated_columns = columns[len(row) :]  # by the database
    empty = {
        column.database_name: f"NULL::{column.column_type.sql_type}"
        for column in table.columns.values()
        if not column.is_sys and column.database_name not in generated_columns
    }
    decisions = [permissions.record_decision(READ, table), *permissions.decisions(CREATE, table, sent_columns)]
    rules = permission_queries.rule_conditions(builder, decisions, permission_queries.WrittenRecord(table, empty | row))
    if rules is None:
        return None
    where = " AND ".join([*conditions, *rules])
    insert = _insert_sql(table, columns, values, number, where, rows)
    logged_columns = dict.fromkeys([*new, *designed_records.generated_columns(table)])
    change_insert = change_rows.change_sql(
        "create",
        record="written",
        user="written.sys_created_by",
        new=change_rows.values_sql(logged_columns, lambda _, name: f"written.{quote(name)}"),
        source="written",
    )
    return f"written AS ({insert}), change AS ({change_insert})"


def _insert_sql(table: Table, columns: list[str], values: list[str], number: str, where: str, rows: str) -> str:
    """`number` is the SQL that takes the next record number as `n`."""
    if rows:
        columns, values = [*columns, "sys_id"], [*values, f"{rows}.sys_id"]
        source = f"SELECT {', '.join(filter(None, (f'{rows}.*', number)))} FROM public.tableapi_state c, {rows}"
    else:
        source = f"SELECT {number} FROM public.tableapi_state c"
    return (
        f"INSERT INTO {table_identifier(table)} ({', '.join(map(quote, columns))}) "
        f"SELECT {', '.join(values)} FROM ({source} WHERE {where}) {rows or 's'} RETURNING *"
    )


def _update_parts(
    builder: StatementBuilder, change: WriteRequest, new: NewValues, sent_columns: Columns, conditions: list[str]
) -> str | None:
    table, permissions = change.table, change.context.view.permissions
    record = TableAlias(builder, table)
    (alias,) = record.row_aliases()
    set_columns = {
        rule.column: set_on_change.value_sql(builder, number, rule, record.column, new[rule.watched])
        for number, rule in enumerate(set_on_change.rules_of_change(table, new))
    }
    row = {column.database_name: value for column, value in {**new, **set_columns}.items()}
    row["sys_updated_by"] = builder.input("user", "varchar")
    current = {
        column.database_name: record.column(column)
        for column in table.columns.values()
        if column.name not in ("sys_version", "sys_updated_at")
    }
    decisions = [permissions.record_decision(READ, table), *permissions.decisions(WRITE, table, sent_columns)]
    readable_decisions = [permissions.column_decision(READ, table, column) for column in sent_columns]
    before = _before_sql(builder, [*decisions, *readable_decisions], table, new, conditions, set_columns)
    after_write = permission_queries.rule_conditions(
        builder, decisions, permission_queries.WrittenRecord(table, current | row)
    )
    if before is None or after_write is None:
        return None
    assignments = [
        *(f"{quote(name)} = {value}" for name, value in row.items()),
        f"sys_version = {record.column(table.columns['sys_version'])} + 1",
        "sys_updated_at = clock_timestamp()",
    ]
    where = " AND ".join([f"{record.sys_id()} = before.sys_id", *after_write])
    update = f"UPDATE {record.from_sql()} SET {', '.join(assignments)} FROM before WHERE {where} RETURNING {alias}.*"
    change_insert = change_rows.change_sql(
        "update",
        record="written",
        user="written.sys_updated_by",
        old=_logged_sql("before", [*new, *set_columns]),
        new=_logged_sql("written", [*new, *set_columns]),
        source="written, before",
    )
    return f"before AS ({before}), written AS ({update}), change AS ({change_insert})"


def _before_sql(
    builder: StatementBuilder,
    decisions: list[Decision],
    table: Table,
    new: NewValues,
    conditions: list[str],
    set_columns: Iterable[Column],
) -> str | None:
    """Select the values that the update replaces. The record is locked only if the caller may write it, because waiting
    for the lock would reveal that it exists."""
    before = TableAlias(builder, table)
    rule_conditions = permission_queries.rule_conditions(builder, decisions, before)
    if rule_conditions is None:
        return None
    differs = " OR ".join(f"{before.column(column)} IS DISTINCT FROM {value}" for column, value in new.items())
    where = [*conditions, f"{before.sys_id()} = {builder.input('sys_id', 'varchar')}", f"({differs})", *rule_conditions]
    values = ", ".join([before.sys_id(), *map(before.column, [*new, *set_columns])])
    rows = ", ".join(before.row_aliases())
    source = f"public.tableapi_state c, {before.from_sql()}"
    return f"SELECT {values} FROM {source} WHERE {' AND '.join(where)} FOR NO KEY UPDATE OF {rows}"


def _logged_sql(row: str, columns: Iterable[Column]) -> str:
    """Return the values of changed columns before or after the update."""

    def sql_of(column: Column, name: str) -> str:
        return f"CASE WHEN before.{quote(name)} IS DISTINCT FROM written.{quote(name)} THEN {row}.{quote(name)} END"

    return change_rows.values_sql(columns, sql_of)

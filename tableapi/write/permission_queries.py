"""Compiles statements that lock records and check what the caller may do with them. Pure."""

from collections.abc import Mapping, Sequence

from system.encoded_query import ComparisonKind
from system.encoded_query.sql import FOLD_ARRAY_SQL
from tableapi.access.permissions import Permissions
from tableapi.catalogue.definitions import DELETE, READ, Column, Table
from tableapi.query.expressions import ALWAYS, NEVER, Decision
from tableapi.sql import predicates
from tableapi.sql.operators import comparison_key
from tableapi.sql.select import Statement, versioned_statement
from tableapi.sql.statement_builder import StatementBuilder, TableAlias


def _condition_sql(builder: StatementBuilder, decision: Decision, alias: TableAlias) -> str:
    condition = predicates.decision_sql(builder, decision, alias)
    return "TRUE" if condition is None else f"(({condition}) IS TRUE)"


def locking_statement(
    permissions: Permissions, table: Table, operation: str, columns: tuple[Column, ...]
) -> tuple[Statement, list[bool | None]]:
    """Lock the record and return catalogue version, id, its version if the caller can read it, whether the operation is
    allowed, the value of each column, and the results of conditions on columns. The list tells for each column whether
    it is readable, and whether the operation is allowed; None is the result of the next condition."""
    builder = StatementBuilder()
    alias = TableAlias(builder, table)
    version_column = table.columns["sys_version"]
    version_guard = permissions.column_decision(READ, table, version_column)
    version = predicates.guarded_value(builder, version_guard, alias, alias.column(version_column))
    outputs = [alias.sys_id(), version, _condition_sql(builder, permissions.record_decision(operation, table), alias)]
    outputs += [_stored_sql(alias, column) for column in columns]
    decisions: list[Decision] = []
    for column in columns:
        # A value that counts as unchanged must not reveal whether a password is set.
        decisions.append(permissions.column_decision(READ, table, column) if column.is_readable else NEVER)
        decisions.append(permissions.column_decision(operation, table, column))
    known_results = [decision == ALWAYS if decision in (ALWAYS, NEVER) else None for decision in decisions]
    conditional_decisions = [decision for decision in decisions if decision not in (ALWAYS, NEVER)]
    conditions = [_condition_sql(builder, decision, alias) for decision in conditional_decisions]
    # One array for all, because a query has at most 1,664 outputs and a table nearly as many columns.
    outputs.append(f"ARRAY[{', '.join(conditions)}]::boolean[]")
    where = [f"{alias.sys_id()} = {builder.input('sys_id', 'varchar')}"]
    where += predicates.decision_conditions(builder, permissions.record_decision(READ, table), alias)
    # A deletion also blocks new references, which would otherwise be cleared even in mandatory columns.
    lock = "UPDATE" if operation == DELETE else "NO KEY UPDATE"
    # Every row of the record, because PostgreSQL re-reads only locked rows after waiting.
    rows = ", ".join(alias.row_aliases())
    output_list = ", ".join(f"{output} AS o{number}" for number, output in enumerate(outputs))
    record = f"SELECT {output_list} FROM {alias.from_sql()} WHERE {' AND '.join(where)} FOR {lock} OF {rows}"
    return versioned_statement(builder, "r.*", record), known_results


def _stored_sql(alias: TableAlias, column: Column) -> str:
    """Return the stored value; for converted text, an array of it and its plain text."""
    stored_value = alias.column(column, is_plain=False)
    if not column.converted_from_text:
        return stored_value
    return f"CASE WHEN {stored_value} IS NOT NULL THEN ARRAY[{stored_value}, {alias.column(column)}] END"


def decisions_statement(table: Table, decisions: Sequence[Decision], *, has_many: bool = False) -> Statement:
    """Return catalogue version, id, and which of the decisions hold, for one record or for many, whether or not the
    caller can read them. Locks nothing, so the answer can be outdated when a write follows."""
    builder = StatementBuilder()
    alias = TableAlias(builder, table)
    results = ", ".join(_condition_sql(builder, decision, alias) for decision in decisions)
    ids = f"ANY ({builder.input('sys_ids', 'varchar[]')})" if has_many else builder.input("sys_id", "varchar")
    output_list = f"{alias.sys_id()} AS id, ARRAY[{results}]::boolean[] AS results"
    record = f"SELECT {output_list} FROM {alias.from_sql()} WHERE {alias.sys_id()} = {ids}"
    return versioned_statement(builder, "r.*", record)


def count_readable_statement(permissions: Permissions, targets: tuple[tuple[Table, bool], ...]) -> Statement:
    """Return the catalogue version and, for each table, the number of ids whose records the caller can read. Each
    target also tells whether list columns refer to the table."""
    builder = StatementBuilder()
    counts = [
        count_sql(builder, permissions, target, f"ids{number}", is_for_list)
        for number, (target, is_for_list) in enumerate(targets)
    ]
    version = "(SELECT version FROM public.tableapi_state)"
    return Statement(f"SELECT {', '.join([version, *counts])}", builder.parameters)


def count_sql(
    builder: StatementBuilder, permissions: Permissions, target: Table, ids: str, is_for_list: bool = False
) -> str:
    """Count the records with these ids that the caller can read."""
    alias = TableAlias(builder, target)
    where = [f"{alias.sys_id()} = ANY ({builder.input(ids, 'varchar[]')})"]
    where += predicates.decision_conditions(builder, permissions.record_decision(READ, target), alias)
    # Lists have no foreign key, so the records are locked until the end of the transaction.
    lock = f" FOR KEY SHARE OF {', '.join(alias.row_aliases())}" if is_for_list else ""
    records = f"SELECT 1 FROM {alias.from_sql()} WHERE {' AND '.join(where)}{lock}"
    return f"(SELECT count(*) FROM ({records}) c)"


def display_value_statement(permissions: Permissions, target: Table, display_column: str, guard: Decision) -> Statement:
    """Return display values, each with the first and last id of the readable records that have it."""
    builder = StatementBuilder()
    alias = TableAlias(builder, target)
    column = target.columns[display_column]
    value = predicates.guarded_value(builder, guard, alias, alias.column(column))
    names = builder.input("names", "text[]")
    where = [f"({value})::text = ANY ({names})"]
    if column.compare_as is ComparisonKind.TEXT:
        # The index is on the folded text.
        where.append(f"{comparison_key(ComparisonKind.TEXT, value)} = ANY ({FOLD_ARRAY_SQL.format(names)})")
    where += predicates.decision_conditions(builder, permissions.record_decision(READ, target), alias)
    ids = f"min({alias.sys_id()}), max({alias.sys_id()})"
    sql = f"SELECT ({value})::text, {ids} FROM {alias.from_sql()} WHERE {' AND '.join(where)} GROUP BY 1"
    return Statement(sql, builder.parameters)


class UnknownBeforeWrite(Exception):
    """A condition needs a value that only the database knows."""


class WrittenRecord(TableAlias):
    """The record as the statement will write it, with the SQL of the values that are known before."""

    def __init__(self, table: Table, values: Mapping[str, str]) -> None:
        self.table = table
        self.values = values

    def sys_id(self) -> str:
        return self.column(self.table.columns["sys_id"])

    def column(self, column: Column, *, is_plain: bool = True) -> str:
        if column.database_name not in self.values:
            raise UnknownBeforeWrite
        return self.values[column.database_name]


def rule_conditions(builder: StatementBuilder, decisions: list[Decision], record: TableAlias) -> list[str] | None:
    """Return the conditions of the decisions; None if they can never hold or need more than this record."""
    tables = builder.table_count
    conditional_decisions = [decision for decision in dict.fromkeys(decisions) if decision != ALWAYS]
    try:
        conditions = [predicates.decision_sql(builder, decision, record) for decision in conditional_decisions]
    except UnknownBeforeWrite:
        return None
    if NEVER in conditional_decisions or builder.table_count > tables:
        return None
    return [condition for condition in conditions if condition is not None]

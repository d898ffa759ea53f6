"""Compiles the search for records of many tables by the beginning of their number or display value. Pure."""

from collections.abc import Sequence

from system.encoded_query.sql import FOLD_SQL
from tableapi.catalogue.definitions import Column, Table
from tableapi.query.expressions import Decision

from . import predicates
from .operators import comparison_key
from .select import Statement, versioned_statement
from .statement_builder import StatementBuilder, TableAlias, literal

# The highest character, so that the end of a range follows every text that starts with its beginning.
LAST_CHARACTER_SQL = "chr(1114111)"


def search_statement(targets: Sequence[tuple[Table, Column, Decision]], limit: int) -> Statement:
    """Return catalogue version, table, id and text of the first records of each target: a table, its column to search,
    and the records that the caller can read. The texts are compared as a range, so that each search reads an index."""
    builder = StatementBuilder()
    start = FOLD_SQL.format(builder.input("start", "text"))
    selects = []
    for table, column, records in targets:
        alias = TableAlias(builder, table)
        value = alias.column(column)
        key = comparison_key(column.compare_as, value)
        where = [f"{key} >= {start}", f"{key} < {start} || {LAST_CHARACTER_SQL}"]
        where += predicates.decision_conditions(builder, records, alias)
        names = f"{literal(table.name)} AS table_name, {alias.sys_id()} AS sys_id"
        selects.append(
            f"(SELECT {names}, {value} AS text FROM {alias.from_sql()} WHERE {' AND '.join(where)} "
            f"ORDER BY {key}, {alias.sys_id()} LIMIT {limit})"
        )
    return versioned_statement(builder, "r.table_name, r.sys_id, r.text", " UNION ALL ".join(selects))

"""References to records: which exist, and what the deletion of one does. Mandatory columns prevent it; others lose
the id."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from system.database_statements import run_named_sql
from system.encoded_query import QueryError
from system.errors import MAX_ERRORS, BadRequest, Conflict
from tableapi.catalogue.definitions import Catalogue, Column, Table
from tableapi.database import statement_runner
from tableapi.query import read_plan
from tableapi.query.parsed_query import parse_query_text
from tableapi.read.context import ReadContext
from tableapi.sql import select
from tableapi.sql.statement_builder import custom_identifier, quote, table_identifier


class StillReferenced(Conflict):
    """Mandatory columns refer to the record to delete; `locations` has the table and name of each, for every caller."""

    code = "referenced"
    message = "Other records have mandatory references to this record."

    def __init__(self, locations: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__()
        self.locations = tuple(dict.fromkeys(locations))


def clear_references(catalogue: Catalogue, table: Table, sys_id: str) -> int:
    """Clear the references to a record before it is deleted. Returns their number."""
    # The models of the product's own tables have their own rules.
    columns = [
        column
        for column in catalogue.referring_columns(table)
        if column.is_custom or not catalogue.tables[column.owner].is_system
    ]
    blocking = [column for column in columns if column.mandatory and _blocks_deletion(catalogue, table, column, sys_id)]
    if blocking:
        raise StillReferenced((column.owner, column.name) for column in blocking)
    count = _count_references(catalogue, table, columns, sys_id)
    emptied = []
    for column in columns:
        shortened, is_emptied = _remove_from_lists(catalogue, column, sys_id)
        count += shortened
        emptied += [column] * is_emptied
    if emptied:  # a concurrent write removed the other items of a list
        raise StillReferenced((column.owner, column.name) for column in emptied)
    return count


def _storage(catalogue: Catalogue, column: Column) -> str:
    return custom_identifier(column.owner) if column.is_custom else table_identifier(catalogue.tables[column.owner])


def _count_references(catalogue: Catalogue, table: Table, columns: Iterable[Column], sys_id: str) -> int:
    """How many foreign keys PostgreSQL will empty."""
    counts = [
        f"(SELECT count(*) FROM {_storage(catalogue, column)} "
        f"WHERE {'sys_id <> %(id)s AND ' * (column.owner in table.lineage)}{quote(column.database_name)} = %(id)s)"
        for column in columns
        if not column.column_type.is_list
    ]
    if not counts:
        return 0
    ((count,),) = run_named_sql(f"SELECT {' + '.join(counts)}", {"id": sys_id}).rows()
    return int(count)


def _blocks_deletion(catalogue: Catalogue, table: Table, column: Column, sys_id: str) -> bool:
    name = quote(column.database_name)
    # A record that only refers to itself can be deleted.
    others = "sys_id <> %(id)s AND " if column.owner in table.lineage else ""
    refers = f"{name} = ARRAY[%(id)s]::varchar[]" if column.column_type.is_list else f"{name} = %(id)s"
    sql = f"SELECT EXISTS (SELECT FROM {_storage(catalogue, column)} WHERE {others}{refers})"
    ((is_referenced,),) = run_named_sql(sql, {"id": sys_id}).rows()
    return bool(is_referenced)


def _remove_from_lists(catalogue: Catalogue, column: Column, sys_id: str) -> tuple[int, bool]:
    """Remove the id from a list column; return from how many lists, and whether a mandatory one became empty.

    Plain references become NULL by their foreign keys. The version of a record that loses a reference does not change:
    it would reveal the reference to those who can read the record but not this column."""
    if not column.column_type.is_list:
        return 0, False
    name = quote(column.database_name)
    rows = run_named_sql(
        f"UPDATE {_storage(catalogue, column)} SET {name} = array_remove({name}, %(id)s::varchar) "
        f"WHERE {name} && ARRAY[%(id)s]::varchar[] RETURNING sys_id <> %(id)s AND cardinality({name}) = 0",
        {"id": sys_id},
    ).rows()
    return len(rows), column.mandatory and any(is_empty for (is_empty,) in rows)


def error_for_caller(context: ReadContext, error: StillReferenced, sys_id: str) -> StillReferenced:
    """The error for this caller: it names only columns where the caller can find such a record, because a name alone
    would reveal records that they cannot read."""
    locations = (
        f"{table}.{column}" for table, column in error.locations if _is_visible(context, table, column, sys_id)
    )
    visible = StillReferenced()
    if names := list(islice(locations, MAX_ERRORS)):
        visible.message = f"Other records have mandatory references to this record: {', '.join(names)}."
    return visible


def _is_visible(context: ReadContext, table_name: str, column: str, sys_id: str) -> bool:
    """Whether the caller could find such a record with a query of their own."""
    view = context.view
    table = view.table(table_name)
    if table is None or not view.can_read(table):
        return False
    parsed = parse_query_text(f"{column}={sys_id}^sys_id!={sys_id}")
    try:
        plan = read_plan.plan_read(view, table, query=parsed.shape.query, fields=(column,))
    except (BadRequest, QueryError):
        return False  # the caller cannot know the column
    ((count,),) = statement_runner.fetch(select.count_statement(plan, 1), context.inputs(parsed.conditions))
    return bool(count)


def existing_references(catalogue: Catalogue, column: Column, value: Any) -> Any:
    """What is left of a reference, or of a list of them, without the records that do not exist."""
    target = catalogue.tables.get(column.reference or "")
    if target is None:
        return None
    if not column.column_type.is_list:
        return value if value in existing_ids(target, [value]) else None
    existing = existing_ids(target, value)
    return [item for item in value if item in existing]


def existing_ids(table: Table, ids: list[str]) -> set[str]:
    """Locked, so that they stay until the reference to them is written."""
    statement = f"SELECT sys_id FROM {table_identifier(table)} WHERE sys_id = ANY (%(ids)s::varchar[]) FOR KEY SHARE"
    return {sys_id for (sys_id,) in run_named_sql(statement, {"ids": ids}).rows()}

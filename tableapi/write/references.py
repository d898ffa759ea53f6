"""Checks references, and clears them when a record is deleted. References in mandatory columns prevent the deletion."""

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
    """Mandatory columns refer to the record to delete; `locations` has the table and name of each, even if hidden."""

    code = "referenced"
    message = "Other records have mandatory references to this record."

    def __init__(self, locations: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__()
        self.locations = tuple(dict.fromkeys(locations))


def clear_references(catalogue: Catalogue, table: Table, sys_id: str) -> int:
    """Clear the references to a record before it is deleted. Returns their number."""
    # Models of product tables handle their own references.
    columns = [
        column
        for column in catalogue.referring_columns(table)
        if column.is_custom or not catalogue.tables[column.owner].is_system
    ]
    blocking = [column for column in columns if column.mandatory and _blocks_deletion(catalogue, table, column, sys_id)]
    if blocking:
        raise StillReferenced((column.owner, column.name) for column in blocking)
    count = _count_references(catalogue, table, columns, sys_id)
    emptied_columns = []
    for column in columns:
        list_count, is_emptied = _remove_from_lists(catalogue, column, sys_id)
        count += list_count
        emptied_columns += [column] * is_emptied
    if emptied_columns:  # a concurrent write removed the other items of a list
        raise StillReferenced((column.owner, column.name) for column in emptied_columns)
    return count


def _storage(catalogue: Catalogue, column: Column) -> str:
    return custom_identifier(column.owner) if column.is_custom else table_identifier(catalogue.tables[column.owner])


def _count_references(catalogue: Catalogue, table: Table, columns: Iterable[Column], sys_id: str) -> int:
    """Count the foreign keys that PostgreSQL will set to NULL."""
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
    other_records = "sys_id <> %(id)s AND " if column.owner in table.lineage else ""
    refers = f"{name} = ARRAY[%(id)s]::varchar[]" if column.column_type.is_list else f"{name} = %(id)s"
    sql = f"SELECT EXISTS (SELECT FROM {_storage(catalogue, column)} WHERE {other_records}{refers})"
    ((is_referenced,),) = run_named_sql(sql, {"id": sys_id}).rows()
    return bool(is_referenced)


def _remove_from_lists(catalogue: Catalogue, column: Column, sys_id: str) -> tuple[int, bool]:
    """Remove the id from a list column. Returns the number of changed lists, and whether a mandatory one became empty.

    Foreign keys clear plain references. The version of a record that loses a reference does not change, because that
    would reveal the reference to callers who can read the record but not this column."""
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
    """Return the error for this caller. It names only columns where they can find a reference, because other names
    would reveal records that they cannot read."""
    locations = (
        f"{table}.{column}" for table, column in error.locations if _is_visible(context, table, column, sys_id)
    )
    visible_error = StillReferenced()
    if names := list(islice(locations, MAX_ERRORS)):
        visible_error.message = f"Other records reference this record in mandatory columns: {', '.join(names)}."
    return visible_error


def _is_visible(context: ReadContext, table_name: str, column: str, sys_id: str) -> bool:
    """Whether the caller could find a referring record with a query."""
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
    """Return a reference, or a list of them, without the ids of missing records."""
    target = catalogue.tables.get(column.reference or "")
    if target is None:
        return None
    if not column.column_type.is_list:
        return value if value in existing_ids(target, [value]) else None
    ids = existing_ids(target, value)
    return [item for item in value if item in ids]


def existing_ids(table: Table, ids: list[str]) -> set[str]:
    """Return the ids of existing records, locked so that they stay until the reference to them is written."""
    statement = f"SELECT sys_id FROM {table_identifier(table)} WHERE sys_id = ANY (%(ids)s::varchar[]) FOR KEY SHARE"
    return {sys_id for (sys_id,) in run_named_sql(statement, {"ids": ids}).rows()}

"""Checks references, and clears them when a record is deleted. References in mandatory columns prevent the deletion."""

from collections.abc import Collection, Container, Iterable, Mapping
from itertools import islice
from typing import Any

from system.database_statements import run_named_sql
from system.encoded_query import QueryError
from system.errors import MAX_ERRORS, BadRequest, Conflict
from system.records import acting_user
from tableapi.catalogue.definitions import Catalogue, Column, Table
from tableapi.changes.logged_values import value_key
from tableapi.database import statement_runner
from tableapi.query import read_plan
from tableapi.query.parsed_query import parse_query_text
from tableapi.read.context import ReadContext
from tableapi.sql import change_rows, select
from tableapi.sql.statement_builder import custom_identifier, literal, quote, table_identifier


class StillReferenced(Conflict):
    """Mandatory columns refer to the record to delete; `locations` has the table and name of each, even if hidden."""

    code = "referenced"
    message = "Other records have mandatory references to this record."

    def __init__(self, locations: Iterable[tuple[str, str]] = ()) -> None:
        super().__init__()
        self.locations = tuple(dict.fromkeys(locations))


def clear_references(
    catalogue: Catalogue,
    table: Table,
    sys_id: str,
    deleted_ids: Collection[str] = (),
    model_columns: Container[tuple[str, str | None]] = (),
) -> int:
    """Clear and log the references to a record before it is deleted. Returns their number. References in the records
    `deleted_ids` stay, because these are deleted too. `model_columns` are the model columns that Django would clear
    without a log; other model columns are skipped. Runs the same statements, whether there are references or not."""
    ids = {"id": sys_id, "deleted": [sys_id, *deleted_ids]}
    columns = []
    for column in catalogue.referring_columns(table):
        is_of_model = catalogue.tables[column.owner].is_system and not column.is_custom
        if not is_of_model or (column.owner, column.database_name) in model_columns:
            columns.append(column)
    mandatory = [column for column in columns if column.mandatory and not column.column_type.is_list]
    rows = {column: _referring_rows(catalogue, table, column) for column in columns}
    blocking = [column for column in mandatory if run_named_sql(f"SELECT 1 FROM {rows[column]} LIMIT 1", ids).rows()]
    count = 0
    for column in () if blocking else columns:
        if column not in mandatory:
            cleared_count, is_emptied = _clear(catalogue, column, rows[column], ids)
            count += cleared_count
            blocking += [column] * (column.mandatory and is_emptied)
    if blocking:
        raise StillReferenced((column.owner, column.name) for column in blocking)
    return count


def _storage(catalogue: Catalogue, column: Column) -> str:
    return custom_identifier(column.owner) if column.is_custom else table_identifier(catalogue.tables[column.owner])


def _referring_rows(catalogue: Catalogue, table: Table, column: Column) -> str:
    """The rows that refer to the record, except those of the deleted records. Ids are unique only within a family of
    tables."""
    operator = "&& ARRAY[%(id)s]::varchar[]" if column.column_type.is_list else "= %(id)s"
    others = " AND sys_id <> ALL (%(deleted)s::varchar[])" if column.owner in table.lineage else ""
    return f"{_storage(catalogue, column)} WHERE {quote(column.database_name)} {operator}{others}"


def _clear(catalogue: Catalogue, column: Column, rows: str, ids: Mapping[str, Any]) -> tuple[int, bool]:
    """Remove the id from a column in these rows. Returns their number, and whether a list became empty.

    The version of a record that loses a reference does not change, because that would reveal the reference to callers
    who can read the record but not this column. Likewise, the feed returns this change only to those who can."""
    name, owner = quote(column.database_name), catalogue.tables[column.owner]
    new = f"array_remove(t.{name}, %(id)s::varchar)" if column.column_type.is_list else "NULL"
    root = table_identifier(catalogue.tables[owner.lineage[-1]])
    table_key = literal(owner.name) if owner.is_system else "root.sys_db_table_id"
    key = literal(value_key(owner, column))
    record = f"SELECT root.sys_id, root.sys_version, {table_key} AS sys_db_table_id, cleared.old, cleared.new"
    change = change_rows.change_sql(
        "clear",
        record="r",
        user="%(user)s",
        old=f"jsonb_build_object({key}, r.old)",
        new=f"jsonb_strip_nulls(jsonb_build_object({key}, r.new))",
        source=f"({record} FROM cleared JOIN {root} root USING (sys_id)) r",
    )
    sql = (
        f"WITH stored AS (SELECT sys_id, {name} AS old FROM {rows} FOR NO KEY UPDATE), "
        f"cleared AS (UPDATE {_storage(catalogue, column)} t SET {name} = {new} FROM stored "
        f"WHERE t.sys_id = stored.sys_id RETURNING t.sys_id, stored.old, t.{name} AS new), logged AS ({change}) "
        "SELECT count(*), coalesce(bool_or(new = '{}'), FALSE) FROM cleared"
    )
    ((count, is_emptied),) = run_named_sql(sql, {**ids, "user": acting_user.current()}).rows()
    return int(count), bool(is_emptied)


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

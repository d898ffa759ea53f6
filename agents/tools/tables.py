"""Tools that show which tables and columns there are for the caller."""

from typing import Annotated, Any

from pydantic import Field

from agents.tools.registry import Agent, tool
from system.errors import InvalidParameter
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import CREATE, WRITE, Column, Table
from tableapi.database import catalogue_loader
from tableapi.openapi.hooks import allowed_methods
from tableapi.query.expressions import NEVER

TABLES_PER_PAGE = 50
MAX_HINTED_COLUMNS = 100
VERBS = {"get": "read", "post": "create", "patch": "update"}

TableName = Annotated[str, Field(description="The name of a table, from list_tables.")]


@tool()
def list_tables(
    agent: Agent, cursor: Annotated[str, Field(description="The next_cursor of the previous page.")] = ""
) -> dict[str, Any]:
    """Lists the tables that you can use, with what you may do with their records. Start here."""
    view = view_of(agent)
    tables = [table for table in view.catalogue.tables.values() if view.table(table.name)]
    names = [table.name for table in sorted(tables, key=lambda table: (table.is_system, table.name))]
    if cursor and cursor not in names:
        raise InvalidParameter("The cursor is not valid. Start again without it.", field="cursor")
    names = names[names.index(cursor) + 1 :] if cursor else names
    page = [view.catalogue.tables[name] for name in names[:TABLES_PER_PAGE]]
    verbs = {method: verb for method, verb in VERBS.items() if agent.may_write or method == "get"}
    entries = [
        {
            "name": table.name,
            "label": table.label,
            "you_may": [verbs[method] for method in allowed_methods(view, table) if method in verbs],
        }
        for table in page
    ]
    return {"tables": entries, "next_cursor": page[-1].name if len(names) > TABLES_PER_PAGE else None}


@tool()
def describe_table(agent: Agent, table: TableName) -> dict[str, Any]:
    """Describes the columns of a table as you see them: type, choices, the table that a reference points to, and
    whether you can set them. Call it before you query or write a table."""
    view = view_of(agent)
    opened_table = view.open_table(table)
    columns = [
        _column_entry(view, opened_table, column, agent.may_write) for column in visible_columns(view, opened_table)
    ]
    return {"name": opened_table.name, "label": opened_table.label, "columns": columns}


def view_of(agent: Agent) -> CallerView:
    return agent.caller.context(catalogue_loader.reload_if_changed()).view


def visible_columns(view: CallerView, table: Table) -> list[Column]:
    return [column for column in table.columns.values() if view.permissions.can_see_column(table, column)]


def _column_entry(view: CallerView, table: Table, column: Column, may_write: bool) -> dict[str, Any]:
    """Without empty values, because a table can have hundreds of columns."""
    entry = {
        "name": column.name,
        "label": column.label,
        "type": column.type,
        "references": column.reference if column.reference and view.table(column.reference) else None,
        "choices": dict(column.choices),
        "mandatory": column.mandatory,
        "max_length": column.max_length,
        "is_display_value": column is table.display_column,
        "can_set": [
            verb
            for verb, operation in (("create", CREATE), ("update", WRITE))
            if may_write
            and not table.is_server_managed(column)
            and view.permissions.column_decision(operation, table, column) != NEVER
        ],
    }
    return {name: value for name, value in entry.items() if value}


def columns_hint(agent: Agent, table_name: Any) -> str:
    """The columns of a table that the caller can see."""
    view = view_of(agent)
    table = view.table(table_name) if isinstance(table_name, str) else None
    if table is None:
        return ""
    names = [column.name for column in visible_columns(view, table)]
    return f"Columns of {table.name}: {', '.join(names[:MAX_HINTED_COLUMNS])}."

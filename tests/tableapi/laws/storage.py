"""Stores the oracle's worlds in the database and rolls them back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from django.db import connection, transaction
from psycopg import sql
from psycopg.types.json import Jsonb

from accounts.models import Group, Role, User, UserGroup
from tableapi.catalogue.definitions import OWN_TABLE_COLUMN, Catalogue, Column, Table
from tableapi.database import catalogue_loader
from tableapi.ddl import physical_names, schema_editor
from tableapi.models import State
from tests.tableapi.oracle import Caller, Row, World, text_of_html
from tests.tableapi.oracle.alphabets import GROUP_IDS, ROLE_IDS, USER_IDS


def create_callers() -> None:
    """Create the users, groups and roles of the oracle; call this once per test."""
    # Prepared plans would become invalid, as tables are recreated with other columns under the same names.
    connection.ensure_connection()
    connection.statements.prepare_after_uses = None  # type: ignore[attr-defined]  # of our backend
    User.objects.bulk_create(User(sys_id=sys_id, login=f"user{number}") for number, sys_id in enumerate(USER_IDS))
    Group.objects.bulk_create(Group(sys_id=sys_id, name=f"group{number}") for number, sys_id in enumerate(GROUP_IDS))
    for name, sys_id in ROLE_IDS.items():
        if not Role.objects.filter(name=name).update(sys_id=sys_id):
            Role.objects.bulk_create([Role(sys_id=sys_id, name=name)])


def store_groups(caller: Caller) -> None:
    """Replace the stored group memberships with the caller's."""
    UserGroup.objects.all().delete()
    UserGroup.objects.bulk_create(UserGroup(user_id=caller.id, group_id=group_id) for group_id in caller.group_ids)


@contextmanager
def rollback_afterwards() -> Iterator[None]:
    """Roll back all writes of the block, even after a database error."""
    savepoint = transaction.savepoint()
    try:
        yield
    finally:
        connection.needs_rollback = False
        transaction.savepoint_rollback(savepoint)
        transaction.savepoint_commit(savepoint)


@contextmanager
def stored_world(world: World, *, with_references: bool = False) -> Iterator[World]:
    """Store the world and make its catalogue current; yields the world with that catalogue."""
    with rollback_afterwards():
        store_tables_and_records(world, with_references=with_references)
        with active_catalogue(world.catalogue) as catalogue:
            yield World(catalogue, world.rows)


@contextmanager
def active_catalogue(catalogue: Catalogue) -> Iterator[Catalogue]:
    """Make this the current catalogue of the process."""
    current_catalogue = replace(catalogue, version=State.objects.values_list("version", flat=True).get(pk=State.ROW_ID))
    catalogue_loader._cache.catalogue = current_catalogue
    try:
        yield current_catalogue
    finally:
        catalogue_loader.clear_cache()


def store_tables_and_records(world: World, *, with_references: bool = False) -> None:
    """Create all tables and records with one message to the server."""
    tables = list(world.catalogue.tables.values())
    statements = [statement for table in tables for statement in create_statements(world.catalogue, table)]
    values: list[Any] = []
    for table in tables:
        rows = list(world.rows.get(table.name, {}).values())
        for name in reversed(table.lineage):
            if rows:
                statements.append(insert_statement(world.catalogue.tables[name], table, rows, values))
    # Foreign keys are added when all referenced records exist.
    if with_references:
        statements += [statement for table in tables for statement in reference_statements(world.catalogue, table)]
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(";").join(statements), values)


def columns_of(table: Table) -> list[Column]:
    return [column for column in table.columns.values() if column.owner == table.name and not column.is_sys]


def create_statements(catalogue: Catalogue, table: Table) -> Iterator[sql.Composable]:
    """The statements that create the table as the designer would, but without indexes."""
    if table.parent is None:
        yield schema_editor.ROOT_DDL.format(table=table_identifier(table), id=physical_names.ID_TYPE, table_id=table.id)
    else:
        parent = table_identifier(catalogue.tables[table.parent])
        yield schema_editor.CHILD_DDL.format(table=table_identifier(table), id=physical_names.ID_TYPE, parent=parent)
    column_definitions = [
        (column.database_name, sql.SQL(column.column_type.definition)) for column in columns_of(table)
    ]
    column_definitions += [
        (column.plain_text_name, sql.SQL("text")) for column in columns_of(table) if column.type == "wysiwyg"
    ]
    if column_definitions:
        add_clauses = sql.SQL(", ").join(
            sql.SQL("ADD COLUMN {} {}").format(sql.Identifier(name), definition)
            for name, definition in column_definitions
        )
        yield sql.SQL("ALTER TABLE {} {}").format(table_identifier(table), add_clauses)


def reference_statements(catalogue: Catalogue, table: Table) -> Iterator[sql.Composable]:
    for column in columns_of(table):
        target = catalogue.tables.get(column.reference or "")
        if column.type == "reference" and target is not None:
            yield sql.SQL("ALTER TABLE {} ADD FOREIGN KEY ({}) REFERENCES {} (sys_id) ON DELETE SET NULL").format(
                table_identifier(table), sql.Identifier(column.database_name), table_identifier(target)
            )


def insert_statement(owner: Table, table: Table, rows: list[Row], values: list[Any]) -> sql.Composable:
    """An INSERT of these records into one table of their lineage; appends their values to `values`."""
    columns = [column for column in table.columns.values() if column.owner == owner.name and column.name != "sys_id"]
    identifiers = [sql.Identifier("sys_id"), *(sql.Identifier(column.database_name) for column in columns)]
    formatted_columns = [column for column in columns if column.type == "wysiwyg"]
    identifiers += [sql.Identifier(column.plain_text_name) for column in formatted_columns]
    for row in rows:
        values += [row["sys_id"], *(adapt_value(column, row[column.name]) for column in columns)]
        values += [text_of_html(row[column.name]) for column in formatted_columns]
    row_placeholders = sql.SQL("({})").format(sql.SQL(", ").join([sql.SQL("%s")] * len(identifiers)))
    return sql.SQL("INSERT INTO {} ({}) VALUES {}").format(
        table_identifier(owner), sql.SQL(", ").join(identifiers), sql.SQL(", ").join([row_placeholders] * len(rows))
    )


def adapt_value(column: Column, value: Any) -> Any:
    return Jsonb(value) if column.type == "json" and value is not None else value


def table_identifier(table: Table) -> sql.Identifier:
    return sql.Identifier(table.schema, table.name)


def load_world(catalogue: Catalogue) -> World:
    """Load the records of all tables from the database."""
    rows_by_table: dict[str, dict[str, Row]] = {}
    for table in catalogue.tables.values():
        columns = list(table.columns.values())
        from_clause = sql.SQL(" JOIN ").join(
            sql.SQL("{} USING (sys_id)").format(table_identifier(catalogue.tables[name]))
            if depth
            else table_identifier(table)
            for depth, name in enumerate(table.lineage)
        )
        column_list = sql.SQL(", ").join(sql.Identifier(column.database_name) for column in columns)
        query = sql.SQL("SELECT {} FROM {}").format(column_list, from_clause)
        if not table.is_system:
            query += sql.SQL(" WHERE {} = {}").format(sql.Identifier(OWN_TABLE_COLUMN), table.id)
        with connection.cursor() as cursor:
            cursor.execute(query)
            stored_rows = [
                dict(zip((column.name for column in columns), row, strict=True)) for row in cursor.fetchall()
            ]
        rows_by_table[table.name] = {row["sys_id"]: row for row in stored_rows}
    return World(catalogue, rows_by_table)

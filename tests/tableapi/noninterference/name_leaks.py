"""Checks that no response names a column that the caller can never read, unless the caller sent the name."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from django.db import connection

from tableapi.catalogue.definitions import Catalogue, Column
from tableapi.ddl import physical_names
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair
from tests.tableapi.noninterference.programs import ProgramGenerator, Step
from tests.tableapi.noninterference.renaming import unreadable_columns
from tests.tableapi.noninterference.runner import Difference, open_conversation
from tests.tableapi.oracle import World


def find_violation(seed: int) -> Difference | None:
    random = Random(seed)
    pair = pairs.make_pair(random, may_write=True)
    hidden_columns = [
        (table, name)
        for table, name in unreadable_columns(pair)
        if is_named_after(pair.catalogue.tables[table].columns[name], table) and is_hidden_everywhere(pair, table, name)
    ]
    if not hidden_columns:
        return None
    table, name = random.choice(hidden_columns)
    pair = with_unique_column(pair, table, name)
    # Creates two records with the default value of the unique column, so the second is a duplicate.
    steps = [
        *ProgramGenerator(random, pair).random_program(),
        Step("POST", table, body={}),
        Step("POST", table, body={}),
    ]
    with open_conversation(pair) as conversation:
        create_unique_index(pair.catalogue, table, name)
        for step in steps:
            if name in str(step) or not all(param.isascii() for param in step.params.values()):
                continue
            for _, response, _ in conversation.send_and_follow(step):
                if name in str(response):
                    return Difference(pair, step, response, name)
    return None


def is_named_after(column: Column, table: str) -> bool:
    """Whether the column is named after the table, so that no other table has a column of this name."""
    return column.type == "string" and column.owner == table and column.name.startswith(table)


def is_hidden_everywhere(pair: Pair, table: str, name: str) -> bool:
    hidden_columns = unreadable_columns(pair)
    return all((family_table, name) in hidden_columns for family_table in pair.catalogue.tables[table].family)


def with_unique_column(pair: Pair, table: str, name: str) -> Pair:
    """Make the hidden column unique, give it a default, and clear it in every record."""
    column = replace(pair.catalogue.tables[table].columns[name], is_unique=True, default="a", is_display=False)
    tables = {
        table_name: replace(each_table, columns={**each_table.columns, name: column})
        if table in each_table.lineage
        else each_table
        for table_name, each_table in pair.catalogue.tables.items()
    }
    rows = {
        table_name: {sys_id: {**row, name: None} if name in row and table in tables[table_name].lineage else row
               for sys_id, row in table_rows.items()}
        for table_name, table_rows in pair.first.rows.items()
    }  # fmt: skip
    catalogue = replace(pair.catalogue, tables=tables)
    return replace(pair, first=World(catalogue, rows), second=World(catalogue, rows))


def create_unique_index(catalogue: Catalogue, table: str, name: str) -> None:
    index = physical_names.unique_index(catalogue.tables[table].columns[name], table)
    with connection.cursor() as cursor:
        cursor.execute(index.create_sql())

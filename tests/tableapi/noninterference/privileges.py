"""A caller without roles changes nothing in the product's own tables, whatever they send."""

from __future__ import annotations

from random import Random
from typing import Any

from django.db import connection
from psycopg import sql

from system.records import acting_user
from tableapi.catalogue.definitions import Catalogue, Column, Table
from tableapi.database import catalogue_loader
from tests.tableapi.laws.storage import place, rolled_back
from tests.tableapi.noninterference.programs import Step
from tests.tableapi.noninterference.running import Answer, canonical, send
from tests.tableapi.oracle import Caller
from tests.tableapi.oracle.alphabets import GROUP_IDS, ROLE_IDS, USER_IDS

CALLER = Caller(USER_IDS[0])
VALUES: dict[str, list[Any]] = {
    "boolean": [True, "true", 1, False],
    "integer": [1, "1"],
    "json": [{}, [], None],
    "list": [[ROLE_IDS["admin"]], None],
}
IDS = [*USER_IDS, *GROUP_IDS, *ROLE_IDS.values()]


def violation(seed: int) -> tuple[Step, Answer] | None:
    random = Random(seed)
    catalogue = catalogue_loader.reload_if_changed()
    tables = [table for table in catalogue.tables.values() if table.is_system]
    with rolled_back(), acting_user.acting_as(CALLER.id):
        before = contents(catalogue)
        for _ in range(4):
            step = step_for(random, random.choice(tables))
            with rolled_back():
                response = canonical(send(step, CALLER))
                if response[0] < 400 or contents(catalogue) != before:
                    return step, response
    return None


def step_for(random: Random, table: Table) -> Step:
    method = random.choice(["POST", "POST", "PATCH", "PUT", "DELETE"])
    sys_id = "" if method == "POST" else some_id(random, table)
    if method == "DELETE":
        return Step(method, table.name, sys_id)
    columns = [column for column in table.columns.values() if not column.is_sys or random.random() < 0.1]
    chosen = [column for column in columns if column.mandatory or random.random() < 0.4]
    return Step(method, table.name, sys_id, {}, {column.name: value(random, column) for column in chosen})


def some_id(random: Random, table: Table) -> str:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT sys_id FROM {}").format(place(table)))
        result = [row[0] for row in cursor.fetchall()]
    return random.choice([*result, "1"])


def value(random: Random, column: Column) -> Any:
    if column.type == "reference":
        return random.choice(IDS)
    if column.choices:
        return random.choice(column.choices)[0]
    return random.choice(VALUES.get(column.type, ["a", "b", "admin"]))


def contents(catalogue: Catalogue) -> list[Any]:
    whole = sql.SQL("SELECT md5(string_agg(t::text, '' ORDER BY sys_id)) FROM {} t")
    results = []
    with connection.cursor() as cursor:
        for table in catalogue.tables.values():
            if table.is_system:
                cursor.execute(whole.format(place(table)))
                results.append((table.name, cursor.fetchone()))
    return results

"""Checks that a caller without roles cannot change anything in product tables."""

from __future__ import annotations

from random import Random
from typing import Any

from django.db import connection
from psycopg import sql

from system.records import acting_user
from tableapi.catalogue.definitions import Catalogue, Column, Table
from tableapi.database import catalogue_loader
from tests.tableapi.laws.storage import rollback_afterwards, table_identifier
from tests.tableapi.noninterference.programs import Step
from tests.tableapi.noninterference.runner import CanonicalResponse, canonical_response, send_step
from tests.tableapi.oracle import Caller
from tests.tableapi.oracle.alphabets import GROUP_IDS, ROLE_IDS, USER_IDS

CALLER = Caller(USER_IDS[0])
COLUMN_VALUES: dict[str, list[Any]] = {
    "boolean": [True, "true", 1, False],
    "integer": [1, "1"],
    "json": [{}, [], None],
    "list": [[ROLE_IDS["admin"]], None],
}
KNOWN_IDS = [*USER_IDS, *GROUP_IDS, *ROLE_IDS.values()]


def find_violation(seed: int) -> tuple[Step, CanonicalResponse] | None:
    random = Random(seed)
    catalogue = catalogue_loader.reload_if_changed()
    tables = [table for table in catalogue.tables.values() if table.is_system]
    with rollback_afterwards(), acting_user.acting_as(CALLER.id):
        digests_before = product_table_digests(catalogue)
        for _ in range(4):
            step = make_step(random, random.choice(tables))
            with rollback_afterwards():
                response = canonical_response(send_step(step, CALLER))
                if response[0] < 400 or product_table_digests(catalogue) != digests_before:
                    return step, response
    return None


def make_step(random: Random, table: Table) -> Step:
    method = random.choice(["POST", "POST", "PATCH", "PUT", "DELETE"])
    sys_id = "" if method == "POST" else random_id(random, table)
    if method == "DELETE":
        return Step(method, table.name, sys_id)
    columns = [column for column in table.columns.values() if not column.is_sys or random.random() < 0.1]
    chosen_columns = [column for column in columns if column.mandatory or random.random() < 0.4]
    return Step(
        method, table.name, sys_id, {}, {column.name: random_value(random, column) for column in chosen_columns}
    )


def random_id(random: Random, table: Table) -> str:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT sys_id FROM {}").format(table_identifier(table)))
        ids = [row[0] for row in cursor.fetchall()]
    return random.choice([*ids, "1"])


def random_value(random: Random, column: Column) -> Any:
    if column.type == "reference":
        return random.choice(KNOWN_IDS)
    if column.choices:
        return random.choice(column.choices)[0]
    return random.choice(COLUMN_VALUES.get(column.type, ["a", "b", "admin"]))


def product_table_digests(catalogue: Catalogue) -> list[Any]:
    digest_query = sql.SQL("SELECT md5(string_agg(t::text, '' ORDER BY sys_id)) FROM {} t")
    digests = []
    with connection.cursor() as cursor:
        for table in catalogue.tables.values():
            if table.is_system:
                cursor.execute(digest_query.format(table_identifier(table)))
                digests.append((table.name, cursor.fetchone()))
    return digests

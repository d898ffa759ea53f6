"""Compares requests with a column that the caller can never read and with one that does not exist."""

from __future__ import annotations

import re
from random import Random

from tests.tableapi.laws.storage import rollback_afterwards
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair
from tests.tableapi.noninterference.programs import Step
from tests.tableapi.noninterference.runner import (
    CanonicalResponse,
    Difference,
    canonical_response,
    open_conversation,
    send_step,
)
from tests.tableapi.oracle import QueryRefused, field_value
from tests.tableapi.oracle.alphabets import make_moment

PLACEHOLDER_NAME = "NAME"
QUERIES = [
    "NAME=a", "NAME!=1", "NAMESTARTSWITHa", "NAMELIKEa", "NAMEISEMPTY", "NAMEIN1,2", "NAME>not a date", "NAMEANYTHING",
    "ORDERBYNAME", "ORDERBYDESCNAME", "kind=a^ORNAME=b", "kindISEMPTY^NQNAME=b", "NAME.sys_id=a", "kindSAMEASNAME",
    "sys_created_atMORETHANNAME@day@after@1",
]  # fmt: skip


def find_difference(seed: int) -> Difference | None:
    """Return the first request that distinguishes a hidden column from a missing one."""
    random = Random(seed)
    pair = pairs.make_pair(random)
    hidden_columns = unreadable_columns(pair)
    if not hidden_columns:
        return None
    table, name = random.choice(hidden_columns)
    # Has the same length, so that error positions are equal, and a similar place in the alphabet.
    missing_name = name[:-1] + "z"
    with open_conversation(pair):
        for step in steps_for_column(random, pair, table):
            responses = []
            for used_name in (name, missing_name):
                with rollback_afterwards():
                    response = canonical_response(send_step(with_column_name(step, used_name), pair.caller))
                responses.append(mask_name(response, used_name))
            if responses[0] != responses[1]:
                return Difference(pair, with_column_name(step, name), *responses)
    return None


def unreadable_columns(pair: Pair) -> list[tuple[str, str]]:
    """Return the table and name of all columns in readable tables that the caller can never read."""
    columns = []
    now = make_moment(pair.caller.id)
    for table in pair.catalogue.tables.values():
        full_row = {**dict.fromkeys(table.columns), "sys_id": "0", "sys_db_table_id": table.id}
        for name, column in table.columns.items():
            if not column.is_readable:
                continue  # everyone who may write a secret may know of it
            try:
                field_value(pair.first, pair.caller, table.name, full_row, (name,), now)
            except QueryRefused:
                columns.append((table.name, name))
    return columns


def steps_for_column(random: Random, pair: Pair, table: str) -> list[Step]:
    record_id = random.choice([*pair.first.rows[table], "1"])
    body = {PLACEHOLDER_NAME: random.choice(["a", 1, None, True])}
    return [
        Step("GET", table, "", {"sysparm_query": random.choice(QUERIES)}),
        Step("GET", table, "", {"sysparm_query": random.choice(QUERIES), "sysparm_fields": "kind"}),
        Step("GET", table, "", {"sysparm_fields": f"kind,{PLACEHOLDER_NAME},{PLACEHOLDER_NAME}.sys_id"}),
        Step("GET", table, "", {"sysparm_fields": PLACEHOLDER_NAME}),
        Step("GET", table, record_id, {"sysparm_fields": f"{PLACEHOLDER_NAME},sys_version"}),
        Step("POST", table, "", {}, body),
        Step("PATCH", table, record_id, {}, body),
        Step("PUT", table, record_id, {}, body),
    ]


def with_column_name(step: Step, name: str) -> Step:
    params = {key: value.replace(PLACEHOLDER_NAME, name) for key, value in step.params.items()}
    body = (
        None if step.body is None else {key.replace(PLACEHOLDER_NAME, name): value for key, value in step.body.items()}
    )
    return Step(step.method, step.table, step.sys_id, params, body)


def mask_name(response: CanonicalResponse, name: str) -> CanonicalResponse:
    status, headers, content = response
    pattern = f"{name}(?!d )"  # not in "There is no column named"
    return (
        status,
        tuple((key, re.sub(pattern, PLACEHOLDER_NAME, value)) for key, value in headers),
        re.sub(pattern.encode(), PLACEHOLDER_NAME.encode(), content),
    )

"""The same request for a column that the caller can never read, and for one that does not exist."""

from __future__ import annotations

from random import Random

from tests.tableapi.laws.storage import rolled_back
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair
from tests.tableapi.noninterference.programs import Step
from tests.tableapi.noninterference.running import Answer, Difference, canonical, conversation, send
from tests.tableapi.oracle import Refused, field
from tests.tableapi.oracle.alphabets import moment

NAME = "NAME"
QUERIES = [
    "NAME=a", "NAME!=1", "NAMESTARTSWITHa", "NAMELIKEa", "NAMEISEMPTY", "NAMEIN1,2", "NAME>not a date", "NAMEANYTHING",
    "ORDERBYNAME", "ORDERBYDESCNAME", "kind=a^ORNAME=b", "kindISEMPTY^NQNAME=b", "NAME.sys_id=a", "kindSAMEASNAME",
    "sys_created_atMORETHANNAME@day@after@1",
]  # fmt: skip


def difference(seed: int) -> Difference | None:
    """Where a hidden column is told from a missing one."""
    random = Random(seed)
    pair = pairs.make(random)
    hidden = unreadable(pair)
    if not hidden:
        return None
    table, name = random.choice(hidden)
    # Of the same length, for the positions; and in the same place of the alphabet.
    missing = name[:-1] + "z"
    with conversation(pair):
        for step in steps(random, pair, table):
            results = []
            for used_name in (name, missing):
                with rolled_back():
                    response = canonical(send(renamed(step, used_name), pair.caller))
                results.append(blank(response, used_name))
            if results[0] != results[1]:
                return Difference(pair, renamed(step, name), *results)
    return None


def unreadable(pair: Pair) -> list[tuple[str, str]]:
    """(table, column) of all that this caller can never read, in tables that they can."""
    results = []
    now = moment(pair.caller.id)
    for table in pair.catalogue.tables.values():
        anything = {**dict.fromkeys(table.columns), "sys_id": "0", "sys_db_table_id": table.id}
        for name, column in table.columns.items():
            if not column.is_readable:
                continue  # a secret is there for everybody who may write it
            try:
                field(pair.one, pair.caller, table.name, anything, (name,), now)
            except Refused:
                results.append((table.name, name))
    return results


def steps(random: Random, pair: Pair, table: str) -> list[Step]:
    some_id = random.choice([*pair.one.rows[table], "1"])
    body = {NAME: random.choice(["a", 1, None, True])}
    return [
        Step("GET", table, "", {"sysparm_query": random.choice(QUERIES)}),
        Step("GET", table, "", {"sysparm_query": random.choice(QUERIES), "sysparm_fields": "kind"}),
        Step("GET", table, "", {"sysparm_fields": f"kind,{NAME},{NAME}.sys_id"}),
        Step("GET", table, "", {"sysparm_fields": NAME}),
        Step("GET", table, some_id, {"sysparm_fields": f"{NAME},sys_version"}),
        Step("POST", table, "", {}, body),
        Step("PATCH", table, some_id, {}, body),
        Step("PUT", table, some_id, {}, body),
    ]


def renamed(step: Step, name: str) -> Step:
    params = {key: value.replace(NAME, name) for key, value in step.params.items()}
    body = None if step.body is None else {key.replace(NAME, name): value for key, value in step.body.items()}
    return Step(step.method, step.table, step.sys_id, params, body)


def blank(response: Answer, name: str) -> Answer:
    status, headers, content = response
    return (
        status,
        tuple((key, value.replace(name, NAME)) for key, value in headers),
        content.replace(name.encode(), b"NAME"),
    )

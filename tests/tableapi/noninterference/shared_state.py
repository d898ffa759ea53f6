"""Checks that stored responses, deferred records and the deletion log of one caller reveal nothing to another."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

from django.db import connection

from system.records import acting_user
from tableapi.read import context
from tests.tableapi.laws.storage import active_catalogue, rollback_afterwards, store_groups
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair
from tests.tableapi.noninterference.programs import ProgramGenerator, Step
from tests.tableapi.noninterference.runner import Conversation, Difference, insert_world, make_tables
from tests.tableapi.oracle import Caller, World
from tests.tableapi.oracle.alphabets import ROLE_IDS, USER_IDS
from tests.tableapi.oracle.column_types import NOW

SHARED_TABLES = ("tableapi_idempotent_answer", "tableapi_deferred_record", "sys_deletion_log")


def find_violation(seed: int) -> Difference | None:
    """Return the first response that differs between databases with and without the state of another caller."""
    random = Random(seed)
    pair = with_deferred_tables(random, pairs.make_pair(random, may_write=True))
    program = ProgramGenerator(random, pair).random_program()
    # The other caller may read more, and sends the same or similar requests, all with keys.
    keyed_steps = [replace(step, headers={**step.headers, "Idempotency-Key": "k"}) for step in program if step.body]
    other_steps = [
        *keyed_steps,
        *(step for step in ProgramGenerator(random, pair).random_program() if step.method != "GET"),
    ]
    program = [random.choice([step, replace(step, headers={**step.headers, "Idempotency-Key": "k"})])
               if step.body else step for step in program]  # fmt: skip
    with ExitStack() as stack:
        stack.enter_context(rollback_afterwards())
        stack.enter_context(patch.object(context, "now", lambda: NOW))
        stack.enter_context(active_catalogue(pair.catalogue))
        make_tables(pair)
        store_groups(pair.caller)
        insert_world(pair.first)
        run_program(make_other_caller(pair), other_steps)
        responses = run_program_after_other_caller(pair, program, is_state_cleared=False)
        other_responses = run_program_after_other_caller(pair, program, is_state_cleared=True)
    for (step, *first), (_, *second) in zip(responses, other_responses, strict=True):
        if first != second:
            return Difference(pair, step, first, second)
    return None


def with_deferred_tables(random: Random, pair: Pair) -> Pair:
    """Return the pair with `deferred_create` set on some tables."""
    tables = {
        name: replace(table, deferred_create=random.random() < 0.5) for name, table in pair.catalogue.tables.items()
    }
    catalogue = replace(pair.catalogue, tables=tables)
    return replace(pair, first=World(catalogue, pair.first.rows), second=World(catalogue, pair.second.rows))


def make_other_caller(pair: Pair) -> Caller:
    role_names = frozenset({"agent", "clerk"})
    user_id = next(other_id for other_id in USER_IDS if other_id != pair.caller.id)
    return Caller(user_id, role_names, (), tuple(ROLE_IDS[name] for name in role_names))


def run_program_after_other_caller(pair: Pair, program: list[Step], *, is_state_cleared: bool) -> list[Any]:
    with rollback_afterwards(), connection.cursor() as cursor:
        cursor.execute("SELECT setval('stopped.ids', 1000)")
        for table in SHARED_TABLES if is_state_cleared else ():
            cursor.execute(f"DELETE FROM {table}")
        return run_program(pair.caller, program)


def run_program(caller: Caller, program: list[Step]) -> list[Any]:
    conversation = Conversation(caller)
    with acting_user.acting_as(caller.id):
        return [response for step in program for response in conversation.send_and_follow(step)]

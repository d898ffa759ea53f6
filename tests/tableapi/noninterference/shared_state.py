"""What one caller leaves behind tells another nothing: stored answers, deferred records, the deletion log."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

from django.db import connection

from system.records import acting_user
from tableapi.read import context
from tests.tableapi.laws.storage import in_force, rolled_back, store_groups
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair
from tests.tableapi.noninterference.programs import Author, Step
from tests.tableapi.noninterference.running import Conversation, Difference, fill, make_tables
from tests.tableapi.oracle import Caller
from tests.tableapi.oracle.alphabets import ROLE_IDS, USER_IDS
from tests.tableapi.oracle.column_types import NOW

LEFT_BEHIND = ("tableapi_idempotent_answer", "tableapi_deferred_record", "sys_deletion_log")


def violation(seed: int) -> Difference | None:
    """The first answer that differs between a database with what another caller has left behind, and one without."""
    random = Random(seed)
    pair = deferred(random, pairs.make(random, may_write=True))
    program = Author(random, pair).program()
    # The other one may read more, and sends the same requests or similar ones, all with keys.
    keyed = [replace(step, headers={**step.headers, "Idempotency-Key": "k"}) for step in program if step.body]
    others = [*keyed, *(step for step in Author(random, pair).program() if step.method != "GET")]
    program = [random.choice([step, replace(step, headers={**step.headers, "Idempotency-Key": "k"})])
               if step.body else step for step in program]  # fmt: skip
    with ExitStack() as stack:
        stack.enter_context(rolled_back())
        stack.enter_context(patch.object(context, "now", lambda: NOW))
        stack.enter_context(in_force(pair.catalogue))
        make_tables(pair)
        store_groups(pair.caller)
        fill(pair.one)
        answers(other_caller(pair), others)
        one = after(pair, program, forgets=False)
        other = after(pair, program, forgets=True)
    for (step, *left), (_, *right) in zip(one, other, strict=True):
        if left != right:
            return Difference(pair, step, left, right)
    return None


def deferred(random: Random, pair: Pair) -> Pair:
    """Some of its tables create their records later."""
    tables = {
        name: replace(table, deferred_create=random.random() < 0.5) for name, table in pair.catalogue.tables.items()
    }
    catalogue = replace(pair.catalogue, tables=tables)
    return replace(pair, one=replace(pair.one, catalogue=catalogue), other=replace(pair.other, catalogue=catalogue))


def other_caller(pair: Pair) -> Caller:
    names = frozenset({"agent", "clerk"})
    user_id = next(other_id for other_id in USER_IDS if other_id != pair.caller.id)
    return Caller(user_id, names, (), tuple(ROLE_IDS[name] for name in names))


def after(pair: Pair, program: list[Step], *, forgets: bool) -> list[Any]:
    with rolled_back(), connection.cursor() as cursor:
        cursor.execute("SELECT setval('stopped.ids', 1000)")
        for table in LEFT_BEHIND if forgets else ():
            cursor.execute(f"DELETE FROM {table}")
        return answers(pair.caller, program)


def answers(caller: Caller, program: list[Step]) -> list[Any]:
    talk = Conversation(caller)
    with acting_user.acting_as(caller.id):
        return [response for step in program for response in talk.answers_to(step)]

"""Checks one database: a write does only what the rules allow before and after it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from tableapi.catalogue.definitions import CREATE, DELETE, READ, WRITE, Column, Rule
from tests.tableapi.laws.storage import read_back
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import KIND, Pair
from tests.tableapi.noninterference.programs import Author, Step
from tests.tableapi.noninterference.running import Answer, Difference, conversation
from tests.tableapi.oracle import Row, World, can
from tests.tableapi.oracle.alphabets import USER_IDS, moment

# What the server writes with every change, and what it alone writes once.
WITH_EVERY_CHANGE = frozenset({"sys_updated_at", "sys_updated_by", "sys_version"})
WRITES = 6


def violation(seed: int) -> Difference | None:
    """The first write of this seed that does what it may not."""
    random = Random(seed)
    pair = movable(random, pairs.make(random, may_write=True))
    author = Author(random, pair, kept=frozenset())
    steps = [bolder(random, author.sending(random.choice(author.tables))) for _ in range(WRITES)]
    with conversation(pair) as talk:
        before = read_back(pair.catalogue)
        sent: set[tuple[str, ...]] = set()
        for step in steps:
            ((_, response, _),) = talk.answers_to(step)
            after = read_back(pair.catalogue)
            wrong = [*faults(pair, step, response, before, after)]
            # One that was sent before has its answer from then.
            key = (step.method, step.table, step.sys_id, step.headers.get("Idempotency-Key", ""))
            if not key[-1] or key not in sent:
                wrong += refusals(pair, step, response[0], before)
            sent.add(key)
            if wrong:
                return Difference(pair, step, response, wrong)
            before = after
    return None


def bolder(random: Random, step: Step) -> Step:
    """More of what rules decide by, and of what only the server writes."""
    body = dict(step.body or {})
    if step.body is not None and random.random() < 0.4:
        body[KIND] = random.choice(["a", "b", None])
    if step.method == "POST" and random.random() < 0.15:
        body["sys_created_by"] = random.choice(USER_IDS)
    return replace(step, body=body) if step.body is not None else step


def movable(random: Random, pair: Pair) -> Pair:
    """With the column changeable that decides the rules: so a write moves records across them. And with rules of
    columns that are decided by it, too."""
    rules = [rule for rule in pair.catalogue.rules if (rule.operation, rule.column) != (WRITE, KIND)]
    rules += [
        Rule(f"of {operation} {table.name}.{name}", operation, table.name, name, frozenset(), f"{KIND}!=b")
        for table in pair.catalogue.tables.values()
        for name, column in table.columns.items()
        for operation in (CREATE, WRITE)
        if not column.is_sys and name != KIND and random.random() < 0.2
    ]
    catalogue = replace(pair.catalogue, rules=tuple(rules))
    return replace(pair, one=World(catalogue, pair.one.rows), other=World(catalogue, pair.other.rows))


def faults(pair: Pair, step: Step, response: Answer, before: World, after: World) -> Iterator[str]:
    status = response[0]
    if status >= 500:
        yield "no answer"
    one, other = by_id(before), by_id(after)
    gone, created = one.keys() - other.keys(), other.keys() - one.keys()
    changed = {sys_id for sys_id in one.keys() & other.keys() if one[sys_id] != other[sys_id]}
    if status >= 400 and (gone or created or changed):
        yield f"refused and done: {gone} {created} {changed}"
    may = Asked(pair, before), Asked(pair, after)
    for sys_id in gone:
        allowed = all(may[0].record(operation, *one[sys_id]) for operation in (READ, DELETE))
        if step.method != "DELETE" or sys_id != step.sys_id or not allowed:
            yield f"{sys_id} was deleted"
    for sys_id in created:
        yield from faults_of_new(pair, step, may[1], *other[sys_id])
    for sys_id in one.keys() & other.keys() if gone else ():
        yield from faults_of_released(pair, gone, one[sys_id], other[sys_id])
    for sys_id in () if gone else changed:
        if step.method == "POST" or sys_id != step.sys_id:
            yield f"{sys_id} was changed beside"
        else:
            yield from faults_of_changed(pair, may, one[sys_id], other[sys_id])


Found = tuple[str, Row]


def by_id(world: World) -> dict[str, Found]:
    return {sys_id: (name, row) for name, rows in world.rows.items() for sys_id, row in rows.items()}


class Asked:
    """What the caller may do in this world."""

    def __init__(self, pair: Pair, world: World) -> None:
        self.pair = pair
        self.world = world

    def record(self, operation: str, table: str, row: Row) -> bool:
        return can(self.world, self.pair.caller, operation, table, row, moment(self.pair.caller.id))

    def column(self, operation: str, table: str, row: Row, name: str) -> bool:
        return can(self.world, self.pair.caller, operation, table, row, moment(self.pair.caller.id), name)


def refusals(pair: Pair, step: Step, status: int, before: World) -> Iterator[str]:
    """Readable and not for them to change: 403. Not readable: 404, whatever else they may do with it."""
    if step.method == "POST":
        return
    result = before.find(pair.catalogue.tables[step.table], step.sys_id)
    asked = Asked(pair, before)
    if result is None or not asked.record(READ, step.table, result):
        expected = {400, 404, 409}  # 400: the body is read first; 409: a key that was used for another request
    elif not asked.record(DELETE if step.method == "DELETE" else WRITE, step.table, result):
        expected = {400, 403, 409, 412}
    else:
        return
    if status not in expected:
        yield f"{status} and not one of {expected}"


def faults_of_new(pair: Pair, step: Step, may: Asked, table: str, row: Row) -> Iterator[str]:
    if step.method != "POST" or step.table != table:
        yield f"{row['sys_id']} was made by {step.method} {step.table}"
    if not may.record(CREATE, table, row):
        yield f"{row['sys_id']} was made"
    yield from (f"{name} was given" for name in step.body or {} if not may.column(CREATE, table, row, name))
    if row["sys_created_by"] != pair.caller.id:
        yield f"it was made by {row['sys_created_by']}"


def faults_of_changed(pair: Pair, may: tuple[Asked, Asked], one: Found, other: Found) -> Iterator[str]:
    (table, old), (_, new) = one, other
    if not may[0].record(READ, table, old) or not all(
        permissions.record(WRITE, table, row) for permissions, row in zip(may, (old, new), strict=True)
    ):
        yield f"{old['sys_id']} was changed"
    for name in old.keys() - WITH_EVERY_CHANGE:
        if old[name] != new[name] and (
            pair.catalogue.tables[table].columns[name].is_sys
            or not all(
                permissions.column(WRITE, table, row, name) for permissions, row in zip(may, (old, new), strict=True)
            )
        ):
            yield f"{name} was changed"
    if new["sys_version"] != old["sys_version"] + 1:
        yield "the version was not counted"


def faults_of_released(pair: Pair, gone: set[str], one: Found, other: Found) -> Iterator[str]:
    """A deletion takes the record out of every list, and changes nothing else. What refers to it by a foreign key is
    emptied by that, and there is none here: the references of these databases may lead nowhere."""
    (table, old), (_, new) = one, other
    for name, column in pair.catalogue.tables[table].columns.items():
        if name not in WITH_EVERY_CHANGE and new[name] != released(column, old[name], gone):
            yield f"{name} of {old['sys_id']} became {json.dumps(new[name], default=str)}"


def released(column: Column, value: Any, gone: set[str]) -> Any:
    return [sys_id for sys_id in value if sys_id not in gone] if column.type == "list" and value is not None else value

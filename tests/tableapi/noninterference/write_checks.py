"""Checks that a write to one database does only what the rules allow before and after it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from tableapi.catalogue.definitions import CREATE, DELETE, READ, WRITE, Column, Rule
from tests.tableapi.laws.storage import load_world
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import KIND_COLUMN, Pair
from tests.tableapi.noninterference.programs import ProgramGenerator, Step
from tests.tableapi.noninterference.runner import CanonicalResponse, Difference, open_conversation
from tests.tableapi.oracle import Row, World, is_permitted
from tests.tableapi.oracle.alphabets import USER_IDS, make_moment

# Columns that the server writes with every change.
ALWAYS_CHANGED = frozenset({"sys_updated_at", "sys_updated_by", "sys_version"})
WRITE_COUNT = 6


def find_violation(seed: int) -> Difference | None:
    """Return the first write of this seed that violates a rule."""
    random = Random(seed)
    pair = with_writable_kind(random, pairs.make_pair(random, may_write=True))
    generator = ProgramGenerator(random, pair, fixed_columns=frozenset())
    steps = [
        with_more_columns(random, generator.random_write_step(random.choice(generator.tables)))
        for _ in range(WRITE_COUNT)
    ]
    with open_conversation(pair) as conversation:
        world_before = load_world(pair.catalogue)
        sent_keys: set[tuple[str, ...]] = set()
        for step in steps:
            ((_, response, _),) = conversation.send_and_follow(step)
            world_after = load_world(pair.catalogue)
            faults = [*find_faults(pair, step, response, world_before, world_after)]
            # A repeated request gets the first response.
            request_key = (step.method, step.table, step.sys_id, step.headers.get("Idempotency-Key", ""))
            if not request_key[-1] or request_key not in sent_keys:
                faults += find_wrong_statuses(pair, step, response[0], world_before)
            sent_keys.add(request_key)
            if faults:
                return Difference(pair, step, response, faults)
            world_before = world_after
    return None


def with_more_columns(random: Random, step: Step) -> Step:
    """Return the step, perhaps with columns that rules test or that only the server writes."""
    body = dict(step.body or {})
    if step.body is not None and random.random() < 0.4:
        body[KIND_COLUMN] = random.choice(["a", "b", None])
    if step.method == "POST" and random.random() < 0.15:
        body["sys_created_by"] = random.choice(USER_IDS)
    return replace(step, body=body) if step.body is not None else step


def with_writable_kind(random: Random, pair: Pair) -> Pair:
    """Return the pair with writable KIND_COLUMN, which rules of columns test too."""
    rules = [rule for rule in pair.catalogue.rules if (rule.operation, rule.column) != (WRITE, KIND_COLUMN)]
    rules += [
        Rule(f"of {operation} {table.name}.{name}", operation, table.name, name, frozenset(), f"{KIND_COLUMN}!=b")
        for table in pair.catalogue.tables.values()
        for name, column in table.columns.items()
        for operation in (CREATE, WRITE)
        if not column.is_sys and name != KIND_COLUMN and random.random() < 0.2
    ]
    catalogue = replace(pair.catalogue, rules=tuple(rules))
    return replace(pair, first=World(catalogue, pair.first.rows), second=World(catalogue, pair.second.rows))


def find_faults(
    pair: Pair, step: Step, response: CanonicalResponse, world_before: World, world_after: World
) -> Iterator[str]:
    status = response[0]
    if status >= 500:
        yield "server error"
    rows_before, rows_after = rows_by_id(world_before), rows_by_id(world_after)
    deleted_ids, created_ids = rows_before.keys() - rows_after.keys(), rows_after.keys() - rows_before.keys()
    changed_ids = {
        sys_id for sys_id in rows_before.keys() & rows_after.keys() if rows_before[sys_id] != rows_after[sys_id]
    }
    if status >= 400 and (deleted_ids or created_ids or changed_ids):
        yield f"written despite an error: {deleted_ids} {created_ids} {changed_ids}"
    permissions_by_world = CallerPermissions(pair, world_before), CallerPermissions(pair, world_after)
    for sys_id in deleted_ids:
        is_allowed = all(
            permissions_by_world[0].allows_record(operation, *rows_before[sys_id]) for operation in (READ, DELETE)
        )
        if step.method != "DELETE" or sys_id != step.sys_id or not is_allowed:
            yield f"{sys_id} was deleted"
    for sys_id in created_ids:
        yield from find_creation_faults(pair, step, permissions_by_world[1], *rows_after[sys_id])
    for sys_id in rows_before.keys() & rows_after.keys() if deleted_ids else ():
        yield from find_deletion_faults(pair, deleted_ids, rows_before[sys_id], rows_after[sys_id])
    for sys_id in () if deleted_ids else changed_ids:
        if step.method == "POST" or sys_id != step.sys_id:
            yield f"{sys_id} was changed too"
        else:
            yield from find_update_faults(pair, permissions_by_world, rows_before[sys_id], rows_after[sys_id])


TableRow = tuple[str, Row]


def rows_by_id(world: World) -> dict[str, TableRow]:
    return {sys_id: (name, row) for name, rows in world.rows.items() for sys_id, row in rows.items()}


class CallerPermissions:
    """The permissions of the caller in one world."""

    def __init__(self, pair: Pair, world: World) -> None:
        self.pair = pair
        self.world = world

    def allows_record(self, operation: str, table: str, row: Row) -> bool:
        return is_permitted(self.world, self.pair.caller, operation, table, row, make_moment(self.pair.caller.id))

    def allows_column(self, operation: str, table: str, row: Row, name: str) -> bool:
        return is_permitted(self.world, self.pair.caller, operation, table, row, make_moment(self.pair.caller.id), name)


def find_wrong_statuses(pair: Pair, step: Step, status: int, world_before: World) -> Iterator[str]:
    """Yield statuses other than 403 for readable records that may not be changed, and 404 for unreadable ones."""
    if step.method == "POST":
        return
    row = world_before.find(pair.catalogue.tables[step.table], step.sys_id)
    permissions = CallerPermissions(pair, world_before)
    if row is None or not permissions.allows_record(READ, step.table, row):
        expected_statuses = {400, 404, 409}  # 400: the body is read first; 409: a key that was used for another request
    elif not permissions.allows_record(DELETE if step.method == "DELETE" else WRITE, step.table, row):
        expected_statuses = {400, 403, 409, 412}
    else:
        return
    if status not in expected_statuses:
        yield f"status {status} is not one of {expected_statuses}"


def find_creation_faults(pair: Pair, step: Step, permissions: CallerPermissions, table: str, row: Row) -> Iterator[str]:
    if step.method != "POST" or step.table != table:
        yield f"{row['sys_id']} was created by {step.method} {step.table}"
    if not permissions.allows_record(CREATE, table, row):
        yield f"{row['sys_id']} was created"
    yield from (
        f"{name} was set" for name in step.body or {} if not permissions.allows_column(CREATE, table, row, name)
    )
    if row["sys_created_by"] != pair.caller.id:
        yield f"it was created by {row['sys_created_by']}"


def find_update_faults(
    pair: Pair,
    permissions_by_world: tuple[CallerPermissions, CallerPermissions],
    record_before: TableRow,
    record_after: TableRow,
) -> Iterator[str]:
    (table, old_row), (_, new_row) = record_before, record_after
    if not permissions_by_world[0].allows_record(READ, table, old_row) or not all(
        permissions.allows_record(WRITE, table, row)
        for permissions, row in zip(permissions_by_world, (old_row, new_row), strict=True)
    ):
        yield f"{old_row['sys_id']} was changed"
    for name in old_row.keys() - ALWAYS_CHANGED:
        if old_row[name] != new_row[name] and (
            pair.catalogue.tables[table].columns[name].is_sys
            or not all(
                permissions.allows_column(WRITE, table, row, name)
                for permissions, row in zip(permissions_by_world, (old_row, new_row), strict=True)
            )
        ):
            yield f"{name} was changed"
    if new_row["sys_version"] != old_row["sys_version"] + 1:
        yield "sys_version was not incremented"


def find_deletion_faults(
    pair: Pair, deleted_ids: set[str], record_before: TableRow, record_after: TableRow
) -> Iterator[str]:
    """Yield changes other than the removal of references to the deleted record."""
    (table, old_row), (_, new_row) = record_before, record_after
    for name, column in pair.catalogue.tables[table].columns.items():
        if name not in ALWAYS_CHANGED and new_row[name] != without_deleted_ids(column, old_row[name], deleted_ids):
            yield f"{name} of {old_row['sys_id']} became {json.dumps(new_row[name], default=str)}"


def without_deleted_ids(column: Column, value: Any, deleted_ids: set[str]) -> Any:
    if column.type == "list" and value is not None:
        return [sys_id for sys_id in value if sys_id not in deleted_ids]
    return None if column.type == "reference" and not column.is_sys and value in deleted_ids else value

"""Hidden records and values change no response to bulk requests, and nothing that can be read after them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tableapi.catalogue.definitions import Table
from tableapi.http.table_views import BulkView, UpsertView
from tests.support.nightly import scaled_count
from tests.tableapi.laws.storage import active_catalogue, load_world, rollback_afterwards
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.name_leaks import create_unique_index
from tests.tableapi.noninterference.pairs import Pair, visible_values
from tests.tableapi.noninterference.programs import ProgramGenerator
from tests.tableapi.noninterference.runner import insert_world, send_to_view, stored_tables
from tests.tableapi.oracle import World
from tests.tableapi.oracle.alphabets import make_moment
from tests.tableapi.oracle.worlds import make_column

pytestmark = pytest.mark.django_db
PAIR_COUNT, NIGHTLY_PAIR_COUNT = 50, 3_000
KEY = "unique_key"
# Method, table, query string, body.
BulkStep = tuple[str, str, str, Any]


def with_key_column(pair: Pair) -> Pair:
    """Add a unique column to each table, with a value in the visible records: other duplicates reveal hidden values."""
    tables = pair.catalogue.tables
    keys = {name: replace(make_column(name, KEY, "string"), is_unique=True) for name in tables}
    catalogue = replace(
        pair.catalogue,
        tables={
            name: replace(table, columns={**table.columns, KEY: keys[table.lineage[-1]]})
            for name, table in tables.items()
        },
    )
    first, second = (
        World(
            catalogue,
            {
                name: {
                    sys_id: {**row, KEY: sys_id if (name, sys_id) in pair.visible_values else None}
                    for sys_id, row in rows.items()
                }
                for name, rows in world.rows.items()
            },
        )
        for world in (pair.first, pair.second)
    )
    return replace(pair, first=first, second=second)


def random_step(generator: ProgramGenerator, table: Table) -> BulkStep:
    random = generator.random
    method = random.choice(["POST", "POST", "PATCH", "PATCH", "DELETE", "UPSERT", "UPSERT"])
    if method == "UPSERT":
        key = random.choice([generator.random_id(table), generator.random_id(table), "new"])
        return method, table.name, f"sysparm_key={KEY}", generator.random_body(table) | {KEY: key}
    query = random.choice(["", "on_error=continue"])
    if method != "POST" and random.random() < 0.5:
        body: Any = {"sysparm_query": generator.random_query(table) or "^", "expected": random.choice([0, 1, 2, 3])}
        return method, table.name, query, body | ({"values": generator.random_body(table)} if method == "PATCH" else {})
    bodies = [generator.random_body(table) for _ in range(random.randint(1, 4))]
    if method == "POST":
        repeats_body = random.random() < 0.5
        return method, table.name, query, [bodies[0]] * 3 if repeats_body else bodies
    items = [{**(body if method == "PATCH" else {}), "sys_id": generator.random_id(table)} for body in bodies]
    return method, table.name, query, items


def collect_results(pair: Pair, world: World, steps: list[BulkStep]) -> tuple[list[Any], Any]:
    with rollback_afterwards(), active_catalogue(pair.catalogue):
        insert_world(world)
        responses = []
        for method, table, query, body in steps:
            view, method = (UpsertView, "POST") if method == "UPSERT" else (BulkView, method)
            response = send_to_view(view, pair.caller, query, method, body, table=table)
            responses.append((response.status_code, response.content))
        return responses, visible_values(load_world(pair.catalogue), pair.caller, make_moment(pair.caller.id))


def check_pair(seed: int) -> Counter[str]:
    """Compare both databases, and return the number of successful requests by method."""
    random = Random(seed)
    pair = with_key_column(pairs.make_pair(random, may_write=True))
    generator = ProgramGenerator(random, pair)
    steps = [random_step(generator, table) for table in random.choices(list(pair.catalogue.tables.values()), k=5)]
    with stored_tables(pair):
        for name, table in pair.catalogue.tables.items():
            if len(table.lineage) == 1:
                create_unique_index(pair.catalogue, name, KEY)
        first_responses, first_values = collect_results(pair, pair.first, steps)
        second_responses, second_values = collect_results(pair, pair.second, steps)
    for step, first, second in zip(steps, first_responses, second_responses, strict=True):
        assert first == second, f"seed {seed}: {step}"
        assert first[0] < 500, f"seed {seed}: {step} {first}"
    assert first_values == second_values, f"seed {seed}: {steps}"
    return Counter(step[0] for step, (status, _) in zip(steps, first_responses, strict=True) if status < 300)


def test_hidden_data_changes_no_bulk_response() -> None:
    success_counts = sum(map(check_pair, range(PAIR_COUNT)), Counter[str]())
    assert success_counts.total() > PAIR_COUNT and success_counts["UPSERT"] > PAIR_COUNT / 5, success_counts


@pytest.mark.nightly
def test_hidden_data_changes_no_bulk_response_in_many_pairs() -> None:
    for seed in range(PAIR_COUNT, PAIR_COUNT + scaled_count(NIGHTLY_PAIR_COUNT)):
        check_pair(seed)

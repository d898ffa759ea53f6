"""Hidden records and values change no response to bulk requests, and nothing that can be read after them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tableapi.catalogue.definitions import Table
from tableapi.http.bulk_views import BulkView, UpsertView
from tests.support.nightly import scaled_count
from tests.tableapi.laws.storage import active_catalogue, load_world, rollback_afterwards
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair, visible_values
from tests.tableapi.noninterference.programs import ProgramGenerator
from tests.tableapi.noninterference.runner import insert_world, send_to_view, stored_tables
from tests.tableapi.oracle import World
from tests.tableapi.oracle.alphabets import make_moment

pytestmark = pytest.mark.django_db
PAIR_COUNT, NIGHTLY_PAIR_COUNT = 50, 3_000
# Method, table, query string, body.
BulkStep = tuple[str, str, str, Any]


def random_step(generator: ProgramGenerator, table: Table) -> BulkStep:
    random = generator.random
    method = random.choice(["POST", "POST", "PATCH", "PATCH", "DELETE", "UPSERT", "UPSERT"])
    if method == "UPSERT":
        keys = [column.name for column in table.columns.values() if column.is_unique] or list(table.columns)
        key = random.choice(keys)
        return method, table.name, f"sysparm_key={key}", generator.random_body(table)
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


def check_pair(seed: int) -> int:
    """Compare both databases, and return the number of successful requests."""
    random = Random(seed)
    pair = pairs.make_pair(random, may_write=True)
    generator = ProgramGenerator(random, pair)
    steps = [random_step(generator, table) for table in random.choices(list(pair.catalogue.tables.values()), k=5)]
    with stored_tables(pair):
        first_responses, first_values = collect_results(pair, pair.first, steps)
        second_responses, second_values = collect_results(pair, pair.second, steps)
    for step, first, second in zip(steps, first_responses, second_responses, strict=True):
        assert first == second, f"seed {seed}: {step}"
        assert first[0] < 500, f"seed {seed}: {step} {first}"
    assert first_values == second_values, f"seed {seed}: {steps}"
    return sum(status < 300 for status, _ in first_responses)


def test_hidden_data_changes_no_bulk_response() -> None:
    assert sum(map(check_pair, range(PAIR_COUNT))) > PAIR_COUNT


@pytest.mark.nightly
def test_hidden_data_changes_no_bulk_response_in_many_pairs() -> None:
    for seed in range(PAIR_COUNT, PAIR_COUNT + scaled_count(NIGHTLY_PAIR_COUNT)):
        check_pair(seed)

"""Hidden records and values change no statistics."""

from __future__ import annotations

from random import Random

import pytest
from django.db import connection

from tableapi.catalogue.definitions import Table
from tableapi.http.entry_views import StatisticsView
from tests.support.nightly import scaled_count
from tests.tableapi.laws.storage import active_catalogue, rollback_afterwards
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair
from tests.tableapi.noninterference.programs import ProgramGenerator
from tests.tableapi.noninterference.runner import insert_world, query_string, send_to_view, stored_tables
from tests.tableapi.oracle import World

pytestmark = pytest.mark.django_db
PAIR_COUNT, NIGHTLY_PAIR_COUNT = 50, 3_000
REQUESTS_PER_PAIR = 12
FUNCTIONS = ("sum", "avg", "min", "max", "count_distinct")


def random_params(generator: ProgramGenerator, table: Table) -> dict[str, str]:
    random = generator.random

    def random_path() -> str:
        return generator.random_field_path(table)

    params = {"sysparm_count": "1", "sysparm_query": generator.random_query(table)}
    for function in random.sample(FUNCTIONS, random.choice([0, 1, 1, 2])):
        params[f"sysparm_{function}_fields"] = random_path()
    if random.random() < 0.7:
        params["sysparm_group_by"] = ",".join(random_path() for _ in range(random.choice([1, 1, 2])))
    if random.random() < 0.3:
        params["sysparm_having"] = random.choice([f"{random.choice(FUNCTIONS)}({random_path()})>0", "count>1"])
    if random.random() < 0.3:
        params["sysparm_order_by"] = random.choice([f"-{random.choice(FUNCTIONS)}({random_path()})", "-count"])
    if random.random() < 0.3:
        params["sysparm_display_value"] = random.choice(["1", "all"])
    return params


def collect_responses(pair: Pair, world: World, requests: list[tuple[str, dict[str, str]]]) -> list[tuple[int, bytes]]:
    responses = []
    with rollback_afterwards(), active_catalogue(pair.catalogue):
        insert_world(world)
        for table, params in requests:
            response = send_to_view(StatisticsView, pair.caller, query_string(params), table=table)
            responses.append((response.status_code, response.content))
            assert not connection.needs_rollback, (params, response.content)
    return responses


def check_pair(seed: int) -> int:
    """Compare both databases, and return the number of successful requests."""
    random = Random(seed)
    pair = pairs.make_pair(random)
    generator = ProgramGenerator(random, pair)
    tables = list(pair.catalogue.tables.values())
    requests = [(table.name, random_params(generator, table)) for table in random.choices(tables, k=REQUESTS_PER_PAIR)]
    with stored_tables(pair):
        responses = [collect_responses(pair, world, requests) for world in (pair.first, pair.second)]
    for request, first, second in zip(requests, *responses, strict=True):
        assert first == second, f"seed {seed}: {request}"
        assert first[0] in (200, 400, 404), f"seed {seed}: {request} {first}"
    return sum(status == 200 for status, _ in responses[0])


def test_hidden_data_changes_no_statistics() -> None:
    assert sum(map(check_pair, range(PAIR_COUNT))) > PAIR_COUNT


@pytest.mark.nightly
def test_hidden_data_changes_no_statistics_in_many_pairs() -> None:
    for seed in range(PAIR_COUNT, PAIR_COUNT + scaled_count(NIGHTLY_PAIR_COUNT)):
        check_pair(seed)

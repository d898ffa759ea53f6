"""Hidden records and values change no export."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import pytest
from django.core.signals import request_finished

from tableapi.read import export
from tableapi.urls import LIST_VIEW
from tests.support.nightly import scaled_count
from tests.tableapi.laws.storage import active_catalogue, rollback_afterwards
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair
from tests.tableapi.noninterference.programs import ProgramGenerator
from tests.tableapi.noninterference.runner import (
    REQUEST_FACTORY,
    call_view,
    insert_world,
    query_string,
    stored_tables,
)
from tests.tableapi.oracle import World

pytestmark = pytest.mark.django_db
PAIR_COUNT, NIGHTLY_PAIR_COUNT = 25, 2_000
ExportRequest = tuple[str, str, dict[str, str]]


def random_request(generator: ProgramGenerator, random: Random) -> ExportRequest:
    table = random.choice(list(generator.pair.catalogue.tables.values()))
    fields = ",".join(generator.random_field_path(table) for _ in range(3))
    params = {"sysparm_query": generator.random_query(table), "sysparm_fields": fields}
    if random.random() < 0.5:
        params["sysparm_display_value"] = "1"
    return table.name, random.choice([export.CSV, export.JSON_LINES]), params


def collect_responses(pair: Pair, world: World, requests: list[ExportRequest]) -> list[tuple[int, bytes]]:
    responses = []
    with rollback_afterwards(), active_catalogue(pair.catalogue):
        insert_world(world)
        for table, media_type, params in requests:
            request = REQUEST_FACTORY.generic(
                "GET", "/", QUERY_STRING=query_string(params), headers={"Accept": media_type}
            )
            response = call_view(LIST_VIEW, pair.caller, request, table=table)
            responses.append((response.status_code, b"".join(response)))
            with patch.object(request_finished, "send"):  # it would close the connection
                response.close()
    return responses


def check_pair(seed: int) -> int:
    """Compare both databases, and return the number of exported lines."""
    random = Random(seed)
    pair = pairs.make_pair(random)
    generator = ProgramGenerator(random, pair)
    requests = [random_request(generator, random) for _ in range(8)]
    with stored_tables(pair):
        responses = [collect_responses(pair, world, requests) for world in (pair.first, pair.second)]
    for request, first, second in zip(requests, *responses, strict=True):
        assert first == second, f"seed {seed}: {request}"
        assert first[0] in (200, 400, 404), f"seed {seed}: {request} {first}"
    return sum(body.count(b"\n") for status, body in responses[0] if status == 200)


def test_hidden_data_changes_no_export() -> None:
    assert sum(map(check_pair, range(PAIR_COUNT))) > PAIR_COUNT


@pytest.mark.nightly
def test_hidden_data_changes_no_export_in_many_pairs() -> None:
    for seed in range(PAIR_COUNT, PAIR_COUNT + scaled_count(NIGHTLY_PAIR_COUNT)):
        check_pair(seed)

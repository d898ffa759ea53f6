"""What an administrator sees of another user's records does not depend on what the administrator may not read.

The only exception is the number of hidden records. The viewer here has no more rights than any caller, so that rules
hide more from them than from an administrator.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from system.errors import ServiceError
from tests.support.nightly import scaled_count
from tests.tableapi.laws.storage import active_catalogue, rollback_afterwards
from tests.tableapi.laws.test_explanations import user_view
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.pairs import Pair
from tests.tableapi.noninterference.runner import insert_world, stored_tables
from tests.tableapi.oracle import Caller, World
from tests.tableapi.oracle.alphabets import ROLE_IDS, USER_IDS
from workspace.forms.parameters import parameters

PAIR_COUNT, NIGHTLY_PAIR_COUNT = 150, 3_000


def observe(world: World, viewer: Caller, user: Caller, queries: dict[str, list[str]]) -> list[Any]:
    observations: list[Any] = []
    with rollback_afterwards(), active_catalogue(world.catalogue) as catalogue:
        insert_world(world)
        for name in catalogue.tables:
            for query in ["", *queries[name]]:
                view = user_view(catalogue, viewer, user, name)
                try:
                    records = view.read_page(parameters(sysparm_query=query))
                except ServiceError as error:
                    observations.append((name, query, error.message))
                    continue
                observations.append((name, query, records, view.hides_records or view.hidden_count))
    return observations


def random_queries(random: Random, pair: Pair) -> dict[str, list[str]]:
    queries = {}
    for name, table in pair.catalogue.tables.items():
        columns = [column.name for column in table.columns.values() if column.column_type.is_sortable]
        chosen = random.sample(columns, 3)
        queries[name] = [f"{chosen[0]}ISEMPTY", f"ORDERBY{chosen[1]}", f"{chosen[2]}ISNOTEMPTY^ORDERBYDESC{chosen[0]}"]
    return queries


def check_pair(seed: int) -> bool:
    random = Random(seed)
    pair = pairs.make_pair(random)
    if not pair.has_differences:
        return False
    roles = frozenset(random.choice([("agent",), ("clerk",), ("agent", "clerk"), ("admin",)]))
    other = random.choice([user_id for user_id in USER_IDS if user_id != pair.caller.id])
    user = replace(pair.caller, id=other, role_names=roles, role_ids=tuple(ROLE_IDS[name] for name in roles))
    queries = random_queries(random, pair)
    with stored_tables(pair):
        first, second = (observe(world, pair.caller, user, queries) for world in (pair.first, pair.second))
    for one, two in zip(first, second, strict=True):
        assert one == two, f"seed {seed}\n{one}\n{two}\n{pair.caller}\n{user}"
    return any(len(observation) == 4 and observation[2] for observation in first)


def test_hidden_data_changes_nothing_but_the_number_of_hidden_records() -> None:
    assert sum(map(check_pair, range(PAIR_COUNT))) > PAIR_COUNT / 10


@pytest.mark.nightly
@pytest.mark.parametrize("first_seed", range(PAIR_COUNT, PAIR_COUNT + scaled_count(NIGHTLY_PAIR_COUNT), 500))
def test_hidden_data_changes_nothing_in_many_pairs(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 500):
        check_pair(seed)

"""Every operator returns the expected records for every type, and its negation returns all others."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system.encoded_query import Condition, Group, Query, Term
from tests.tableapi.laws.list_requests import (
    ListRequest,
    ListResponse,
    expected_ids,
    failure_report,
    fuzz_settings,
    send_query,
)
from tests.tableapi.laws.storage import store_groups, stored_world
from tests.tableapi.oracle import Caller
from tests.tableapi.oracle.alphabets import GROUP_IDS, ROLE_IDS, USER_IDS
from tests.tableapi.oracle.queries import OPERATOR_TYPE_PAIRS, condition_for_pair_strategy
from tests.tableapi.oracle.worlds import full_world

AGENT = Caller(USER_IDS[0], frozenset({"agent"}), (GROUP_IDS[0],), (ROLE_IDS["agent"],))
FULL_WORLD = full_world()
ALPHA = FULL_WORLD.catalogue.tables["alpha"]
ALPHA_IDS = sorted(row["sys_id"] for row in FULL_WORLD.records(ALPHA))


def request_of(condition: Condition) -> ListRequest:
    return ListRequest(AGENT, "alpha", Query((Group((Term((condition,)),)),)))


def check_every_pair(condition_count: int, example_count: int) -> None:
    """Check all pairs in one stored world, with `condition_count` conditions per pair and example."""
    conditions = st.tuples(
        *(
            st.lists(
                condition_for_pair_strategy(FULL_WORLD, ALPHA, pair), min_size=condition_count, max_size=condition_count
            )
            for pair in OPERATOR_TYPE_PAIRS
        )
    )
    with stored_world(FULL_WORLD) as world:
        store_groups(AGENT)

        def check_conditions(conditions_of_pairs: Any) -> None:
            for condition in chain.from_iterable(conditions_of_pairs):
                request = request_of(condition)
                response = send_query(world, AGENT, "alpha", request.text)
                assert isinstance(response, ListResponse), failure_report(world, request)
                assert response.ids == expected_ids(world, request), failure_report(world, request)
                if negation := condition.row.complement:
                    negated_response = send_query(
                        world, AGENT, "alpha", request_of(Condition(condition.path, negation, condition.value)).text
                    )
                    assert isinstance(negated_response, ListResponse), failure_report(world, request)
                    assert sorted(response.ids + negated_response.ids) == ALPHA_IDS, failure_report(world, request)

        fuzz_settings(example_count)(given(conditions)(check_conditions))()


def test_operator_and_negation_are_complementary() -> None:
    assert len(OPERATOR_TYPE_PAIRS) > 200
    check_every_pair(condition_count=1, example_count=4)


@pytest.mark.nightly
def test_operator_and_negation_are_complementary_for_many_values() -> None:
    check_every_pair(condition_count=1, example_count=300)

"""The test is tested: every fault of the list is found, by few enough pairs of databases."""

from __future__ import annotations

import pytest

from tests.tableapi.noninterference import renaming, running
from tests.tableapi.noninterference.leaks import LEAKS, switched_on

FINDERS = {"pairs": running.difference, "names": renaming.difference}
# The faults that few requests can show: a seed that does is close behind.
BEGIN: dict[str, int] = {
    "a_filter_takes_every_column": 20,
    "a_filter_looks_past_the_guard_of_a_column": 59,
    "words_are_searched_in_every_column": 20,
    "the_other_column_of_a_comparison_is_not_guarded": 103,
    "a_record_is_called_by_a_name_that_is_hidden": 93,
    "a_record_is_found_by_its_id_whatever_the_rules": 17,
    "hidden_records_are_counted": 24,
    "a_walk_begins_at_every_reference": 40,
    "hidden_records_have_a_display_value": 19,
    "children_are_read_by_the_rules_of_their_parent": 74,
    "reading_a_hidden_record_is_forbidden_and_not_missing": 17,
    "a_hidden_value_sent_as_it_stands_counts_as_unchanged": 99,
    "a_record_that_is_replaced_loses_what_is_hidden": 107,
    "a_deletion_tells_of_hidden_references": 73,
}
AT_MOST = 150


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_found(name: str) -> None:
    begin = BEGIN.get(name, 0)
    find = FINDERS[LEAKS[name][1]]
    with switched_on(name):
        found = next((seed for seed in range(begin, begin + AT_MOST) if find(seed) is not None), None)
    assert found is not None, f"{name} was not found by {AT_MOST} pairs from {begin} on"


@pytest.mark.nightly
@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_found_from_anywhere(name: str) -> None:
    find = FINDERS[LEAKS[name][1]]
    with switched_on(name):
        assert any(find(seed) for seed in range(10_000, 11_000))


def test_there_are_enough_leaks() -> None:
    assert len(LEAKS) >= 20


@pytest.mark.parametrize("seed", range(0, 100, 10))
def test_a_column_that_is_hidden_is_like_one_that_is_missing(seed: int) -> None:
    for each in range(seed, seed + 10):
        found = renaming.difference(each)
        assert found is None, f"seed {each}\n{found}"

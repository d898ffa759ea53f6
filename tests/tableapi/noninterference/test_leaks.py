"""The test is tested: every fault of the list is found, by few enough pairs of databases."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tableapi.noninterference import duties, privileges, renaming, running, whispers
from tests.tableapi.noninterference.leaks import LEAKS, switched_on

FINDERS: dict[str, Callable[[int], object]] = {
    "pairs": running.difference,
    "names": renaming.difference,
    "duties": duties.violation,
    "whispers": whispers.violation,
    "privileges": privileges.violation,
}
# The faults that few requests can show: a seed that does is close behind.
BEGIN: dict[str, int] = {
    "a_filter_looks_past_the_guard_of_a_column": 103,
    "sorting_takes_every_column": 22,
    "sorting_looks_past_the_guard_of_a_column": 241,
    "a_view_shows_every_column": 55,
    "words_are_searched_in_every_column": 80,
    "the_other_column_of_a_comparison_is_not_guarded": 49,
    "a_record_is_called_by_a_name_that_is_hidden": 163,
    "a_walk_ends_at_every_record": 55,
    "a_walk_begins_at_every_reference": 22,
    "hidden_records_have_a_display_value": 40,
    "a_link_stands_only_where_a_record_is": 21,
    "changing_a_hidden_record_is_forbidden_and_not_missing": 32,
    "a_hidden_value_sent_as_it_stands_counts_as_unchanged": 145,
    "a_record_that_is_replaced_loses_what_is_hidden": 109,
    "a_deletion_tells_of_hidden_references": 74,
}
AT_MOST = 150


@pytest.mark.parametrize("name", LEAKS)
def test_leak_is_detected(name: str) -> None:
    begin = BEGIN.get(name, 0)
    find = FINDERS[LEAKS[name].by]
    with switched_on(name):
        found = next((seed for seed in range(begin, begin + AT_MOST) if find(seed) is not None), None)
    assert found is not None, f"{name} was not found by {AT_MOST} pairs from {begin} on"


@pytest.mark.nightly
@pytest.mark.parametrize("name", LEAKS)
def test_leak_is_detected_from_any_seed(name: str) -> None:
    find = FINDERS[LEAKS[name].by]
    with switched_on(name):
        assert any(find(seed) for seed in range(10_000, 11_000))


def test_every_abuse_case_has_a_leak() -> None:
    cases = {case for leak in LEAKS.values() for case in leak.cases}
    assert sorted(cases) == [f"B{number:02d}" for number in range(1, 31)]
    assert len(LEAKS) >= 20


@pytest.mark.parametrize("seed", range(0, 100, 10))
def test_hidden_column_is_like_a_missing_one(seed: int) -> None:
    for each in range(seed, seed + 10):
        found = renaming.difference(each)
        assert found is None, f"seed {each}\n{found}"


@pytest.mark.parametrize("seed", range(0, 100, 20))
def test_no_write_exceeds_its_rules(seed: int) -> None:  # B22 B23 B25 B26
    for each in range(seed, seed + 20):
        found = duties.violation(each)
        assert found is None, f"seed {each}\n{found}"


@pytest.mark.nightly
def test_no_write_of_many_exceeds_its_rules() -> None:
    for each in range(100, 5000):
        found = duties.violation(each)
        assert found is None, f"seed {each}\n{found}"


def test_no_response_names_hidden_data() -> None:  # B17 B19
    for each in range(150):
        found = whispers.violation(each)
        assert found is None, f"seed {each}\n{found}"


def test_system_tables_require_a_role_to_change() -> None:  # B27
    for each in range(60):
        found = privileges.violation(each)
        assert found is None, f"seed {each}\n{found}"

"""Tests the checks: each leak is detected within a few pairs of databases, and without leaks they find nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tableapi.noninterference import (
    deletion_log,
    name_leaks,
    privileges,
    renaming,
    runner,
    shared_state,
    write_checks,
)
from tests.tableapi.noninterference.leaks import LEAKS, active_leak

FINDERS: dict[str, Callable[[int], object]] = {
    "pairs": runner.find_difference,
    "names": renaming.find_difference,
    "write_checks": write_checks.find_violation,
    "name_leaks": name_leaks.find_violation,
    "privileges": privileges.find_violation,
    "shared_state": shared_state.find_violation,
    "deletion_log": deletion_log.find_violation,
}
# For leaks that few requests reveal, a seed shortly before one that reveals the leak.
FIRST_SEEDS: dict[str, int] = {
    "filter_ignores_the_guard_of_a_column": 103,
    "sorting_accepts_every_column": 22,
    "sorting_ignores_the_guard_of_a_column": 241,
    "view_shows_every_column": 55,
    "words_are_searched_in_every_column": 80,
    "other_column_of_a_comparison_is_not_guarded": 49,
    "reference_accepts_a_hidden_display_value": 163,
    "join_reaches_hidden_records": 55,
    "join_follows_hidden_references": 22,
    "hidden_records_have_a_display_value": 40,
    "link_is_shown_only_for_an_existing_record": 21,
    "changing_a_hidden_record_returns_403": 32,
    "hidden_value_that_equals_the_sent_one_counts_as_unchanged": 145,
    "replacing_a_record_clears_hidden_values": 109,
    "deletion_reveals_hidden_references": 74,
}
MAX_SEEDS = 150


@pytest.mark.parametrize("name", LEAKS)
def test_leak_is_detected(name: str) -> None:
    first_seed = FIRST_SEEDS.get(name, 0)
    find = FINDERS[LEAKS[name].finder]
    with active_leak(name):
        leaking_seed = next(
            (seed for seed in range(first_seed, first_seed + MAX_SEEDS) if find(seed) is not None), None
        )
    assert leaking_seed is not None, f"{name} was not detected by {MAX_SEEDS} pairs from seed {first_seed}"


@pytest.mark.nightly
@pytest.mark.parametrize("name", LEAKS)
def test_leak_is_detected_from_any_seed(name: str) -> None:
    find = FINDERS[LEAKS[name].finder]
    with active_leak(name):
        assert any(find(seed) for seed in range(10_000, 11_000))


def test_every_abuse_case_has_a_leak() -> None:
    cases = {case for leak in LEAKS.values() for case in leak.cases}
    assert sorted(cases) == [f"B{number:02d}" for number in range(1, 31)]
    assert len(LEAKS) >= 20


@pytest.mark.parametrize("seed", range(0, 100, 10))
def test_hidden_column_is_like_a_missing_one(seed: int) -> None:
    for case_seed in range(seed, seed + 10):
        difference = renaming.find_difference(case_seed)
        assert difference is None, f"seed {case_seed}\n{difference}"


@pytest.mark.parametrize("seed", range(0, 100, 20))
def test_writes_do_only_what_the_rules_allow(seed: int) -> None:  # B22 B23 B25 B26
    for case_seed in range(seed, seed + 20):
        violation = write_checks.find_violation(case_seed)
        assert violation is None, f"seed {case_seed}\n{violation}"


@pytest.mark.nightly
def test_writes_do_only_what_the_rules_allow_in_many_pairs() -> None:
    for case_seed in range(100, 5000):
        violation = write_checks.find_violation(case_seed)
        assert violation is None, f"seed {case_seed}\n{violation}"


def test_no_response_names_hidden_data() -> None:  # B17 B19
    for case_seed in range(150):
        violation = name_leaks.find_violation(case_seed)
        assert violation is None, f"seed {case_seed}\n{violation}"


def test_product_tables_require_a_role_to_change() -> None:  # B27
    for case_seed in range(60):
        violation = privileges.find_violation(case_seed)
        assert violation is None, f"seed {case_seed}\n{violation}"


SEEDS = [0, 20, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(40, 2000, 20))]


@pytest.mark.parametrize("seed", SEEDS)
def test_state_of_other_callers_changes_no_response(seed: int) -> None:  # B24 B54
    """Stored responses and deferred records of a caller who may read more reveal nothing."""
    for case_seed in range(seed, seed + 20):
        violation = shared_state.find_violation(case_seed)
        assert violation is None, f"seed {case_seed}\n{violation}"


@pytest.mark.parametrize("seed", SEEDS)
def test_deletion_log_reveals_only_readable_data(seed: int) -> None:  # B13 B28
    for case_seed in range(seed, seed + 20):
        violation = deletion_log.find_violation(case_seed)
        assert violation is None, f"seed {case_seed}\n{violation}"

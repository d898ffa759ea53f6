"""No request distinguishes two databases that differ only in what the caller may not read.

The tests compare the status, every header except the date and the request id, the body byte by byte, and finally
everything that the caller may read. Declared exceptions:

- `sys_version`, `sys_updated_at` and `sys_updated_by` of a visible record reveal that it was changed;
- a unique column reveals that a value exists, so none is generated;
- a write reveals a hidden column if a rule tests that column, so in databases that are written to, rules test only a
  column that this caller may not change.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.support.nightly import scaled_count
from tests.tableapi.noninterference import pairs
from tests.tableapi.noninterference.runner import find_difference

PAIR_COUNT, NIGHTLY_PAIR_COUNT = 500, 20_000
# Dropped tables fill the PostgreSQL catalogue until the end of a test and slow it down.
PAIRS_PER_TEST = 500


def test_hidden_data_changes_no_response() -> None:
    for seed in range(PAIR_COUNT):
        difference = find_difference(seed)
        assert difference is None, f"seed {seed}\n{difference}"


@pytest.mark.nightly
@pytest.mark.parametrize("first_seed", range(PAIR_COUNT, PAIR_COUNT + scaled_count(NIGHTLY_PAIR_COUNT), PAIRS_PER_TEST))
def test_hidden_data_changes_no_response_in_many_pairs(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + PAIRS_PER_TEST):
        difference = find_difference(seed)
        assert difference is None, f"seed {seed}\n{difference}"


def test_databases_of_most_pairs_differ() -> None:
    """Two equal databases would pass every test."""
    generated_pairs = [pairs.make_pair(Random(seed)) for seed in range(40)]
    assert sum(pair.has_differences for pair in generated_pairs) > 25

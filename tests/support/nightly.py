"""The long tests: their seed, and a smaller share of them for a try."""

import os
import random


def share_of(number: int) -> int:
    """All of them, or as much as SVC_TEST_SHARE says, such as 0.1.

    >>> share_of(50)
    50
    """
    return max(1, round(number * float(os.environ.get("SVC_TEST_SHARE") or 1)))


def run_seed() -> int:
    """Another one each time, unless SVC_TEST_SEED repeats one; a test that fails shows it with its output."""
    seed = int(os.environ.get("SVC_TEST_SEED") or random.SystemRandom().randrange(10**6))
    print(f"SVC_TEST_SEED={seed}")
    return seed

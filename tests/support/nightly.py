"""The seed of the long tests, and their reduced length."""

import os
import random


def scaled_count(count: int) -> int:
    """The count multiplied by SVC_TEST_SHARE, such as 0.1, if that is set.

    >>> scaled_count(50)
    50
    """
    return max(1, round(count * float(os.environ.get("SVC_TEST_SHARE") or 1)))


def choose_seed() -> int:
    """A random seed, or SVC_TEST_SEED to repeat a run. It is printed, so a failed test shows it."""
    seed = int(os.environ.get("SVC_TEST_SEED") or random.SystemRandom().randrange(10**6))
    print(f"SVC_TEST_SEED={seed}")
    return seed

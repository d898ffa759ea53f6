"""Stops work that takes too long while a caller waits, and leaves it to the worker."""

# Chosen: up to this length, splitting and indexing a text fit into a request with its statement timeout of 5 s.
LONG_TEXT = 2_000_000
LONG_TEXT_S = 60.0


class OutOfTime(Exception):
    """The caller's time is over; the worker continues."""


def check_time_budget(characters: int | None, left_s: float) -> None:
    """Raises OutOfTime for a text that takes longer than the time left.

    >>> check_time_budget(LONG_TEXT, 20.0), check_time_budget(LONG_TEXT + 1, float("inf"))
    (None, None)
    >>> check_time_budget(LONG_TEXT + 1, 20.0)
    Traceback (most recent call last):
    collections_app.ingest.time_budget.OutOfTime
    """
    if (characters or 0) > LONG_TEXT and left_s < LONG_TEXT_S:
        raise OutOfTime

"""Stops work that takes too long while a caller waits, and leaves it to the worker."""

# Chosen: up to this length, splitting and indexing a text fit into a request with its statement timeout of 5 s.
LONG_TEXT_CHARACTERS = 2_000_000
MIN_LONG_TEXT_S = 60.0


class OutOfTime(Exception):
    """The caller's time is over; the worker continues."""


def check_time_budget(characters: int | None, remaining_s: float) -> None:
    """Raises OutOfTime for a text that takes longer than the time left.

    >>> check_time_budget(LONG_TEXT_CHARACTERS, 20.0), check_time_budget(LONG_TEXT_CHARACTERS + 1, float("inf"))
    (None, None)
    >>> check_time_budget(LONG_TEXT_CHARACTERS + 1, 20.0)
    Traceback (most recent call last):
    collections_app.ingest.time_budget.OutOfTime
    """
    if (characters or 0) > LONG_TEXT_CHARACTERS and remaining_s < MIN_LONG_TEXT_S:
        raise OutOfTime

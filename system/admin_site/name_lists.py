"""Shortens lists of names on admin pages, which can contain thousands."""

from collections.abc import Sequence

MAX_NAMES_SHOWN = 50


def shorten_names(names: Sequence[str], max_names: int = MAX_NAMES_SHOWN) -> list[str]:
    """The first names, and how many more there are.

    >>> shorten_names(["a", "b", "c", "d"], 2), shorten_names(["a", "b"], 2)
    (['a', 'b', '… and 2 more'], ['a', 'b'])
    """
    omitted_count = len(names) - max_names
    return [*names[:max_names], f"… and {omitted_count:,} more"] if omitted_count > 0 else list(names)


def summarize_names(names: Sequence[str], max_names: int) -> str:
    """The first names in one line. The caller reads one more than are shown, so the total is not known.

    >>> summarize_names(["a", "b", "c"], 2), summarize_names(["a", "b"], 2)
    ('a, b and others', 'a, b')
    """
    return ", ".join(names[:max_names]) + (" and others" if len(names) > max_names else "")

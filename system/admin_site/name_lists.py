"""Shortens long lists of names on admin pages."""

from collections.abc import Sequence

MAX_NAMES_SHOWN = 50


def shorten_names(names: Sequence[str], max_names: int = MAX_NAMES_SHOWN) -> list[str]:
    """The first `max_names` names, and the number of omitted ones.

    >>> shorten_names(["a", "b", "c", "d"], 2), shorten_names(["a", "b"], 2)
    (['a', 'b', '… and 2 more'], ['a', 'b'])
    """
    omitted_count = len(names) - max_names
    return [*names[:max_names], f"… and {omitted_count:,} more"] if omitted_count > 0 else list(names)


def summarize_names(names: Sequence[str], max_names: int) -> str:
    """The first `max_names` names in one line. Pass one more name to add "and others", without counting all.

    >>> summarize_names(["a", "b", "c"], 2), summarize_names(["a", "b"], 2)
    ('a, b and others', 'a, b')
    """
    return ", ".join(names[:max_names]) + (" and others" if len(names) > max_names else "")

"""Shortens lists of names on admin pages, which can contain thousands."""

from collections.abc import Sequence

MAX_NAMED = 50


def named(names: Sequence[str], most: int = MAX_NAMED) -> list[str]:
    """The first names, and how many more there are.

    >>> named(["a", "b", "c", "d"], 2), named(["a", "b"], 2)
    (['a', 'b', '… and 2 more'], ['a', 'b'])
    """
    left = len(names) - most
    return [*names[:most], f"… and {left:,} more"] if left > 0 else list(names)


def first_of(names: Sequence[str], most: int) -> str:
    """The first names in one line. The caller reads one more than are shown, so the total is not known.

    >>> first_of(["a", "b", "c"], 2), first_of(["a", "b"], 2)
    ('a, b and others', 'a, b')
    """
    return ", ".join(names[:most]) + (" and others" if len(names) > most else "")

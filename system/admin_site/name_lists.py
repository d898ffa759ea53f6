"""Shortens lists of names on administration pages, where there may be thousands."""

from __future__ import annotations

from collections.abc import Sequence

MOST_NAMED = 50


def named(names: Sequence[str], most: int = MOST_NAMED) -> list[str]:
    """The first of them, and how many more there are.

    >>> named(["a", "b", "c", "d"], 2), named(["a", "b"], 2)
    (['a', 'b', '… and 2 more'], ['a', 'b'])
    """
    left = len(names) - most
    return [*names[:most], f"… and {left:,} more"] if left > 0 else list(names)


def first_of(names: Sequence[str], most: int) -> str:
    """The same in a line, of names that were asked for up to one more than are told: how many there are is not known.

    >>> first_of(["a", "b", "c"], 2), first_of(["a", "b"], 2)
    ('a, b and others', 'a, b')
    """
    return ", ".join(names[:most]) + (" and others" if len(names) > most else "")

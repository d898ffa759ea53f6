"""In charge of where in a passage the words of a query stand: the same words that found it, as character offsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection

from .words import Prepared, prepared_with_places

# For private use, so they stand in no prepared text.
START, STOP = "\ue000", "\ue001"
MARKED = """
    SELECT ts_headline(given.configuration::regconfig, given.words, given.query::tsquery, %s)
    FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY AS given (configuration, words, query, number)
    ORDER BY given.number
"""
OPTIONS = f"HighlightAll=true, StartSel={START}, StopSel={STOP}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text in its language, with the lexemes that are looked for."""

    text: str
    configuration: str
    lexemes: Sequence[str]


def highlights(passages: Sequence[Passage]) -> list[list[list[int]]]:
    """For each passage the places `[start, end]` of its words, in order, none touching another."""
    made = [prepared_with_places(each.text) for each in passages]
    asked = [number for number, each in enumerate(passages) if each.lexemes and each.text]
    found: list[list[list[int]]] = [[] for _ in passages]
    if not asked:
        return found
    given = [
        [passages[number].configuration for number in asked],
        [made[number].text for number in asked],
        [as_query(passages[number].lexemes) for number in asked],
    ]
    with connection.cursor() as cursor:
        cursor.execute(MARKED, [OPTIONS, *given])
        for number, (marked,) in zip(asked, cursor.fetchall(), strict=True):
            found[number] = _merged(places(marked, made[number]))
    return found


def as_query(lexemes: Iterable[str]) -> str:
    """Any of the lexemes, for `::tsquery`.

    >>> as_query(["fox", "o'clock"])
    "'fox' | 'o''clock'"
    """
    quoted = [each.replace("\\", "\\\\").replace("'", "''") for each in lexemes]
    return " | ".join([f"'{each}'" for each in quoted])


def places(marked: str, text: Prepared) -> list[tuple[int, int]]:
    """The marked words, counted back to the text that was made ready.

    >>> places(f"the {START}fox{STOP}", Prepared("the fox", range(7), range(1, 8)))
    [(4, 7)]
    """
    if marked.replace(START, "").replace(STOP, "") != text.text:
        return []
    found, at, start = [], 0, 0
    for character in marked:
        if character == START:
            start = at
        elif character == STOP:
            found.append((text.starts[start], text.ends[at - 1]))
        else:
            at += 1
    return found


def _merged(found: Iterable[tuple[int, int]]) -> list[list[int]]:
    """
    >>> _merged([(4, 6), (0, 2), (5, 7)])
    [[0, 2], [4, 7]]
    """
    merged: list[list[int]] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged

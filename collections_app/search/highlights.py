"""Finds the words of a query in a passage, as character offsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection

from collections_app.lexical.tokens import Prepared, prepared_with_places, stands_alone

# For private use, so they stand in no prepared text.
START, STOP = "\ue000", "\ue001"
MARKED = """
    SELECT ts_headline(given.configuration::regconfig, given.words, given.query::tsquery, %s)
    FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY AS given (configuration, words, query, number)
    ORDER BY given.number
"""
# Chosen: as many as 200 passages of the usual size have. A million in a script without spaces take six seconds.
MOST_CHARACTERS = 240_000
OPTIONS = f"HighlightAll=true, StartSel={START}, StopSel={STOP}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text in its language, with the lexemes that are looked for."""

    text: str
    configuration: str
    lexemes: Sequence[str]


def highlights(passages: Sequence[Passage]) -> list[list[list[int]]]:
    """For each passage the places `[start, end]` of its words, in order, none touching another. The best come first;
    where these are long, those at the end have none."""
    found: list[list[list[int]]] = [[] for _ in passages]
    asked = _affordable(passages)
    if not asked:
        return found
    made = [_made_ready(passages[number]) for number in asked]
    given = [
        [passages[number].configuration for number in asked],
        [each.text for each in made],
        [as_query(passages[number].lexemes) for number in asked],
    ]
    with connection.cursor() as cursor:
        cursor.execute(MARKED, [OPTIONS, *given])
        for number, text, (marked,) in zip(asked, made, cursor.fetchall(), strict=True):
            found[number] = _merged(places(marked, text))
    return found


def _made_ready(passage: Passage) -> Prepared:
    return prepared_with_places(passage.text, frozenset(filter(stands_alone, passage.lexemes)))


def _affordable(passages: Sequence[Passage]) -> list[int]:
    """The numbers of those to mark."""
    left, found = MOST_CHARACTERS, []
    for number, each in enumerate(passages):
        if each.lexemes and each.text:
            left -= len(each.text)
            if left < 0:
                break
            found.append(number)
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

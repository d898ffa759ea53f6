"""The few values that generated records and queries are made of, so that they meet: "a tiny alphabet, so that
collisions happen".

Kept out on purpose, since they are questions about the database and not about us: letters whose lower case is longer
or depends on the neighbours (İ, Σ), markup within wysiwyg texts, and words of ARE that are more than [a-z]+.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from system.encoded_query import Moment
from tableapi.catalogue.definitions import TEXT_TYPES, Column

from .literals import family
from .world import World, is_empty, shown

NOW = datetime(2024, 5, 31, 12, 0, 30, tzinfo=UTC)

USER_IDS = ("160000000000000001", "160000000000000002")
GROUP_IDS = ("160000000000000011", "160000000000000012")
ROLE_IDS = {"agent": "160000000000000021", "clerk": "160000000000000022", "admin": "160000000000000023"}
NOBODY = "160000000000000099"  # no record has this id
KNOWN_IDS = (*USER_IDS, *GROUP_IDS, ROLE_IDS["agent"], NOBODY)

TEXTS = [
    "a", "A", "ab", "aB", "b", "B", "ba", "д", "Д", "é", "É", "1", "10", "9", "a b", " a",
    "%", "a%b", "_", "a_b", "\\", "a\\b", "x^y", "a)", "(a", "'", '"', "{", "}", "--",
]  # fmt: skip
WORDS = ["fox", "Fox", "red", "red fox", "RED ox", "ox", "redfox"]

INSTANTS = [
    datetime(2023, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2024, 1, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 0, 30, tzinfo=UTC),
    datetime(2024, 4, 30, 12, 0, 30, tzinfo=UTC),
    datetime(2024, 5, 30, 12, 0, 30, tzinfo=UTC),
    datetime(2024, 5, 31, tzinfo=UTC),
    datetime(2024, 5, 31, 11, 0, 30, tzinfo=UTC),
    datetime(2024, 5, 31, 12, 0, 29, 999999, tzinfo=UTC),
    NOW,
    datetime(2024, 5, 31, 12, 0, 30, 500000, tzinfo=UTC),
    datetime(2024, 5, 31, 12, 0, 31, tzinfo=UTC),
    datetime(2024, 5, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2024, 6, 1, tzinfo=UTC),
    datetime(2024, 12, 30, 6, 7, 8, tzinfo=UTC),
]
DATES = [
    date(2023, 12, 31), date(2024, 1, 1), date(2024, 2, 29), date(2024, 4, 30), date(2024, 5, 30),
    date(2024, 5, 31), date(2024, 6, 1), date(2024, 6, 30), date(2024, 12, 30),
]  # fmt: skip

CHOICES = ["1", "2", "10", "a", "A", "д"]

STORED: dict[str, list[Any]] = {
    "string": [None, "", *TEXTS],
    "text": [None, "", *TEXTS],
    "wysiwyg": [None, "", "<p></p>", *(f"<p>{text}</p>" for text in TEXTS), "<b>a</b>b"],
    "integer": [None, -1, 0, 1, 2, 10],
    "decimal": [None, Decimal(-1), Decimal(0), Decimal(1), Decimal("1.5"), Decimal("1.50"), Decimal(2), Decimal(10)],
    "boolean": [None, True, False],
    "datetime": [None, *INSTANTS],
    "date": [None, *DATES],
    "choice": [None, *CHOICES],
    "json": [None, "", [], {}, {"a": 1}, "a", 0, False, [1]],
    "password": [None, "pa", "pb"],
    "secret": [None, "sa", "sb"],
}

NUMBERS = ["-1", "0", "1", "2", "9", "10"]
FRACTIONS = ["1.0", "1.5"]
TIMES = [
    "2023-12-31", "2024-01-01", "2024-02-29", "2024-05-31", "2024-06-01", "2024-06-30", "2024-12-30",
    "2024-05-31 12:00:30", "2024-05-31 12:00", "2024-05-31T12:00:30.7Z", "2024-05-31T15:00:30+03:00",
    "2024-05-31 12:00:29", "2024-06-01T01:00:00+02:00", "2024-05-31 23:59:59", "2023-12-31 23:59:59",
    "javascript:gs.now()", "javascript:gs.beginningOfToday()", "javascript:gs.endOfToday()",
    "javascript:gs.hoursAgo(1)", "javascript:gs.daysAgoEnd(1)", "javascript:gs.monthsAgoStart(-1)",
]  # fmt: skip
ME = "javascript:gs.getUserID()"

WRITTEN: dict[str, list[str]] = {
    **{name: [*TEXTS, *WORDS, ME] for name in TEXT_TYPES},
    "integer": NUMBERS,
    "decimal": [*NUMBERS, *FRACTIONS],
    "boolean": ["true", "false", "1", "0"],
    "datetime": TIMES,
    "date": TIMES,
    "choice": [*CHOICES, "B", "nosuch"],
    # No operator takes a value on these, so any text is as wrong as the next.
    "json": ["a"],
    "password": ["pa"],
    "secret": ["sa"],
}
# What is no value of the type.
STRANGE = {
    "integer": ["a", "1.0", "1.5", "9223372036854775808", "javascript:gs.now()"],
    "decimal": ["1,5", "javascript:gs.now()"],
    "boolean": ["yes", ME, "javascript:gs.now()"],
    "string": ["javascript:gs.now()"],
    "reference": ["javascript:gs.now()"],
    "list": ["a,,b"],
    "datetime": ["2024-02-30", ME],
    "date": ["a"],
}


def moment(user_id: str) -> Moment:
    return Moment(NOW, user_id)


def happens(draw: DrawFn, one_in: int) -> bool:
    """Once in so many. Hypothesis likes the ends of a range, so this asks for its middle."""
    return draw(st.integers(0, one_in - 1)) == one_in // 2


Palette = Mapping[str, list[Any]]


def palette(random: Random, ids: list[str]) -> Palette:
    """For one world a handful of values of each type, so that records have some in common."""
    every = {**STORED, "words": WORDS, "reference": [*ids, *KNOWN_IDS]}
    few = {name: [None, *random.sample(found, 3)] for name, found in every.items() if len(found) > 3}
    lists = [random.sample(every["reference"], random.randint(0, 3)) for _ in range(3)]
    return {**every, **few, "list": [None, *lists]}


def stored_value(random: Random, column: Column, palette: Palette) -> Any:
    """A value that a record may hold in this column."""
    if column.is_indexed and column.type in TEXT_TYPES:
        words = random.choice(palette["words"])
        return f"<p>{words}</p>" if words and column.type == "wysiwyg" else words
    return random.choice(palette[column.type])


def text_of(value: Any, column: Column) -> str:
    """A stored value as a query may write it; empty when there is nothing to write."""
    value = shown(value, column)
    if is_empty(value, column) or column.type in ("json", "password", "secret"):
        return ""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, list):
        return str(value[0])
    return str(value).lower() if isinstance(value, bool) else str(value)


def written_values(world: World, column: Column) -> SearchStrategy[str]:
    """Texts of one value for this column, none of them with a comma or an @; often one that a record has."""
    stored = {
        text_of(row[column.name], column) for rows in world.rows.values() for row in rows.values() if column.name in row
    }
    known = [*KNOWN_IDS, ME] if family(column) in ("id", "list") else WRITTEN[column.type]
    found = sorted(stored - {""})
    return st.sampled_from(found) | st.sampled_from(known) if found else st.sampled_from(known)

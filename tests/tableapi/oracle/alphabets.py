"""The values of generated records and queries. They are few, so that queries match records: "a tiny alphabet, so
that collisions happen".

Excludes values that would test the database instead of the product: letters whose lower case is longer or
depends on adjacent letters (İ, Σ), markup within wysiwyg texts, and search words for ARE other than [a-z]+.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from system.encoded_query import Moment
from tableapi.catalogue.definitions import Column

from .column_types import CURRENT_USER, NOW, STORED_VALUES, TYPE_ROWS, WORD_VALUES
from .literals import family_of
from .world import World, is_empty, without_markup

USER_IDS = ("160000000000000001", "160000000000000002")
GROUP_IDS = ("160000000000000011", "160000000000000012")
ROLE_IDS = {"agent": "160000000000000021", "clerk": "160000000000000022", "admin": "160000000000000023"}
UNKNOWN_ID = "160000000000000099"  # no record has this id
KNOWN_IDS = (*USER_IDS, *GROUP_IDS, ROLE_IDS["agent"], UNKNOWN_ID)


def make_moment(user_id: str) -> Moment:
    return Moment(NOW, user_id)


def draw_rarely(draw: DrawFn, one_in: int) -> bool:
    """True in about one of `one_in` draws. Hypothesis prefers the ends of a range, so the middle is rare."""
    return draw(st.integers(0, one_in - 1)) == one_in // 2


Palette = Mapping[str, list[Any]]


def value_palette(random: Random, ids: list[str]) -> Palette:
    """A few values of each type for one world, so that records share values."""
    all_values = {**STORED_VALUES, "words": WORD_VALUES, "reference": [*ids, *KNOWN_IDS]}
    sampled_values = {name: [None, *random.sample(values, 3)] for name, values in all_values.items() if len(values) > 3}
    lists = [random.sample(all_values["reference"], random.randint(0, 3)) for _ in range(3)]
    return {**all_values, **sampled_values, "list": [None, *lists]}


def random_value(random: Random, column: Column, palette: Palette) -> Any:
    """A random value for this column."""
    if column.is_indexed and family_of(column) == "text":
        words = random.choice(palette["words"])
        return f"<p>{words}</p>" if words and column.type == "wysiwyg" else words
    return random.choice(palette[column.type])


def query_text(value: Any, column: Column) -> str:
    """The text of a stored value in a query; empty if it has none."""
    value = without_markup(value, column)
    if is_empty(value, column) or family_of(column) in ("json", "never"):
        return ""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, list):
        return str(value[0])
    return str(value).lower() if isinstance(value, bool) else str(value)


def query_text_strategy(world: World, column: Column) -> SearchStrategy[str]:
    """Texts of single values for this column, without commas; often the value of a record."""
    stored_texts = {
        query_text(row[column.name], column)
        for rows in world.rows.values()
        for row in rows.values()
        if column.name in row
    }
    example_texts = (
        [*KNOWN_IDS, CURRENT_USER] if family_of(column) in ("id", "list") else TYPE_ROWS[column.type].query_texts
    )
    texts = sorted(stored_texts - {""})
    return st.sampled_from(texts) | st.sampled_from(example_texts) if texts else st.sampled_from(example_texts)

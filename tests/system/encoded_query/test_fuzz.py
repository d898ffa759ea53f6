"""Parsing any text yields a query or a QueryError."""

from __future__ import annotations

import os
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from system.encoded_query import METADATA, RECORDS, Dialect, QueryError, parse, read_value
from tests.support.query_printer import to_text

from .queries import random_text

SEED = int(os.environ.get("SVC_FUZZ_SEED", "20240519"))


def parse_error(text: str, dialect: Dialect) -> QueryError | None:
    """The error of an invalid text, or None if the text and its canonical form are parsed to the same query."""
    try:
        query = parse(text, dialect)
    except QueryError as error:
        return error
    assert parse(to_text(query, dialect), dialect) == query, text
    for condition in query.conditions():
        read_value(condition, dialect)
    return None


def is_parsed(text: str, dialect: Dialect) -> bool:
    error = parse_error(text, dialect)
    if error:
        assert 0 <= error.position <= len(text), (text, error)
    return error is None


def count_parsed(query_count: int, seed: int) -> int:
    random = Random(seed)
    return sum(is_parsed(random_text(random), RECORDS if number % 2 else METADATA) for number in range(query_count))


# B47
def test_hundred_thousand_random_queries_are_parsed_or_refused() -> None:
    # If all texts had syntax errors, the test would prove little.
    assert count_parsed(100_000, SEED) > 10_000


# B47
@pytest.mark.nightly
def test_million_random_queries_are_parsed_or_refused() -> None:
    assert count_parsed(1_000_000, SEED + 1) > 100_000


# B47
@settings(deadline=None, max_examples=500, database=None)
@given(st.text(st.characters(), max_size=60), st.sampled_from([RECORDS, METADATA]))
def test_any_text_is_parsed_or_refused(text: str, dialect: Dialect) -> None:
    is_parsed(text, dialect)

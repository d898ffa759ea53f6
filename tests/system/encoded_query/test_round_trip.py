"""parse(to_text(query)) == query, in both dialects."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from system.encoded_query import METADATA, RECORDS, Condition, Query, QueryError, parse
from tests.support.query_printer import to_text

from .queries import SYNTAX_PIECES, query_strategy, text_strategy

FUZZ_SETTINGS = settings(deadline=None, max_examples=200, database=None)


# B46
@FUZZ_SETTINGS
@given(query_strategy(RECORDS))
def test_record_query_round_trips(query: Query) -> None:
    assert parse(to_text(query)) == query


# B46 C07
@FUZZ_SETTINGS
@given(query_strategy(METADATA))
def test_metadata_query_round_trips(query: Query) -> None:
    assert parse(to_text(query, METADATA), METADATA) == query


# B46: SQL, ^, = and braces inside a value stay inside it
@FUZZ_SETTINGS
@given(text_strategy())
def test_any_text_can_be_a_value(value: str) -> None:
    quoted_value = "{" + value.replace("}", "}}") + "}"
    for text in (f"name={quoted_value}^b=1", f"(name={quoted_value}^b=1)", f"((name={quoted_value}))^ORb=1"):
        condition = next(parse(text).conditions())
        assert (condition.operator, condition.value) == ("=", value)


@FUZZ_SETTINGS
@given(st.lists(st.sampled_from([*SYNTAX_PIECES, "a", "=", "1", "b=2", "LIKE"]), max_size=12).map("".join))
def test_every_parsed_query_has_one_canonical_text(text: str) -> None:
    try:
        query = parse(text)
    except QueryError:
        return
    canonical_text = to_text(query)
    assert parse(canonical_text) == query
    assert to_text(parse(canonical_text)) == canonical_text


CANONICAL_TEXTS = [
    ("", ""),
    ("^EQ", ""),
    ("^ORDERBYname", "ORDERBYname"),
    ("ORDERBYa^b=1^ORDERBYDESCc^EQ", "b=1^ORDERBYa^ORDERBYDESCc"),
    ("nameCONTAINSx", "nameLIKEx"),
    ("nameNOT LIKEx", "nameNOTLIKEx"),
    ("a={plain}", "a=plain"),
    ("a=", "aISEMPTY"),
    ("a!={}", "aISNOTEMPTY"),
    ("a={b^c}", "a={b^c}"),
    ("a=x)", "a=x)"),
    ("(a={x)})", "(a={x)})"),
    ("a={{x}", "a={{x}"),
    ("a=}", "a=}"),
    ("a>{=1}", "a>{=1}"),
    ("aIN{STANCEOF}", "aIN{STANCEOF}"),
]


@pytest.mark.parametrize(("text", "canonical_text"), CANONICAL_TEXTS)
def test_quotes_are_written_only_where_needed(text: str, canonical_text: str) -> None:
    assert to_text(parse(text)) == canonical_text


def test_metadata_name_is_quoted_only_where_needed() -> None:
    text = "docType=1^{docID}=1^planB=1^{planB}LIKE1^{a.b}.c=1"
    assert to_text(parse(text, METADATA), METADATA) == text


def test_name_that_cannot_be_expressed_is_refused() -> None:
    query = parse("a=1")
    invalid_condition = Condition(("a=1^b",), "=", "1")
    term = query.groups[0].terms[0]
    invalid_query = Query((type(query.groups[0])((type(term)((invalid_condition,)),)),))
    with pytest.raises(ValueError, match="not a valid field name"):
        to_text(invalid_query)

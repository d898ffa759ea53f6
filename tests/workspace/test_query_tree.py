"""The tree of a query gives the same query back."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from system.encoded_query import OPERATORS, RECORDS, Query, QueryError, parse
from tests.support import query_printer
from tests.system.encoded_query.queries import SYNTAX_PIECES, query_strategy
from workspace.lists.fields import LABELS
from workspace.lists.query_tree import parse_tree, to_text, with_condition, without_order, without_part

LAW_SETTINGS = settings(deadline=None, max_examples=200, database=None)


@LAW_SETTINGS
@given(query_strategy(RECORDS))
def test_every_query_is_read_back_unchanged(query: Query):
    tree = json.loads(json.dumps(parse_tree(query_printer.to_text(query))))
    assert parse(to_text(tree)) == query


@LAW_SETTINGS
@given(st.lists(st.sampled_from([*SYNTAX_PIECES, "a", "=", "1", "b=2", "LIKE"]), max_size=12).map("".join))
def test_every_valid_text_keeps_its_meaning(text: str):
    try:
        query = parse(text)
    except QueryError:
        return
    assert parse(to_text(parse_tree(text))) == query


@pytest.mark.parametrize(
    "text",
    [
        *("a={b^c}", "a=x)", "(a={x)})", "a={{x}", "a=}", "a>{=1}", "aIN{STANCEOF}", "aHAS{NOT1}"),
        *("b=1^ORDERBYa^ORDERBYDESCc", "ORDERBYDESCa", "a=1^NQb=2^c=3^ORd=4", "(a=1^NQ(b=2^ORc=3))^ORd=4"),
        "a=javascript:gs.daysAgo(1)",
    ],
)
def test_quotes_are_written_only_where_needed(text: str):
    assert to_text(parse_tree(text)) == text


@LAW_SETTINGS
@given(query_strategy(RECORDS), query_strategy(RECORDS))
def test_an_added_condition_must_match_too(query: Query, other: Query):
    text, other_text = query_printer.to_text(query), query_printer.to_text(Query(other.groups))
    combined = parse(with_condition(text, other_text))
    assert combined.order == query.order
    assert list(combined.conditions()) == [*query.conditions(), *other.conditions()]
    # The terms of each side, or the whole side in parentheses, are joined by "and".
    assert len(combined.groups) == (1 if query.groups or other.groups else 0)


@pytest.mark.parametrize(
    ("text", "condition", "expected"),
    [
        ("a=1^ORb=2", "c=3", "a=1^ORb=2^c=3"),
        ("a=1^NQb=2", "c=3", "(a=1^NQb=2)^c=3"),
        ("a=x)^NQb=2", "c=3", "(a={x)}^NQb=2)^c=3"),
        ("ORDERBYa", "c=3^ORd=4", "c=3^ORd=4^ORDERBYa"),
    ],
)
def test_condition_is_added_to_any_query(text: str, condition: str, expected: str):
    assert with_condition(text, condition) == expected


def test_order_is_replaced():
    assert without_order("a=1^ORDERBYa^ORDERBYDESCb") == "a=1"
    assert without_order("ORDERBYa") == ""


@pytest.mark.parametrize(
    ("group", "term", "expected"),
    [
        (0, 0, "b=2^ORc=3^NQd=4"),
        (0, 1, "a=1^NQd=4"),
        (1, 0, "a=1^b=2^ORc=3"),
        (0, None, "d=4"),
        (1, None, "a=1^b=2^ORc=3"),
    ],
)
def test_part_is_removed(group: int, term: int | None, expected: str):
    assert to_text(without_part(parse_tree("a=1^b=2^ORc=3^NQd=4"), group, term)) == expected


def test_invalid_query_is_refused():
    with pytest.raises(QueryError):
        parse_tree("a=1^^b=2")


def test_every_operator_has_a_label():
    assert set(LABELS) == set(OPERATORS)
    assert all(LABELS.values())

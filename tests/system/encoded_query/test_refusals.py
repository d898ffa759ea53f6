"""Malformed queries are refused with position and excerpt; none is partially evaluated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from system.encoded_query import METADATA, RECORDS, Dialect, QueryError, parse
from system.encoded_query.time_values import INSTANT_EXPECTED


def refusal_of(text: str, dialect: Dialect = RECORDS) -> QueryError:
    with pytest.raises(QueryError) as exc_info:
        parse(text, dialect)
    return exc_info.value


REFUSED_QUERIES = [
    # invalid paths
    ("=1", "a field name is expected", 0, "=1"),
    ("1a=1", "a field name is expected", 0, "1a=1"),
    (" a=1", "a field name is expected", 0, " a=1"),
    ("A=1", "a field name is expected", 0, "A=1"),
    ("a..b=1", "a field name is expected", 2, ".b=1"),
    ("a.=1", "a field name is expected", 2, "=1"),
    (".a=1", "a field name is expected", 0, ".a=1"),
    ("{a}=1", "a field name is expected", 0, "{a}=1"),
    ("é=1", "a field name is expected", 0, "é=1"),
    # operators
    ("name", "an operator is expected", 4, ""),
    ("name^a=1", "unknown operator", 4, "^"),
    ("nameISNT", "unknown operator", 4, "ISNT"),
    ("nameLikex", "unknown operator", 4, "L"),
    ("namelikex", "an operator is expected", 9, ""),
    ("nameNOTIN1", "unknown operator", 4, "NOTIN"),
    ("name = 1", "unknown operator", 4, " "),
    ("name!1", "unknown operator", 4, "!"),
    ("nameREGEXPx", "unknown operator", 4, "REGEXP"),
    ("nameMATCH_RGXx", "unknown operator", 4, "MATCH_RGX"),
    ("nameVALCHANGES", "VALCHANGES is not supported here", 4, "VALCHANGES"),
    ("nameCHANGESFROM1", "CHANGESFROM is not supported here", 4, "CHANGESFROM"),
    ("nameCHANGESTO1", "CHANGESTO is not supported here", 4, "CHANGESTO"),
    ("nameIS_CALCULATED", "IS_CALCULATED is not supported here", 4, "IS_CALCULATED"),
    ("nameAREx", "ARE can only be used with sys_id", 4, "ARE"),
    ("parent.sys_idINSTANCEOFtask", "INSTANCEOF can only be used with sys_id", 13, "INSTANCEOF"),
    # joins
    ("^a=1", "a field name is expected", 0, "^a=1"),
    ("a=1^", "a field name is expected", 4, ""),
    ("a=1^^b=1", "a field name is expected", 4, "^b=1"),
    ("a=1^OR", "a field name is expected", 6, ""),
    ("a=1^NQ", "a field name is expected", 6, ""),
    ("a=1^NQ^b=1", "a field name is expected", 6, "^b=1"),
    ("a=1^or=1^ORBb=1", "a field name is expected", 11, "Bb=1"),
    ("ORDERBYa^ORb=1", "a field name is expected", 9, "ORb=1"),
    ("EQ", "a field name is expected", 0, "EQ"),
    ("a=1^EQ^b=1", "a field name is expected", 4, "EQ^b=1"),
    ("a=1^EQ^EQ", "a field name is expected", 4, "EQ^EQ"),
    ("a=1^GROUPBYb", "a field name is expected", 4, "GROUPBYb"),
    # tails
    ("ORDERBY", "a field name is expected", 7, ""),
    ("a=1^ORDERBYDESC", "a field name is expected", 15, ""),
    ("a=1^ORDERBYa b", "^ or the end of the query is expected", 12, " b"),
    ("(a=1^ORDERBYb)", "ORDERBY cannot be used inside parentheses", 4, "^ORDERBYb)"),
    ("a=1^NQORDERBYb", "a field name is expected", 6, "ORDERBYb"),
    # parentheses and braces
    ("(", "a field name is expected", 1, ""),
    ("()", "a field name is expected", 1, ")"),
    ("(a=1", "unclosed (", 0, "("),
    ("b=1^((a=1)", "unclosed (", 4, "("),
    ("(a=1)b", "^ or the end of the query is expected", 5, "b"),
    ("(a=1))", "^ or the end of the query is expected", 5, ")"),
    ("(a=1)(b=1)", "^ or the end of the query is expected", 5, "(b=1)"),
    ("(a={1}b)", "^ or ) is expected", 6, "b)"),
    ("(a=1^EQ", "^ or ) is expected", 4, "^EQ"),
    ("(nameIN(a,b))", "^ or the end of the query is expected", 12, ")"),
    ("a={b", "unclosed { (write }} for a } inside the braces)", 2, "{"),
    ("a={b}}", "unclosed { (write }} for a } inside the braces)", 2, "{"),
    ("a={b}c", "^ or the end of the query is expected", 5, "c"),
    # values
    ("aISEMPTYx", "ISEMPTY takes no value", 8, "x"),
    ("aNOTHING)", "NOTHING takes no value", 8, ")"),
    ("aLIKE", "LIKE needs a value", 5, ""),
    ("aSTARTSWITH^b=1", "STARTSWITH needs a value", 11, ""),
    ("a>{}", "> needs a value", 3, ""),
    ("aIN", "IN needs a value", 3, ""),
    ("b=1^aIN1,,2", "a list cannot contain an empty value", 9, ""),
    ("aHAS1,", "a list cannot contain an empty value", 6, ""),
    ("aBETWEEN1", "two values separated by one @ are expected", 8, "1"),
    ("aBETWEEN1@", "two values separated by one @ are expected", 8, "1@"),
    ("aBETWEEN1@2@3", "two values separated by one @ are expected", 8, "1@2@3"),
    ("aSAMEASb c", "a field name is expected", 8, " c"),
    ("aSAMEAS1", "a field name is expected", 7, "1"),
    ("aON2024-13-01", INSTANT_EXPECTED, 3, "2024-13-01"),
    ("aONx@2024-01-01@soon", INSTANT_EXPECTED, 16, "soon"),
    ("aONjavascript:gs.getUserID()", INSTANT_EXPECTED, 3, "javascript:gs.getUserID()"),
    ("aONx@2024-01-01", "a date or label@start@end is expected", 3, "x@2024-01-01"),
    ("aMONTH_IS13", "a whole number from 1 to 12 is expected", 9, "13"),
    ("aHOUR_IS-1", "a whole number from 0 to 23 is expected", 8, "-1"),
    ("aYEAR_IS²", "a whole number from 1 to 9999 is expected", 8, "²"),
    ("aMONTH_IS\u0663", "a whole number from 1 to 12 is expected", 9, "\u0663"),
    ("aRELATIVEGTx@day@ago@3", "@unit@ago@number or @unit@ahead@number is expected", 11, "x@day@ago@3"),
    ("aRELATIVEGTday", "@unit@ago@number or @unit@ahead@number is expected", 11, "day"),
    ("aRELATIVEGT@day@ago@x", "a whole number is expected", 11, "x"),
    ("aMORETHAN@hour@ago@3", "path@unit@before@number or path@unit@after@number is expected", 9, "@hour@ago@3"),
    ("aLESSTHANb@hour@before@9999999999", "a whole number is expected", 10, "9999999999"),
    ("aDYNAMICyou", "one of me, my_groups, my_roles is expected", 8, "you"),
    ("sys_idINSTANCEOFTask", "a table name is expected", 16, "Task"),
    ("sys_idARE  ", "at least one word is expected", 9, "  "),
    ("a=javascript:alert(1)", "unknown value function or invalid argument", 2, "javascript:alert(1)"),
    # texts that PostgreSQL cannot store
    ("a=\x00", "invalid character", 2, "'\\x00'"),
    ("a=x\ud800", "invalid character", 3, "'\\ud800'"),
]


# B44 B46 B47
@pytest.mark.parametrize(("text", "message", "position", "token"), REFUSED_QUERIES)
def test_malformed_query_is_refused_with_position_and_excerpt(
    text: str, message: str, position: int, token: str
) -> None:
    error = refusal_of(text)
    assert (error.message, error.position, error.token) == (message, position, token)


REFUSED_FILTERS = [
    ("docID=1", "unknown operator", 3, "ID"),
    ("file name=1", "unknown operator", 4, " "),
    ("{}=1", "a field name is expected", 0, "{}=1"),
    ("{a=1", "unclosed { (write }} for a } inside the braces)", 0, "{"),
    ("a" * 201 + "=1", "a field name has more than 200 characters", 0, "a" * 40),
]


# C07
@pytest.mark.parametrize(("text", "message", "position", "token"), REFUSED_FILTERS)
def test_malformed_filter_is_refused_with_position_and_excerpt(
    text: str, message: str, position: int, token: str
) -> None:
    error = refusal_of(text, METADATA)
    assert (error.message, error.position, error.token) == (message, position, token)


def nested_query(depth: int) -> str:
    return "(" * depth + "a=1" + ")" * depth


LIMIT_EXAMPLES = [
    # B41
    ("^".join(["a=1"] * 200), "^".join(["a=1"] * 201), "more than 200 conditions"),
    ("(" + "^OR".join(["a=1"] * 200) + ")", "a=1^(" + "^OR".join(["a=1"] * 200) + ")", "more than 200 conditions"),
    ("aIN" + ",".join(["1"] * 1_000), "aIN" + ",".join(["1"] * 1_001), "more than 1000 values"),
    ("aHASNOT" + ",".join(["1"] * 1_000), "aHASNOT" + ",".join(["1"] * 1_001), "more than 1000 values"),
    ("a=" + "x" * 16_382, "a=" + "x" * 16_383, "the query is longer than 16384 bytes"),
    ("a=" + "é" * 8_191, "a=" + "é" * 8_191 + "x", "the query is longer than 16384 bytes"),
    # B42
    ("a.b.c.d.e.f=1", "a.b.c.d.e.f.g=1", "a path has more than 5 dots"),
    ("ORDERBYa.b.c.d.e.f", "ORDERBYa.b.c.d.e.f.g", "a path has more than 5 dots"),
    ("aSAMEASa.b.c.d.e.f", "aSAMEASa.b.c.d.e.f.g", "a path has more than 5 dots"),
    ("a" * 63 + "=1", "a" * 64 + "=1", "a field name has more than 63 characters"),
    # B47
    (nested_query(20), nested_query(21), "more than 20 levels of parentheses"),
    ("^ORDERBYa" * 20, "^ORDERBYa" * 21, "more than 20 sort keys"),
]


@pytest.mark.parametrize(
    ("longest_query", "too_long_query", "message"),
    LIMIT_EXAMPLES,
    ids=[f"{message}-{len(text)}" for text, _, message in LIMIT_EXAMPLES],
)
def test_limits_are_inclusive(longest_query: str, too_long_query: str, message: str) -> None:
    parse(longest_query)
    assert refusal_of(too_long_query).message == message


def test_sibling_groups_do_not_count_as_nested() -> None:
    parse("^".join([nested_query(20)] * 3))


def test_dialect_can_have_fewer_operators() -> None:
    narrow_dialect = replace(
        RECORDS, max_conditions=1, max_hops=0, max_depth=0, max_list_values=2, max_bytes=20, max_sort_keys=0
    )
    parse("aIN1,2", narrow_dialect)
    for text in ("a=1^b=1", "a.b=1", "(a=1)", "aIN1,2,3", "a=1234567890123456789", "ORDERBYa"):
        refusal_of(text, narrow_dialect)


def test_message_never_repeats_more_than_forty_characters_of_a_query() -> None:
    assert len(refusal_of("aBETWEEN" + "x" * 10_000).token) == 40

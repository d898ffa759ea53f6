"""The meaning of each form of the language: precedence, groups, suffixes, operators, values."""

from __future__ import annotations

from itertools import product

import pytest

from system.encoded_query import METADATA, OPERATORS, Condition, Group, OrderBy, Query, SubQuery, Term, parse


def flat_conditions(*groups: list[list[str]]) -> tuple[Group, ...]:
    """Builds groups of terms; each name becomes the condition `name=1`."""
    return tuple(
        Group(tuple(Term(tuple(Condition((name,), "=", "1") for name in term)) for term in group)) for group in groups
    )


def only_condition(text: str) -> tuple[tuple[str, ...], str, str]:
    (condition,) = parse(text).conditions()
    return condition.path, condition.operator, condition.value


PRECEDENCE_EXAMPLES = [
    ("a=1", flat_conditions([["a"]])),
    ("a=1^b=1", flat_conditions([["a"], ["b"]])),
    ("a=1^ORb=1", flat_conditions([["a", "b"]])),
    ("a=1^b=1^ORc=1", flat_conditions([["a"], ["b", "c"]])),
    ("a=1^ORb=1^c=1", flat_conditions([["a", "b"], ["c"]])),
    ("a=1^NQb=1", flat_conditions([["a"]], [["b"]])),
    ("a=1^b=1^ORc=1^NQd=1^e=1", flat_conditions([["a"], ["b", "c"]], [["d"], ["e"]])),
]


@pytest.mark.parametrize(("text", "groups"), PRECEDENCE_EXAMPLES)
def test_or_binds_tighter_than_and_which_binds_tighter_than_new_query(text: str, groups: tuple[Group, ...]) -> None:
    assert parse(text).groups == groups


def query_holds(groups: tuple[Group, ...], true_names: set[str]) -> bool:
    def factor_holds(node: Condition | SubQuery) -> bool:
        return node.path[0] in true_names if isinstance(node, Condition) else query_holds(node.groups, true_names)

    return any(all(any(map(factor_holds, term.factors)) for term in group.terms) for group in groups)


def holds_as_documented(text: str, true_names: set[str]) -> bool:
    """Evaluates a text without parentheses by splitting it, as documented; the oracle of the next test."""
    return any(
        all(any(name[0] in true_names for name in term.split("|")) for term in group.split("^"))
        for group in text.replace("^OR", "|").split("^NQ")
    )


def test_every_chain_of_four_conditions_is_evaluated_as_documented() -> None:
    for joins in product(["^", "^OR", "^NQ"], repeat=3):
        text = "a=1" + "".join(f"{join}{name}=1" for join, name in zip(joins, "bcd", strict=True))
        for truth_values in product([True, False], repeat=4):
            true_names = {name for name, is_true in zip("abcd", truth_values, strict=True) if is_true}
            assert query_holds(parse(text).groups, true_names) == holds_as_documented(text, true_names), (
                text,
                true_names,
            )


def test_parentheses_group_wherever_a_condition_could_begin() -> None:
    subquery = SubQuery(flat_conditions([["b"], ["c"]], [["d"]]))
    assert parse("a=1^OR(b=1^c=1^NQd=1)^e=1").groups == (
        Group((Term((Condition(("a",), "=", "1"), subquery)), Term((Condition(("e",), "=", "1"),)))),
    )
    assert parse("((a=1))").groups == (
        Group((Term((SubQuery((Group((Term((SubQuery(flat_conditions([["a"]])),)),)),)),)),)),
    )


ORDER_EXAMPLES = [
    ("ORDERBYa", [], [("a", False)]),
    ("^ORDERBYa", [], [("a", False)]),
    ("^ORDERBYDESCa^EQ", [], [("a", True)]),
    ("z=1^ORDERBYa^ORDERBYDESCb.c", [["z"]], [("a", False), ("b.c", True)]),
    ("ORDERBYa^z=1", [["z"]], [("a", False)]),
    ("^ORDERBYa^z=1^y=1", [["z"], ["y"]], [("a", False)]),
    ("z=1^ORDERBYa^y=1", [["z"], ["y"]], [("a", False)]),
    ("z=1^ORDERBYa^ORy=1", [["z", "y"]], [("a", False)]),
    ("z=1^ORDERBYdescription", [["z"]], [("description", False)]),
]


@pytest.mark.parametrize(("text", "terms", "keys"), ORDER_EXAMPLES)
def test_order_by_can_be_anywhere_at_top_level(text: str, terms: list[list[str]], keys: list[tuple[str, bool]]) -> None:
    order = tuple(OrderBy(tuple(path.split(".")), is_descending) for path, is_descending in keys)
    assert parse(text) == Query(flat_conditions(terms) if terms else (), order)


@pytest.mark.parametrize("text", ["", "^EQ"])
def test_empty_query_matches_every_record(text: str) -> None:
    assert parse(text) == Query()


@pytest.mark.parametrize("text", ["a=1^EQ", "(a=1)^EQ", "a={1}^EQ", "a=1^ORDERBYb^EQ"])
def test_final_eq_is_ignored(text: str) -> None:
    assert parse(text) == parse(text.removesuffix("^EQ"))


CONDITION_EXAMPLES = [
    ("activeISEMPTY", "active", "ISEMPTY", ""),
    ("numberININC1,INC2", "number", "IN", "INC1,INC2"),
    ("a.b.cLIKEx", "a.b.c", "LIKE", "x"),
    ("nameIN(a,b)", "name", "IN", "(a,b)"),
    ("sys_idINSTANCEOFtask", "sys_id", "INSTANCEOF", "task"),
    ("sys_idINSTANCE", "sys_id", "IN", "STANCE"),
    ("numberNOT IN1,2", "number", "NOT IN", "1,2"),
    ("nameNOT LIKEx", "name", "NOTLIKE", "x"),
    ("nameNOTLIKEx", "name", "NOTLIKE", "x"),
    ("nameCONTAINSx", "name", "LIKE", "x"),
    ("listCONTAINS_DYNAMICme", "list", "CONTAINS_DYNAMIC", "me"),
    ("nameCONTAINS_DYN", "name", "LIKE", "_DYN"),
    ("listHASNOT17", "list", "HASNOT", "17"),
    ("nameNOTHING", "name", "NOTHING", ""),
    ("dNOTON2024-01-01", "d", "NOTON", "2024-01-01"),
    ("a>=5", "a", ">=", "5"),
    ("a>5", "a", ">", "5"),
    ("a==5", "a", "=", "=5"),
    ("a=>5", "a", "=", ">5"),
    ("a=b=c", "a", "=", "b=c"),
    ("a= x ", "a", "=", " x "),
    ("a=LIKE", "a", "=", "LIKE"),
    ("a=x)", "a", "=", "x)"),
    ("a=(x", "a", "=", "(x"),
    ("a={x^b=2}", "a", "=", "x^b=2"),
    ("a={x}}y}", "a", "=", "x}y"),
    ("a=x{y}", "a", "=", "x{y}"),
    ("a={ }", "a", "=", " "),
    ("(a={x)})", "a", "=", "x)"),
    ("(a=(x)", "a", "=", "(x"),
    ("a={x^EQ}", "a", "=", "x^EQ"),
    ("a=' OR 1=1; DROP TABLE user--", "a", "=", "' OR 1=1; DROP TABLE user--"),
    ("nameLIKE%_\\", "name", "LIKE", "%_\\"),
    ("(u=javascript:gs.getUserID())", "u", "=", "javascript:gs.getUserID()"),
]


# B43 B46
@pytest.mark.parametrize(("text", "path", "operator", "value"), CONDITION_EXAMPLES)
def test_condition_is_a_path_then_the_longest_operator_then_its_value(
    text: str, path: str, operator: str, value: str
) -> None:
    assert only_condition(text) == (tuple(path.split(".")), operator, value)


@pytest.mark.parametrize("text", ["a=", "a={}", "(a=)", "a=^b=1"])
def test_equals_without_a_value_means_is_empty(text: str) -> None:
    assert next(parse(text).conditions()).operator == "ISEMPTY"
    assert next(parse(text.replace("a=", "a!=")).conditions()).operator == "ISNOTEMPTY"


def test_function_parentheses_do_not_close_a_group() -> None:
    text = "(a=javascript:gs.getUserID()^ORbBETWEENjavascript:gs.daysAgo(7)@javascript:gs.now())^c=1"
    assert [condition.value for condition in parse(text).conditions()] == [
        "javascript:gs.getUserID()",
        "javascript:gs.daysAgo(7)@javascript:gs.now()",
        "1",
    ]


def test_longest_operator_is_matched() -> None:
    for name, operator in OPERATORS.items():
        if operator.kind.value == "none":
            assert only_condition(f"field{name}") == (("field",), name, "")


def test_error_positions_count_from_the_start() -> None:
    condition = list(parse("ab=1^(cde={x})").conditions())[1]
    assert (condition.position, condition.value_position) == (6, 11)
    assert parse("ab=1^ORDERBYx").order[0].position == 12


METADATA_PATHS = [
    ("status=1", ("status",)),
    ("docType=1", ("docType",)),
    ("Department=1", ("Department",)),
    ("planB=1", ("planB",)),
    ("file-name=1", ("file-name",)),
    ("Дата=1", ("Дата",)),
    ("author.fullName=1", ("author", "fullName")),
    ("{docID}=1", ("docID",)),
    ("{a.b}=1", ("a.b",)),
    ("{a}}b^c}=1", ("a}b^c",)),
    ("{two words}.x=1", ("two words", "x")),
    ("typeINa,1", ("type",)),
]


# C07
@pytest.mark.parametrize(("text", "path"), METADATA_PATHS)
def test_metadata_field_can_have_any_name(text: str, path: tuple[str, ...]) -> None:
    (condition,) = parse(text, METADATA).conditions()
    assert condition.path == path
    assert condition.value.endswith("1")

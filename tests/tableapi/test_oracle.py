"""Tests of the oracle: examples, and invariants that it must satisfy."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from system.encoded_query import OPERATORS, Group, Query, Term, parse
from tableapi.catalogue.definitions import OWN_TABLE_COLUMN, READ, WRITE, Rule
from tests.support.empty_values import MATCHES_EMPTY, SAMEAS_RESULTS
from tests.support.query_printer import to_text
from tests.tableapi.oracle import (
    Caller,
    QueryRefused,
    Row,
    World,
    field_value,
    is_permitted,
    row_matches,
    select_ids,
    visible_rows,
)
from tests.tableapi.oracle.alphabets import make_moment
from tests.tableapi.oracle.column_types import NOW
from tests.tableapi.oracle.examples import COMPARISON_EXAMPLES, OPERATOR_EXAMPLES, OTHER_VALUES
from tests.tableapi.oracle.operators import NEGATED_OPERATORS, OPERATOR_PREDICATES
from tests.tableapi.oracle.queries import OPERATOR_TYPE_PAIRS, condition_for_pair_strategy
from tests.tableapi.oracle.world import is_empty, without_markup
from tests.tableapi.oracle.worlds import (
    PRODUCT_TABLE,
    RequestCase,
    full_world,
    make_catalogue,
    make_column,
    request_case_strategy,
    unprivileged_caller_strategy,
)

CALLER = Caller("160000000000000001", frozenset(), ("g1", "g2"), ("r1",))
ADMIN = Caller("9", frozenset({"admin"}))
FUZZ_SETTINGS = settings(deadline=None, max_examples=100, database=None, suppress_health_check=list(HealthCheck))


def world_of(columns: dict[str, list[Any]], rows: list[Row], rules: list[Rule] | None = None) -> World:
    """A world of `task`, its child `incident` and the product table `person`; `of` is the table of a row."""
    parents = {"task": None, "incident": "task", PRODUCT_TABLE: None}
    open_rules = [Rule("r", READ, None, "", frozenset())]
    catalogue = make_catalogue(
        parents, {name: columns.get(name, []) for name in parents}, open_rules if rules is None else rules
    )
    rows_by_table: dict[str, dict[str, Row]] = {name: {} for name in parents}
    for number, row in enumerate(rows):
        table = catalogue.tables[row.pop("of", "task")]
        empty_row = dict.fromkeys(table.columns)
        rows_by_table[table.name][str(number)] = {**empty_row, "sys_id": str(number), OWN_TABLE_COLUMN: table.id, **row}
    return World(catalogue, rows_by_table)


def selected_ids(world: World, text: str, caller: Caller = CALLER, table: str = "task") -> list[str]:
    return select_ids(world, caller, table, text, make_moment(caller.id))


@pytest.mark.parametrize(
    ("type_name", "value", "query", "expected"), OPERATOR_EXAMPLES, ids=lambda parameter: str(parameter)[:40]
)
def test_operator_matches_as_in_the_examples(type_name: str, value: Any, query: str, expected: bool) -> None:
    columns = [make_column("task", name, type_name, "task") for name in ("c", "d")]
    world = world_of({"task": columns}, [{"c": value, "d": OTHER_VALUES.get(type_name)}])
    assert selected_ids(world, query) == (["0"] if expected else [])


@pytest.mark.parametrize(("type_name", "other_type", "value", "other_value", "expected"), COMPARISON_EXAMPLES)
def test_column_comparison_is_symmetric(
    type_name: str, other_type: str, value: Any, other_value: Any, expected: bool | None
) -> None:
    columns = [make_column("task", "c", type_name, "task"), make_column("task", "d", other_type, "task")]
    world = world_of({"task": columns}, [{"c": value, "d": other_value}])
    for text in ("cSAMEASd", "dSAMEASc"):
        if expected is None:
            with pytest.raises(QueryRefused):
                selected_ids(world, text)
        else:
            assert bool(selected_ids(world, text)) is expected


INVALID_QUERIES = [
    "nosuch=1",
    "n.n=1",
    "s=1",
    "sISEMPTY",
    "nLIKE1",
    "n=x",
    "b=yes",
    "t=2024-02-30",
    "t=javascript:gs.getUserID()",
]
INVALID_QUERIES += [
    "n=1.0",
    "n>1.5",
    "n=9223372036854775808",
    "n=javascript:gs.now()",
    "l=a,,b",
    "b=javascript:gs.now()",
]
INVALID_QUERIES += [
    "x=javascript:gs.now()",
    "tGT_FIELDn",
    "tMORETHANn@day@after@1",
    "ORDERBYl",
    "ORDERBYj",
    "ORDERBYs",
    "ORDERBYno",
]
INVALID_QUERIES += ["sys_idARE fox", "sys_idINSTANCEOFnosuch", "sys_created_by.login=a", "a=1^^", "n=1^NQnosuchISEMPTY"]


@pytest.mark.parametrize("text", INVALID_QUERIES)
def test_invalid_query_is_refused_without_records(text: str) -> None:
    types = {"n": "integer", "s": "secret", "b": "boolean", "t": "datetime", "l": "list", "j": "json", "x": "string"}
    columns = [make_column("task", name, type_name, "task") for name, type_name in types.items()]
    for record_count in (0, 1):
        with pytest.raises(QueryRefused):
            selected_ids(world_of({"task": columns}, [{"n": 1}] * record_count), text)


def test_or_binds_before_and_but_new_query_after() -> None:
    columns = [make_column("task", name, "integer") for name in "abc"]
    world = world_of({"task": columns}, [{"a": 1, "c": 3}, {"c": 3}, {"a": 1, "b": 2}, {"a": 1}])
    assert selected_ids(world, "a=1^b=2^ORc=3") == ["0", "2"]
    assert selected_ids(world, "a=1^b=2^NQc=3") == selected_ids(world, "(a=1^b=2)^ORc=3") == ["0", "1", "2"]


def test_ascending_sort_puts_empty_values_last_and_ties_by_id() -> None:
    columns = [make_column("task", "x", "string"), make_column("task", "n", "integer")]
    rows: list[Row] = [{"x": "B", "n": 1}, {"x": ""}, {"x": "A"}, {"x": None}, {"x": "a", "n": 2}, {"x": "Д"}]
    world = world_of({"task": columns}, rows)
    assert selected_ids(world, "ORDERBYx") == ["2", "4", "0", "5", "1", "3"]
    assert selected_ids(world, "ORDERBYDESCx") == ["3", "1", "5", "0", "4", "2"]
    assert selected_ids(world, "ORDERBYDESCx^ORDERBYn") == ["1", "3", "5", "0", "4", "2"]
    assert selected_ids(world, "") == list("012345")


def test_word_search_uses_indexed_columns_and_instanceof_includes_children() -> None:
    columns = [make_column("task", name, "string", is_indexed=name < "z") for name in "xyz"]
    rows = [{"x": "Red fox", "y": "ox"}, {"z": "red"}, {"x": "redfox", "of": "incident"}]
    world = world_of({"task": columns}, rows)
    assert selected_ids(world, "sys_idAREOX red") == ["0"]
    assert selected_ids(world, "sys_idINSTANCEOFincident") == ["2"]
    assert selected_ids(world, "sys_idINSTANCEOFtask") == ["0", "1", "2"]
    assert selected_ids(world, "", table="incident") == ["2"]


def make_rule(
    table: str | None, column: str = "", condition: str = "", *roles: str, operation: str = READ, **attributes: Any
) -> Rule:
    return Rule("r", operation, table, column, frozenset(roles), condition, **attributes)


OPEN_RULE, OTHER_ROLES = make_rule(None), ("agent",)
NO_ADMIN_BYPASS: Any = {"admin_overrides": False}
# Rules, and what everybody and an admin see: task 0 (x=a), task 1, incident 2 (x=a), person 3 (x=a).
LEVEL_EXAMPLES: list[tuple[str, list[Rule], str, str]] = [
    ("without rules, only administrators", [], "", "0123"),
    ("any table excludes product tables", [OPEN_RULE], "012", "0123"),
    ("a table precedes any table", [OPEN_RULE, make_rule("task", "", "", *OTHER_ROLES)], "", "0123"),
    ("a child precedes its parent", [make_rule("task"), make_rule("incident", "", "", *OTHER_ROLES)], "01", "0123"),
    ("a parent's rule applies to its child", [make_rule("task", "", "x=A")], "02", "0123"),
    ("a child's rule opens only the child", [make_rule("incident")], "2", "0123"),
    ("one rule of the level is enough", [make_rule("task", "", "", *OTHER_ROLES), make_rule("task")], "012", "0123"),
    ("a broken rule decides but never holds", [OPEN_RULE, make_rule("task", is_broken=True)], "", "0123"),
    ("an invalid rule does too", [OPEN_RULE, make_rule("task", "", "nosuch=1^ORx=a")], "", "0123"),
    ("rules of other operations are ignored", [make_rule("task", operation=WRITE)], "", "0123"),
    ("a name is resolved in each table", [make_rule(None, "", "y=a")], "2", "0123"),
    ("a parent's rule has no child columns", [make_rule("task", "", "y=a")], "", "0123"),
    ("rules can apply to administrators", [make_rule("task", "", "x=a", **NO_ADMIN_BYPASS)], "02", "023"),
    ("one rule with bypass is enough", [make_rule("task", "", "x=a", **NO_ADMIN_BYPASS), make_rule("task", "", "x=b")],
     "02", "0123"),
    ("admins bypass rules of product tables", [make_rule(PRODUCT_TABLE, "", "x=b", **NO_ADMIN_BYPASS)], "", "0123"),
    ("a rule can require the role admin", [make_rule("task", "", "", "admin", **NO_ADMIN_BYPASS)], "", "0123"),
]  # fmt: skip


def guarded_world(rules: list[Rule]) -> World:
    columns = {
        "task": [make_column("task", "x", "string"), make_column("task", "to", "reference", "task")],
        "incident": [make_column("incident", "y", "string")],
        PRODUCT_TABLE: [make_column(PRODUCT_TABLE, "x", "string")],
    }
    rows: list[Row] = [
        {"x": "a", "to": "2"},
        {"to": "0"},
        {"x": "a", "y": "a", "of": "incident"},
        {"x": "a", "of": PRODUCT_TABLE},
    ]
    return world_of(columns, rows, rules)


@pytest.mark.parametrize(
    ("description", "rules", "visible_to_everybody", "visible_to_admin"),
    LEVEL_EXAMPLES,
    ids=lambda parameter: parameter if isinstance(parameter, str) else "",
)
def test_first_level_with_a_rule_decides(
    description: str, rules: list[Rule], visible_to_everybody: str, visible_to_admin: str
) -> None:
    world = guarded_world(rules)
    for caller, expected in ((CALLER, visible_to_everybody), (ADMIN, visible_to_admin)):
        now = make_moment(caller.id)
        records = [row for table in ("task", PRODUCT_TABLE) for row in visible_rows(world, caller, table, now)]
        assert "".join(sorted(row["sys_id"] for row in records)) == expected


# Rules for an open table, and x in records 0, 1 and 2 for everybody: its value, - if empty or hidden, ! if unknown.
COLUMN_RULE_EXAMPLES: list[tuple[list[Rule], str]] = [
    ([], "a-a"),
    ([make_rule("task", "x", "sys_id=0")], "a--"),
    ([make_rule("task", "x", "", *OTHER_ROLES)], "!!!"),
    ([make_rule("task", "x", is_broken=True)], "!!!"),
    ([make_rule("task", "x", "", *OTHER_ROLES), make_rule("incident", "x")], "--a"),
    ([make_rule(None, "*", "", *OTHER_ROLES)], "!!!"),
    ([make_rule(None, "*", "", *OTHER_ROLES), make_rule(None, "x")], "a-a"),
    ([make_rule("incident", "*", "", *OTHER_ROLES), make_rule(None, "x")], "a-a"),
    ([make_rule("incident", "*", "", *OTHER_ROLES)], "a--"),
]


@pytest.mark.parametrize(("rules", "expected"), COLUMN_RULE_EXAMPLES)
def test_first_level_with_a_column_rule_decides(rules: list[Rule], expected: str) -> None:
    world = guarded_world([OPEN_RULE, *rules])
    visible_values = ""
    for row in sorted(visible_rows(world, CALLER, "task", make_moment(CALLER.id)), key=lambda row: str(row["sys_id"])):
        try:
            visible_values += field_value(world, CALLER, "task", row, ("x",), make_moment(CALLER.id)) or "-"
        except QueryRefused:
            visible_values += "!"
    assert visible_values == expected
    if "!" in expected:
        for text in ("xISEMPTY", "ORDERBYx", "to.x=a", "sys_idSAMEASx"):
            with pytest.raises(QueryRefused):
                selected_ids(world, text)
    else:
        assert selected_ids(world, "x=a") == [str(number) for number, letter in enumerate(expected) if letter == "a"]


def test_dot_walk_stops_at_unreadable_records_except_in_rules() -> None:
    hiding_rule = make_rule("incident", "", "", *OTHER_ROLES)
    assert selected_ids(guarded_world([OPEN_RULE]), "to.x=a") == ["0", "1"]
    assert selected_ids(guarded_world([OPEN_RULE, hiding_rule]), "to.x=a") == ["1"]  # 0 points to the hidden incident
    assert selected_ids(guarded_world([OPEN_RULE, hiding_rule]), "to.xISEMPTY") == ["0"]
    assert selected_ids(guarded_world([OPEN_RULE, make_rule("task", "to", "sys_id=0")]), "to.x=a") == ["0"]
    assert selected_ids(guarded_world([make_rule("task", "", "to.x=a"), hiding_rule]), "") == ["0", "1"]
    assert selected_ids(guarded_world([OPEN_RULE]), "to.to.x=a") == ["1"]


def test_write_rules_decide_about_writing() -> None:
    world = guarded_world(
        [
            OPEN_RULE,
            make_rule("task", "", "x=a", operation=WRITE),
            make_rule("task", "x", "", *OTHER_ROLES, operation=WRITE),
        ]
    )
    now, (first_row, second_row) = make_moment(CALLER.id), world.rows["task"].values()
    assert is_permitted(world, CALLER, WRITE, "task", first_row, now)
    assert not is_permitted(world, CALLER, WRITE, "task", {**first_row, "x": "b"}, now)
    assert not is_permitted(world, CALLER, WRITE, "task", second_row, now)
    assert not is_permitted(world, CALLER, WRITE, "task", first_row, now, "x")
    assert is_permitted(world, CALLER, WRITE, "task", first_row, now, "to")


FULL_WORLD = full_world()
ALPHA = FULL_WORLD.catalogue.tables["alpha"]
ALPHA_ROWS = list(FULL_WORLD.records(ALPHA))


def test_every_operator_is_implemented() -> None:
    assert {*OPERATOR_PREDICATES, *NEGATED_OPERATORS, "ARE", "INSTANCEOF"} == set(OPERATORS)
    assert {row.complement for row in OPERATORS.values() if row.complement} == {
        *NEGATED_OPERATORS,
        *NEGATED_OPERATORS.values(),
    }


@pytest.mark.parametrize("pair", OPERATOR_TYPE_PAIRS, ids="-".join)
def test_negation_is_complementary_and_empty_values_match_as_specified(pair: tuple[str, str]) -> None:
    @settings(FUZZ_SETTINGS, max_examples=10)
    @given(condition_for_pair_strategy(FULL_WORLD, ALPHA, pair), unprivileged_caller_strategy())
    def check_condition(condition: Any, caller: Caller) -> None:
        query = Query((Group((Term((condition,)),)),))
        matching_ids = set(selected_ids(FULL_WORLD, to_text(query), caller, "alpha"))
        if negation := condition.row.complement:
            value = condition.value
            other_ids = selected_ids(
                FULL_WORLD, f"{condition.path[0]}{negation}{{{value.replace('}', '}}')}}}", caller, "alpha"
            )
            assert matching_ids.isdisjoint(other_ids) and len(matching_ids) + len(other_ids) == len(ALPHA_ROWS)
        column = ALPHA.columns[condition.path[0]]
        for row in ALPHA_ROWS:
            if is_empty(without_markup(row[column.name], column), column) and condition.operator not in SAMEAS_RESULTS:
                expected = condition.operator in MATCHES_EMPTY
                # EMPTYSTRING distinguishes empty text from NULL.
                assert (row["sys_id"] in matching_ids) is expected or condition.operator == "EMPTYSTRING"

    check_condition()


@FUZZ_SETTINGS
@given(request_case_strategy())
def test_result_is_the_visible_matching_records(case: RequestCase) -> None:
    world, caller, table, moment = case.world, case.caller, case.table, case.moment
    visible_records = {row["sys_id"]: row for row in visible_rows(world, caller, table, moment)}
    query = parse(case.text)
    try:
        result_ids = select_ids(world, caller, table, case.text, moment)
    except QueryRefused:
        return
    matching_ids = [
        key for key, row in visible_records.items() if row_matches(world, caller, query, table, row, moment)
    ]
    assert sorted(result_ids) == sorted(matching_ids)
    assert result_ids == sorted(result_ids) or query.order
    # A world without the hidden records gives the same result.
    rows_by_table = {
        name: {key: row for key, row in rows.items() if key in visible_records} for name, rows in world.rows.items()
    }
    if not any("." in rule.condition for rule in world.catalogue.rules) and "." not in case.text:
        assert select_ids(World(world.catalogue, rows_by_table), caller, table, case.text, moment) == result_ids


def test_now_is_the_time_of_the_request() -> None:
    world = world_of({"task": [make_column("task", "t", "datetime")]}, [{"t": NOW}])
    assert selected_ids(world, "t=javascript:gs.now()") == ["0"]

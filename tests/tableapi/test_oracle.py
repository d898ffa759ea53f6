"""Tests of the oracle: examples by hand, and laws that it must keep itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from system.encoded_query import OPERATORS, Group, OnEmpty, Query, Term, parse
from tableapi.catalogue.definitions import OWN_TABLE, READ, WRITE, Rule
from tests.support.query_printer import to_text
from tests.tableapi.oracle import Caller, Refused, Row, World, can, field, matches, select, visible
from tests.tableapi.oracle.alphabets import moment
from tests.tableapi.oracle.column_types import NOW
from tests.tableapi.oracle.examples import BESIDE, MEANING, SAME
from tests.tableapi.oracle.operators import MEANINGS, NEGATIONS
from tests.tableapi.oracle.queries import PAIRS, conditions_of
from tests.tableapi.oracle.world import is_empty, shown
from tests.tableapi.oracle.worlds import SYSTEM, Case, cases, everything, make_catalogue, make_column, open_caller

ME = Caller("160000000000000001", frozenset(), ("g1", "g2"), ("r1",))
ADMIN = Caller("9", frozenset({"admin"}))
CHANCE = settings(deadline=None, max_examples=100, database=None, suppress_health_check=list(HealthCheck))


def world_of(columns: dict[str, list[Any]], rows: list[Row], rules: list[Rule] | None = None) -> World:
    """`task`, `incident` which extends it, `person` of the system; a row names its table as `of`, task otherwise."""
    parents = {"task": None, "incident": "task", SYSTEM: None}
    opened = [Rule("r", READ, None, "", frozenset())]
    existing = make_catalogue(
        parents, {name: columns.get(name, []) for name in parents}, opened if rules is None else rules
    )
    stored: dict[str, dict[str, Row]] = {name: {} for name in parents}
    for place, row in enumerate(rows):
        table = existing.tables[row.pop("of", "task")]
        empty = dict.fromkeys(table.columns)
        stored[table.name][str(place)] = {**empty, "sys_id": str(place), OWN_TABLE: table.id, **row}
    return World(existing, stored)


def answer(world: World, text: str, caller: Caller = ME, table: str = "task") -> list[str]:
    return select(world, caller, table, text, moment(caller.id))


@pytest.mark.parametrize(("kind", "value", "text", "expected"), MEANING, ids=lambda it: str(it)[:40])
def test_operator_semantics(kind: str, value: Any, text: str, expected: bool) -> None:
    columns = [make_column("task", name, kind, "task") for name in ("c", "d")]
    world = world_of({"task": columns}, [{"c": value, "d": BESIDE.get(kind)}])
    assert answer(world, text) == (["0"] if expected else [])


@pytest.mark.parametrize(("one", "other", "value", "beside", "expected"), SAME)
def test_column_comparison_is_symmetric(one: str, other: str, value: Any, beside: Any, expected: bool | None) -> None:
    columns = [make_column("task", "c", one, "task"), make_column("task", "d", other, "task")]
    world = world_of({"task": columns}, [{"c": value, "d": beside}])
    for text in ("cSAMEASd", "dSAMEASc"):
        if expected is None:
            with pytest.raises(Refused):
                answer(world, text)
        else:
            assert bool(answer(world, text)) is expected


BAD = ["nosuch=1", "n.n=1", "s=1", "sISEMPTY", "nLIKE1", "n=x", "b=yes", "t=2024-02-30", "t=javascript:gs.getUserID()"]
BAD += ["n=1.0", "n>1.5", "n=9223372036854775808", "n=javascript:gs.now()", "l=a,,b", "b=javascript:gs.now()"]
BAD += [
    "x=javascript:gs.now()",
    "tGT_FIELDn",
    "tMORETHANn@day@after@1",
    "ORDERBYl",
    "ORDERBYj",
    "ORDERBYs",
    "ORDERBYno",
]
BAD += ["sys_idARE fox", "sys_idINSTANCEOFnosuch", "sys_created_by.login=a", "a=1^^", "n=1^NQnosuchISEMPTY"]


@pytest.mark.parametrize("text", BAD)
def test_invalid_query_is_refused_without_records(text: str) -> None:
    types = {"n": "integer", "s": "secret", "b": "boolean", "t": "datetime", "l": "list", "j": "json", "x": "string"}
    columns = [make_column("task", name, kind, "task") for name, kind in types.items()]
    for count in (0, 1):
        with pytest.raises(Refused):
            answer(world_of({"task": columns}, [{"n": 1}] * count), text)


def test_operator_precedence() -> None:
    columns = [make_column("task", name, "integer") for name in "abc"]
    world = world_of({"task": columns}, [{"a": 1, "c": 3}, {"c": 3}, {"a": 1, "b": 2}, {"a": 1}])
    assert answer(world, "a=1^b=2^ORc=3") == ["0", "2"]
    assert answer(world, "a=1^b=2^NQc=3") == answer(world, "(a=1^b=2)^ORc=3") == ["0", "1", "2"]


def test_sort_order_of_empty_values_and_ties() -> None:
    columns = [make_column("task", "x", "string"), make_column("task", "n", "integer")]
    rows: list[Row] = [{"x": "B", "n": 1}, {"x": ""}, {"x": "A"}, {"x": None}, {"x": "a", "n": 2}, {"x": "Д"}]
    world = world_of({"task": columns}, rows)
    assert answer(world, "ORDERBYx") == ["2", "4", "0", "5", "1", "3"]
    assert answer(world, "ORDERBYDESCx") == ["3", "1", "5", "0", "4", "2"]
    assert answer(world, "ORDERBYDESCx^ORDERBYn") == ["1", "3", "5", "0", "4", "2"]
    assert answer(world, "") == list("012345")


def test_word_search_and_instanceof() -> None:
    columns = [make_column("task", name, "string", is_indexed=name < "z") for name in "xyz"]
    rows = [{"x": "Red fox", "y": "ox"}, {"z": "red"}, {"x": "redfox", "of": "incident"}]
    world = world_of({"task": columns}, rows)
    assert answer(world, "sys_idAREOX red") == ["0"]
    assert answer(world, "sys_idINSTANCEOFincident") == ["2"]
    assert answer(world, "sys_idINSTANCEOFtask") == ["0", "1", "2"]
    assert answer(world, "", table="incident") == ["2"]


def rule(
    table: str | None, column: str = "", condition: str = "", *roles: str, operation: str = READ, **more: Any
) -> Rule:
    return Rule("r", operation, table, column, frozenset(roles), condition, **more)


OPEN, CLOSED = rule(None), ("agent",)
NO_ADMIN: Any = {"admin_overrides": False}
# rules; who sees which of: 0 a task with x=a, 1 a task, 2 an incident with x=a, 3 a person with x=a
LEVELS: list[tuple[str, list[Rule], str, str]] = [
    ("no rule: nobody but an administrator", [], "", "0123"),
    ("any table means designed tables", [OPEN], "012", "0123"),
    ("the table goes before any table", [OPEN, rule("task", "", "", *CLOSED)], "", "0123"),
    ("a child goes before its parent", [rule("task"), rule("incident", "", "", *CLOSED)], "01", "0123"),
    ("a parent stands in for its child", [rule("task", "", "x=A")], "02", "0123"),
    ("a child's own rule opens only it", [rule("incident")], "2", "0123"),
    ("one rule of the level is enough", [rule("task", "", "", *CLOSED), rule("task")], "012", "0123"),
    ("a broken rule decides and never holds", [OPEN, rule("task", is_broken=True)], "", "0123"),
    ("so does one not query_test", [OPEN, rule("task", "", "nosuch=1^ORx=a")], "", "0123"),
    ("a rule of another operation says nothing", [rule("task", operation=WRITE)], "", "0123"),
    ("a name is read in each table anew", [rule(None, "", "y=a")], "2", "0123"),
    ("a parent's rule knows no child's names", [rule("task", "", "y=a")], "", "0123"),
    ("an administrator may be held off", [rule("task", "", "x=a", **NO_ADMIN)], "02", "023"),
    ("unless one rule lets him", [rule("task", "", "x=a", **NO_ADMIN), rule("task", "", "x=b")], "02", "0123"),
    ("and never from system tables", [rule(SYSTEM, "", "x=b", **NO_ADMIN)], "", "0123"),
    ("the role admin counts as any role", [rule("task", "", "", "admin", **NO_ADMIN)], "", "0123"),
]  # fmt: skip


def guarded(rules: list[Rule]) -> World:
    columns = {
        "task": [make_column("task", "x", "string"), make_column("task", "to", "reference", "task")],
        "incident": [make_column("incident", "y", "string")],
        SYSTEM: [make_column(SYSTEM, "x", "string")],
    }
    rows: list[Row] = [
        {"x": "a", "to": "2"},
        {"to": "0"},
        {"x": "a", "y": "a", "of": "incident"},
        {"x": "a", "of": SYSTEM},
    ]
    return world_of(columns, rows, rules)


@pytest.mark.parametrize(
    ("name", "rules", "everybody", "admin"), LEVELS, ids=lambda it: it if isinstance(it, str) else ""
)
def test_first_level_with_a_rule_decides(name: str, rules: list[Rule], everybody: str, admin: str) -> None:
    world = guarded(rules)
    for caller, expected in ((ME, everybody), (ADMIN, admin)):
        result = [row for table in ("task", SYSTEM) for row in visible(world, caller, table, moment(caller.id))]
        assert "".join(sorted(row["sys_id"] for row in result)) == expected


# rules beside an open table; what everybody sees of x in records 0, 1 and 2: a letter, - for hidden, ! for unknown
COLUMNS: list[tuple[list[Rule], str]] = [
    ([], "a-a"),
    ([rule("task", "x", "sys_id=0")], "a--"),
    ([rule("task", "x", "", *CLOSED)], "!!!"),
    ([rule("task", "x", is_broken=True)], "!!!"),
    ([rule("task", "x", "", *CLOSED), rule("incident", "x")], "--a"),
    ([rule(None, "*", "", *CLOSED)], "!!!"),
    ([rule(None, "*", "", *CLOSED), rule(None, "x")], "a-a"),
    ([rule("incident", "*", "", *CLOSED), rule(None, "x")], "a-a"),
    ([rule("incident", "*", "", *CLOSED)], "a--"),
]


@pytest.mark.parametrize(("rules", "expected"), COLUMNS)
def test_column_visibility_by_rule_levels(rules: list[Rule], expected: str) -> None:
    world = guarded([OPEN, *rules])
    seen = ""
    for row in sorted(visible(world, ME, "task", moment(ME.id)), key=lambda row: str(row["sys_id"])):
        try:
            seen += field(world, ME, "task", row, ("x",), moment(ME.id)) or "-"
        except Refused:
            seen += "!"
    assert seen == expected
    if "!" in expected:
        for text in ("xISEMPTY", "ORDERBYx", "to.x=a", "sys_idSAMEASx"):
            with pytest.raises(Refused):
                answer(world, text)
    else:
        assert answer(world, "x=a") == [str(place) for place, letter in enumerate(expected) if letter == "a"]


def test_dot_walk_stops_at_unreadable_records_except_in_rules() -> None:
    hidden = rule("incident", "", "", *CLOSED)
    assert answer(guarded([OPEN]), "to.x=a") == ["0", "1"]
    assert answer(guarded([OPEN, hidden]), "to.x=a") == ["1"]  # 0 points to the hidden incident
    assert answer(guarded([OPEN, hidden]), "to.xISEMPTY") == ["0"]
    assert answer(guarded([OPEN, rule("task", "to", "sys_id=0")]), "to.x=a") == ["0"]
    assert answer(guarded([rule("task", "", "to.x=a"), hidden]), "") == ["0", "1"]
    assert answer(guarded([OPEN]), "to.to.x=a") == ["1"]


def test_write_rules_are_separate() -> None:
    world = guarded([OPEN, rule("task", "", "x=a", operation=WRITE), rule("task", "x", "", *CLOSED, operation=WRITE)])
    first, second = world.rows["task"].values()
    assert can(world, ME, WRITE, "task", first, moment(ME.id))
    assert not can(world, ME, WRITE, "task", {**first, "x": "b"}, moment(ME.id))
    assert not can(world, ME, WRITE, "task", second, moment(ME.id))
    assert [can(world, ME, WRITE, "task", first, moment(ME.id), name) for name in ("x", "to")] == [False, True]


EVERYTHING = everything()
ALPHA = EVERYTHING.catalogue.tables["alpha"]
ROWS = list(EVERYTHING.records(ALPHA))


def test_every_operator_is_implemented() -> None:
    assert {*MEANINGS, *NEGATIONS, "ARE", "INSTANCEOF"} == set(OPERATORS)
    assert {row.complement for row in OPERATORS.values() if row.complement} == {*NEGATIONS, *NEGATIONS.values()}


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_negation_is_complementary_and_empty_values_match_as_specified(
    pair: tuple[str, str],
) -> None:
    @settings(CHANCE, max_examples=10)
    @given(conditions_of(EVERYTHING, ALPHA, pair), open_caller())
    def law(condition: Any, caller: Caller) -> None:
        query = Query((Group((Term((condition,)),)),))
        result = set(answer(EVERYTHING, to_text(query), caller, "alpha"))
        if negation := condition.row.complement:
            value = condition.value
            others = answer(EVERYTHING, f"{condition.path[0]}{negation}{{{value.replace('}', '}}')}}}", caller, "alpha")
            assert result.isdisjoint(others) and len(result) + len(others) == len(ROWS)
        column = ALPHA.columns[condition.path[0]]
        for row in ROWS:
            if is_empty(shown(row[column.name], column), column) and condition.row.on_empty in (
                OnEmpty.NO,
                OnEmpty.YES,
            ):
                expected = condition.row.on_empty is OnEmpty.YES
                # Empty text is what EMPTYSTRING is about.
                assert (row["sys_id"] in result) is expected or condition.operator == "EMPTYSTRING"

    law()


@CHANCE
@given(cases())
def test_result_is_the_visible_matching_records(case: Case) -> None:
    world, caller, table, at_that_time = case.world, case.caller, case.table, case.moment
    actual = {row["sys_id"]: row for row in visible(world, caller, table, at_that_time)}
    query = parse(case.text)
    try:
        result = select(world, caller, table, case.text, at_that_time)
    except Refused:
        return
    matching = [key for key, row in actual.items() if matches(world, caller, query, table, row, at_that_time)]
    assert sorted(result) == sorted(matching)
    assert result == sorted(result) or query.order
    # What is hidden cannot be told from what is not there: a world without it gives the same answer.
    shown_only = {name: {key: row for key, row in rows.items() if key in actual} for name, rows in world.rows.items()}
    if not any("." in rule.condition for rule in world.catalogue.rules) and "." not in case.text:
        assert select(World(world.catalogue, shown_only), caller, table, case.text, at_that_time) == result


def test_now_is_the_time_of_the_request() -> None:
    world = world_of({"task": [make_column("task", "t", "datetime")]}, [{"t": NOW}])
    assert answer(world, "t=javascript:gs.now()") == ["0"]

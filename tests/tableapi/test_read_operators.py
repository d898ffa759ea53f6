"""Every operator on every type that it supports: which of five records match, directly and through a reference.

Record e is always empty, and d often is. `$bob` and `$alice` stand for user ids; Bob is the caller.
"""

import re
from datetime import date
from typing import Any

import pytest

from accounts.models import User
from system.encoded_query import OPERATORS, QueryError, ValueKind, parse
from tableapi.database import catalogue_loader
from tableapi.query import path_resolver
from tests.support.empty_values import empty_value_match
from tests.tableapi.oracle.column_types import TYPE_ROWS
from tests.tableapi.world import (
    api,
    column_values,
    data_of,
    error_of,
    field,
    grant,
    group,
    open_table,
    record,
    role,
    table,
)

pytestmark = pytest.mark.django_db

NAMES = "abcde"
TEXT_VALUES = (["Lamp", "lamp 50%", "ÄRGER_x\\", "", None], ["LAMP", "x", "ärger_x\\", None, ""])
TEXT_EXAMPLES = [
    ("it=LAMP", "a"), ("it=lam", ""), ("it=ärger_x\\", "c"), ("it=", "de"), ("it!=", "abc"), ("it!=lamp", "bcde"),
    ("it>lamp", "bc"), ("it>=LAMP", "abc"), ("it<lamp 5", "a"), ("it<=Lamp 50%", "ab"), ("it<a", ""),
    ("itINlamp,LAMP 50%", "ab"), ("itNOT INlamp,x", "bcde"), ("itBETWEENLAMP@lamp 50%", "ab"), ("itBETWEENx@a", ""),
    ("itLIKEAMP", "ab"), ("itCONTAINS%", "b"), ("itLIKE_", "c"), ("itLIKE\\", "c"), ("itLIKE%%", ""),
    ("itNOTLIKEamp", "cde"), ("itNOT LIKEamp", "cde"), ("itSTARTSWITHLAMP", "ab"), ("itSTARTSWITH%", ""),
    ("itENDSWITHP", "a"), ("itENDSWITH%", "b"), ("itENDSWITHsomething longer than all", ""),
    ("itISEMPTY", "de"), ("itISNOTEMPTY", "abc"), ("itEMPTYSTRING", "d"), ("itANYTHING", "abcde"), ("itNOTHING", ""),
    ("itSAMEASother", "acde"), ("itNSAMEASother", "b"),
]  # fmt: skip
NUMBER_VALUES = ([1, 2, -3, 10, None], [1, 5, -5, None, None])
NUMBER_EXAMPLES = [
    ("it=1", "a"), ("it=+1", "a"), ("it=01", "a"), ("it!=1", "bcde"), ("it=", "e"), ("it!=", "abcd"), ("it>1", "bd"),
    ("it>=1", "abd"), ("it<1", "c"), ("it<=1", "ac"), ("itIN1,-3,7", "ac"), ("itNOT IN1", "bcde"),
    ("itBETWEEN1@2", "ab"), ("itISEMPTY", "e"), ("itISNOTEMPTY", "abcd"), ("itANYTHING", "abcde"), ("itNOTHING", ""),
    ("itSAMEASother", "ae"), ("itNSAMEASother", "bcd"), ("itGT_FIELDother", "c"), ("itLT_FIELDother", "b"),
    ("itGT_OR_EQUALS_FIELDother", "ac"), ("itLT_OR_EQUALS_FIELDother", "ab"),
]  # fmt: skip
OPERATOR_EXAMPLES: dict[str, tuple[tuple[list[Any], list[Any]], list[tuple[str, str]]]] = {
    "string": (TEXT_VALUES, TEXT_EXAMPLES),
    "text": (TEXT_VALUES, TEXT_EXAMPLES),
    "wysiwyg": (TEXT_VALUES, TEXT_EXAMPLES),
    "integer": (NUMBER_VALUES, NUMBER_EXAMPLES),
    "decimal": (
        (["1.50", 2, -3, 10, None], [1.5, 5, -5, None, None]),
        [(query.replace("it=1", "it=1.5").replace("it=01", "it=01.500"), names) for query, names in NUMBER_EXAMPLES[:1]]
        + [
            ("it=1.5", "a"),
            ("it!=15e-1", "bcde"),
            ("it>1.4999999999999999999999", "abd"),
            ("it<=1.5", "ac"),
            ("itIN1.50,-3", "ac"),
            ("itNOT IN1.5", "bcde"),
            ("itBETWEEN1.5@2", "ab"),
            ("it>=1.5", "abd"),
            ("it<1.5", "c"),
            *NUMBER_EXAMPLES[13:],
        ],
    ),
    "boolean": (
        ([True, False, None, True, None], [True, True, None, None, None]),
        [
            ("it=true", "ad"),
            ("it=True", "ad"),
            ("it=FALSE", "b"),
            ("it=1", "ad"),
            ("it=false", "b"),
            ("it=0", "b"),
            ("it!=true", "bce"),
            ("it!=false", "acde"),
            ("it=", "ce"),
            ("itISEMPTY", "ce"),
            ("itISNOTEMPTY", "abd"),
            ("itANYTHING", "abcde"),
            ("itNOTHING", ""),
            ("itSAMEASother", "ace"),
            ("itNSAMEASother", "bd"),
        ],
    ),
    "datetime": (
        (
            [
                "2024-02-29 00:00:00+00",
                "2024-02-29 23:59:59.5+00",
                "2024-03-01 00:00:00+00",
                "1999-12-31 12:30:00+00",
                None,
            ],
            [
                "2024-02-29 00:00:00.7+00",
                "2024-03-01 00:00:00+00",
                "2024-02-01 00:00:00+00",
                "1999-12-31 12:29:00+00",
                None,
            ],
        ),
        [
            ("it=2024-02-29 00:00:00", "a"),
            ("it=2024-02-29", "a"),
            ("it=2024-02-29T03:00:00+03:00", "a"),
            ("it=2024-02-29 23:59:59", "b"),
            ("it!=2024-02-29", "bcde"),
            ("it>2024-02-29 23:59:59", "c"),
            ("it>=2024-02-29 23:59:59", "bc"),
            ("it<2024-02-29 23:59:59", "ad"),
            ("it<=2024-02-29 23:59:59", "abd"),
            ("itIN2024-02-29 23:59:59,2024-03-01", "bc"),
            ("itNOT IN2024-02-29 23:59:59,2024-03-01", "ade"),
            ("itBETWEEN2024-02-29@2024-02-29 23:59:59", "ab"),
            ("it=", "e"),
            ("itISEMPTY", "e"),
            ("itISNOTEMPTY", "abcd"),
            ("itSAMEASother", "ae"),
            ("itNSAMEASother", "bcd"),
            ("itGT_FIELDother", "cd"),
            ("itLT_FIELDother", "b"),
            ("itGT_OR_EQUALS_FIELDother", "acd"),
            ("itLT_OR_EQUALS_FIELDother", "ab"),
            ("itON2024-02-29", "ab"),
            ("itNOTON2024-02-29", "cde"),
            ("itONleap@2024-02-29@2024-03-01", "abc"),
            ("itONx@2024-02-29 10:00:00@2024-02-29 23:59:59", "b"),
            ("itNOTONx@2024-02-29 10:00:00@2024-02-29 23:59:59", "acde"),
            ("itNOTONx@2024-02-29@2024-03-01", "de"),
            ("itYEAR_IS2024", "abc"),
            ("itQUARTER_IS4", "d"),
            ("itMONTH_IS2", "ab"),
            ("itWEEK_IS9", "abc"),
            ("itDAY_IS29", "ab"),
            ("itDAY_OF_WEEK_IS4", "ab"),
            ("itDAY_OF_WEEK_IS5", "cd"),
            ("itHOUR_IS23", "b"),
            ("itHOUR_IS0", "ac"),
            ("itMORETHANother@hour@after@1", "c"),
            ("itMORETHANother@minute@after@0", "cd"),
            ("itLESSTHANother@hour@after@1", "d"),
            ("itMORETHANother@hour@before@1", ""),
            ("itLESSTHANother@day@before@1", "ab"),
            ("itMORETHANother@quarter@after@1", ""),
            ("itLESSTHANother@quarter@after@1", "cd"),
            ("itRELATIVELT@day@ago@1", "abcd"),
            ("itRELATIVEGT@year@ago@1", ""),
            ("itANYTHING", "abcde"),
            ("itNOTHING", ""),
        ],
    ),
    "date": (
        (
            ["2024-02-29", "2024-03-01", "1999-12-31", "2023-02-28", None],
            ["2024-02-29", "2024-02-01", "2000-01-01", None, None],
        ),
        [
            ("it=2024-02-29", "a"),
            ("it=2024-02-29 13:00:00", "a"),
            ("it!=2024-02-29", "bcde"),
            ("it>2024-02-29", "b"),
            ("it>=2024-02-29", "ab"),
            ("it<2024-02-29", "cd"),
            ("it<=2024-02-29", "acd"),
            ("itIN2024-02-29,1999-12-31", "ac"),
            ("itNOT IN2024-02-29", "bcde"),
            ("itBETWEEN2023-01-01@2024-02-29", "ad"),
            ("itISEMPTY", "e"),
            ("it!=", "abcd"),
            ("itSAMEASother", "ae"),
            ("itNSAMEASother", "bcd"),
            ("itGT_FIELDother", "b"),
            ("itLT_FIELDother", "c"),
            ("itGT_OR_EQUALS_FIELDother", "ab"),
            ("itLT_OR_EQUALS_FIELDother", "ac"),
            ("itON2024-02-29", "a"),
            ("itNOTON2024-02-29", "bcde"),
            ("itONx@2023-01-01@2024-02-29", "ad"),
            ("itYEAR_IS2024", "ab"),
            ("itQUARTER_IS4", "c"),
            ("itMONTH_IS2", "ad"),
            ("itWEEK_IS9", "abd"),
            ("itDAY_IS1", "b"),
            ("itDAY_OF_WEEK_IS4", "a"),
            ("itHOUR_IS0", "abcd"),
            ("itMORETHANother@week@after@1", "b"),
            ("itLESSTHANother@day@before@2", "ac"),
            ("itRELATIVELE@month@ago@1", "abcd"),
            ("itANYTHING", "abcde"),
            ("itNOTHING", ""),
        ],
    ),
    "choice": (
        (["New", "new", "50%", "closed", None], ["New", "New", None, "closed", None]),
        [
            ("it=New", "a"),
            ("it!=New", "bcde"),
            ("it=NEW", ""),
            ("itINNew,closed", "ad"),
            ("itNOT INNew", "bcde"),
            ("itLIKENEW", "ab"),
            ("itLIKE%", "c"),
            ("itNOTLIKEnew", "cde"),
            ("itSTARTSWITHN", "ab"),
            ("itENDSWITHED", "d"),
            ("itBETWEENa@z", "bd"),
            ("it=", "e"),
            ("itISEMPTY", "e"),
            ("itISNOTEMPTY", "abcd"),
            ("itSAMEASother", "ade"),
            ("itNSAMEASother", "bc"),
            ("itANYTHING", "abcde"),
            ("itNOTHING", ""),
        ],
    ),
    "reference": (
        (["$bob", "$alice", None, "$bob", None], ["$bob", "$bob", None, None, None]),
        [
            ("it=$bob", "ad"),
            ("it!=$bob", "bce"),
            ("it=nobody", ""),
            ("itIN$bob,$alice", "abd"),
            ("itNOT IN$bob", "bce"),
            ("itDYNAMICme", "ad"),
            ("itISNOT_DYNAMICme", "bce"),
            ("it=javascript:gs.getUserID()", "ad"),
            ("it=", "ce"),
            ("itISEMPTY", "ce"),
            ("itISNOTEMPTY", "abd"),
            ("itSAMEASother", "ace"),
            ("itNSAMEASother", "bd"),
            ("it.login=BOB", "ad"),
            ("it.login!=bob", "bce"),
            ("itSAMEASsys_id", ""),
            ("it.sys_idSAMEASother", "ace"),
            ("itANYTHING", "abcde"),
            ("itNOTHING", ""),
        ],
    ),
    "list": (
        ([["$bob"], ["$alice", "$bob"], [], ["$alice"], None], [["$bob"], ["$bob", "$alice"], None, None, []]),
        [
            ("it=$bob", "a"),
            ("it!=$bob", "bcde"),
            ("itHAS$bob", "ab"),
            ("itHAS$bob,$alice", "abd"),
            ("itHASNOT$bob", "cde"),
            ("itCONTAINS_DYNAMICme", "ab"),
            ("itDOESNOTCONTAIN_DYNAMICme", "cde"),
            ("it=", "ce"),
            ("itISEMPTY", "ce"),
            ("itISNOTEMPTY", "abd"),
            ("itSAMEASother", "ace"),
            ("itNSAMEASother", "bd"),
            ("itANYTHING", "abcde"),
            ("itNOTHING", ""),
        ],
    ),
    "json": (
        ([{"x": 1}, 0, [], {}, None], [None] * 5),
        [("itISEMPTY", "e"), ("itISNOTEMPTY", "abcd"), ("itANYTHING", "abcde"), ("itNOTHING", "")],
    ),
}


def with_ids(value: Any, user_ids: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [with_ids(item, user_ids) for item in value]
    if isinstance(value, str):
        return re.sub(r"\$(bob|alice)", lambda match: user_ids[match.group(1)], value)
    return value


def matching_names(caller: Any, name: str, query: str) -> str:
    return "".join(sorted(column_values(caller.get(name, query=query, fields="name"), "name")))


@pytest.mark.parametrize("type_name", OPERATOR_EXAMPLES)
def test_operators_match_the_expected_records(type_name: str, alice: User, bob: User):
    """Each record matches either an operator or its negation."""
    (values, other_values), examples = OPERATOR_EXAMPLES[type_name]
    user_ids = {"alice": alice.pk, "bob": bob.pk}
    attributes: dict[str, Any] = (
        {"choices": {choice: choice for choice in values if choice}} if type_name == "choice" else {}
    )
    attributes |= {"target": "user"} if type_name in ("reference", "list") else {}
    table("thing")
    table("holder")
    for name, column_type, options in (
        ("name", "string", {}),
        ("it", type_name, attributes),
        ("other", type_name, attributes),
    ):
        field("thing", name, column_type, **options)
    field("holder", "name")
    field("holder", "at", target="thing")
    open_table("thing")
    open_table("holder")
    for name, value, other_value in zip(NAMES, values, other_values, strict=True):
        record_id = record("thing", name=name, it=with_ids(value, user_ids), other=with_ids(other_value, user_ids))
        record("holder", name=name, at=record_id)
    record("holder", name="f")
    caller = api(bob, credential="key")

    for query, names in examples:
        query = with_ids(query, user_ids)
        assert matching_names(caller, "thing", query) == names, query
        (condition,) = parse(query).conditions()
        # Every column behind an empty reference is empty.
        expected_names = names + "f" * (empty_value_match(condition.operator) in ("yes", "if both are empty"))
        assert matching_names(caller, "holder", holder_query(query)) == expected_names, query
        if condition.row.complement:
            negated_query = f"{'.'.join(condition.path)}{condition.row.complement}{condition.value}"
            assert set(matching_names(caller, "thing", negated_query)) == set(NAMES) - set(names), negated_query
            assert set(matching_names(caller, "holder", holder_query(negated_query))) == set(NAMES + "f") - set(
                expected_names
            ), negated_query


def holder_query(query: str) -> str:
    """The same query for a holder, with paths through `at`."""
    (condition,) = parse(query).conditions()
    value = query[condition.value_position :]
    if condition.row.kind in (ValueKind.PATH, ValueKind.DISTANCE):
        value = f"at.{value}"
    return f"at.{query[: condition.value_position]}{value}"


GENERAL_OPERATORS = {"=", "!=", "ISEMPTY", "ISNOTEMPTY", "ANYTHING", "NOTHING", "SAMEAS", "NSAMEAS"}
ORDER_OPERATORS = {"IN", "NOT IN", ">", "<", ">=", "<=", "BETWEEN"}
TEXT_OPERATORS = {"LIKE", "NOTLIKE", "STARTSWITH", "ENDSWITH"}
FIELD_OPERATORS = {"GT_FIELD", "LT_FIELD", "GT_OR_EQUALS_FIELD", "LT_OR_EQUALS_FIELD"}
TIME_OPERATORS = {"ON", "NOTON", "MORETHAN", "LESSTHAN"} | {
    name for name in OPERATORS if name.endswith("_IS") or name.startswith("RELATIVE")
}
OPERATORS_OF_FAMILY: dict[str, set[str]] = {
    "text": GENERAL_OPERATORS | ORDER_OPERATORS | TEXT_OPERATORS | {"EMPTYSTRING"},
    "number": GENERAL_OPERATORS | ORDER_OPERATORS | FIELD_OPERATORS,
    "time": GENERAL_OPERATORS | ORDER_OPERATORS | FIELD_OPERATORS | TIME_OPERATORS,
    "choice": GENERAL_OPERATORS | TEXT_OPERATORS | {"IN", "NOT IN", "BETWEEN"},
    "id": GENERAL_OPERATORS | {"IN", "NOT IN", "DYNAMIC", "ISNOT_DYNAMIC"},
    "list": GENERAL_OPERATORS | {"HAS", "HASNOT", "CONTAINS_DYNAMIC", "DOESNOTCONTAIN_DYNAMIC"},
    "boolean": GENERAL_OPERATORS,
    "json": {"ISEMPTY", "ISNOTEMPTY", "ANYTHING", "NOTHING"},
    "never": set(),
}
SAMPLE_OPERANDS = {
    "none": "", "text": "1", "a,b,c": "1,2", "a@b": "1@2", "path": "it", "date or label@start@end": "2024-01-01",
    "whole number": "1", "@unit@ago|ahead@n": "@day@ago@1", "path@unit@before|after@n": "it@day@after@1",
    "me, my_groups, my_roles": "me", "words": "x", "table": "thing",
}  # fmt: skip


def test_operator_unsupported_by_the_type_is_refused(bob: User):
    table("thing")
    for type_name in TYPE_ROWS:
        field(
            "thing", f"a_{type_name}", type_name, **({"target": "user"} if type_name in ("reference", "list") else {})
        )
    open_table("thing")
    catalogue = catalogue_loader.reload_if_changed()
    rule_scope = path_resolver.RuleScope(catalogue)
    refused_queries = {}
    for type_name, type_row in TYPE_ROWS.items():
        supported_operators = OPERATORS_OF_FAMILY[type_row.family]
        for name, row in OPERATORS.items():
            if row.only_path:
                continue
            query = f"a_{type_name}{name}{SAMPLE_OPERANDS[row.kind.value].replace('it', f'a_{type_name}')}"
            try:
                path_resolver.resolve_query(rule_scope, catalogue.tables["thing"], parse(query))
                is_accepted = True
            except QueryError:
                is_accepted, refused_queries[type_name] = False, query
            except Exception:  # a column that no one may read is unknown
                is_accepted = False
            assert is_accepted is (name in supported_operators), query
    assert refused_queries.keys() == TYPE_ROWS.keys() - {"password", "secret"}
    for query in refused_queries.values():
        assert error_of(api(bob).get("thing", query=query)) == (400, "invalid_query", "sysparm_query"), query


def test_caller_functions_use_the_groups_and_roles_of_the_caller(alice: User, bob: User):
    helpers, others = group("Helpers", bob), group("Others", alice)
    grant(bob, "reader", "auditor")
    table("thing")
    for name, target in (("helpers", "sys_group"), ("role", "sys_role")):
        field("thing", name, target=target)
        field("thing", f"{name}_list", "list", target=target)
    field("thing", "name")
    open_table("thing")
    record("thing", name="a", helpers=helpers.pk, helpers_list=[others.pk, helpers.pk], role=role("auditor").pk)
    record("thing", name="b", helpers=others.pk, helpers_list=[others.pk], role=role("admin").pk)
    record("thing", name="c", role_list=[role("reader").pk])

    for query, names in (
        ("helpersDYNAMICmy_groups", "a"), ("helpersISNOT_DYNAMICmy_groups", "bc"), ("roleDYNAMICmy_roles", "a"),
        ("helpers_listCONTAINS_DYNAMICmy_groups", "a"), ("helpers_listDOESNOTCONTAIN_DYNAMICmy_groups", "bc"),
        ("role_listCONTAINS_DYNAMICmy_roles", "c"), ("helpersDYNAMICme", ""), ("helpers.nameDYNAMICme", None),
    ):  # fmt: skip
        response = api(bob).get("thing", query=query, fields="name")
        if names is None:
            assert error_of(response)[:2] == (400, "invalid_query")
        else:
            assert "".join(sorted(column_values(response, "name"))) == names, query
    assert (
        column_values(api(bob, scope=["reader"]).get("thing", query="roleDYNAMICmy_roles", fields="name"), "name") == []
    )


def test_columns_of_different_types_cannot_be_compared(bob: User):
    table("thing")
    for name, type_name in (("n", "integer"), ("m", "decimal"), ("s", "string"), ("d", "date"), ("t", "datetime")):
        field("thing", name, type_name)
    open_table("thing")
    record("thing", n=1, m=1, s="1", d=date(2024, 5, 19), t="2024-05-19 00:00:00.9+00")
    for query in ("dSAMEASt", "tSAMEASd", "dGT_OR_EQUALS_FIELDt", "tLESSTHANd@day@after@1"):
        assert len(data_of(api(bob).get("thing", query=query))) == 1, query
    for query in ("nSAMEASs", "sSAMEASt", "dGT_FIELDn", "tMORETHANn@day@after@1", "sys_idSAMEASs"):
        assert error_of(api(bob).get("thing", query=query)) == (400, "invalid_query", "sysparm_query"), query


def test_ids_are_compared_exactly(bob: User):
    table("thing")
    field("thing", "name")
    open_table("thing")
    ids = {name: record("thing", sys_id=f"00{name}", name=name) for name in "abc"}
    for query, names in (
        (f"sys_id={ids['a']}", "a"),
        ("sys_id=00A", ""),
        (f"sys_id!={ids['a']}", "bc"),
        (f"sys_id>{ids['a']}", "bc"),
        (f"sys_idIN{ids['a']},{ids['c']}", "ac"),
        (f"sys_idNOT IN{ids['a']}", "bc"),
        (f"sys_idBETWEEN{ids['a']}@{ids['b']}", "ab"),
        ("sys_idISEMPTY", ""),
        ("sys_idSTARTSWITH00", "abc"),
        ("sys_idLIKEB", "b"),
        (f"sys_id<={ids['b']}", "ab"),
    ):
        assert matching_names(api(bob), "thing", query) == names, query


class TestWordSearch:
    @pytest.fixture
    def notes(self, db: Any) -> None:
        table("note")
        field("note", "name")
        field("note", "subject", is_indexed=True)
        field("note", "body", "text", is_indexed=True)
        field("note", "page", "wysiwyg", is_indexed=True)
        field("note", "mark", "string")
        open_table("note")
        record("note", name="a", subject="Printer on fire", body="The third floor", mark="secretly")
        record("note", name="b", subject="Printers", page="<p>It <b>burns</b> on the floor</p>")
        record("note", name="c")

    def test_each_word_must_be_in_an_indexed_text(self, notes: None, bob: User):  # B16
        for query, names in (
            ("sys_idAREprinter", "a"), ("sys_idAREfire  FLOOR", "a"), ("sys_idAREfloor", "ab"), ("sys_idAREburns", "b"),
            ("sys_idAREprinter burns", ""), ("sys_idAREsecretly", ""), ("sys_idAREb", ""),
            ("sys_idAREprinter - & fire,", "a"),
            ("sys_idAREfloor^name=b", "b"), ("sys_idAREit's | ! & (fire", ""),
        ):  # fmt: skip
            assert matching_names(api(bob), "note", query) == names, query

    def test_only_readable_texts_are_searched(self, notes: None, bob: User):  # B16
        from tests.tableapi.world import rule

        rule("read", "note", "body", roles=["reader"])
        rule("read", "note", "page", condition="name=x")
        assert matching_names(api(bob), "note", "sys_idAREfloor") == ""
        assert matching_names(api(bob), "note", "sys_idAREfire floor") == ""
        grant(bob, "reader")
        assert matching_names(api(bob), "note", "sys_idAREfloor") == "a"

    def test_words_times_columns_count_as_conditions(self, notes: None, bob: User):
        def search_words(word_count: int, further_query: str = "") -> Any:
            return api(bob).get(
                "note", query="sys_idARE" + " ".join(f"w{number}" for number in range(word_count)) + further_query
            )

        # Three columns are searched.
        assert data_of(search_words(66, "^name=a^ORname=b")) == []
        for refusal in (
            search_words(67),
            search_words(66, "^name=a^ORname=b^ORname=c"),
            search_words(60, "^NQsys_idAREa b c d e f g"),
        ):
            assert error_of(refusal) == (400, "invalid_query", "sysparm_query")
            assert "more than 200 conditions" in refusal.json()["errors"][0]["message"]

    def test_parser_refuses_too_many_words(self):
        with pytest.raises(QueryError, match="more than 200 conditions"):
            parse("sys_idARE" + " ".join(f"{number:03}" for number in range(3_000)))
        assert parse("sys_idARE" + " ".join(map(str, range(200))))

    def test_word_search_without_indexed_text_is_refused(self, notes: None, bob: User):
        table("plain")
        field("plain", "name")
        open_table("plain")
        assert error_of(api(bob).get("plain", query="sys_idAREx")) == (400, "invalid_query", "sysparm_query")
        assert error_of(api(bob).get("note", query="bodyAREx")) == (400, "invalid_query", "sysparm_query")
        assert error_of(api(bob).get("note", query="sys_idARE... &")) == (400, "invalid_query", "sysparm_query")


def test_instanceof_includes_child_tables(bob: User):
    table("device")
    field("device", "name")
    table("laptop", parent="device")
    table("slim", parent="laptop")
    table("vault")
    for name in ("device", "laptop", "slim"):
        open_table(name)
        record(name, name=name[0])
    for query, names in (
        ("sys_idINSTANCEOFdevice", "dls"),
        ("sys_idINSTANCEOFlaptop", "ls"),
        ("sys_idINSTANCEOFslim", "s"),
        ("sys_idINSTANCEOFuser", ""),
        ("nameANYTHING^sys_idINSTANCEOFlaptop^NQname=d", "dls"),
    ):
        assert matching_names(api(bob), "device", query) == names, query
    hidden_response, missing_response = (
        api(bob).get("device", query=f"sys_idINSTANCEOF{name}") for name in ("vault", "vaulu")
    )
    assert error_of(hidden_response) == (400, "invalid_query", "sysparm_query")
    assert hidden_response.content.replace(b"vault", b"") == missing_response.content.replace(b"vaulu", b"")
    assert data_of(api(bob).get("user", query="sys_idINSTANCEOFuser"))
    assert data_of(api(bob).get("user", query="sys_idINSTANCEOFdevice")) == []

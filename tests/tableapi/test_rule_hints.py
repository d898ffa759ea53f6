"""Hints about rules that grant too much, are redundant, or name values that do not exist."""

from typing import Any

import pytest

from accounts.models import Role, User
from tableapi.database import catalogue_loader
from tableapi.design import saving
from tableapi.design.rule_hints import condition_hints, rule_hints
from tableapi.models import Rule, Table

pytestmark = pytest.mark.django_db


def hints_of(table: str = "task", **values: Any) -> str:
    """Save a rule, and return its hints."""
    rule = Rule(**{"table": Table.objects.filter(name=table).first(), "operation": "read", **values})
    saving.save_rule(rule)
    hints = [*rule_hints(rule), *(condition_hints(catalogue_loader.load(), table, rule.condition) if table else ())]
    return " ".join(hints)


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        ("state=9^ORstate=1", "“9” is not a choice of state."),
        ("stateIN1,8,7", "“8” is not a choice of state. “7” is not"),
        ("state!=New", "“New” is not a choice of state."),
        ("caller=bob", "caller: user has no record with ID “bob”."),
        ("caller.company!=1", "caller.company: company has no record with ID “1”."),
        ("followers_listHASnobody", "followers_list: user has no record with ID “nobody”."),
    ],
)
def test_unknown_value_gets_a_hint(condition: str, sentence: str):
    assert sentence in hints_of(condition=condition)


@pytest.mark.parametrize(
    "condition",
    ["state=1", "stateIN1,2", "state=", "callerDYNAMICme", "caller={user}", "caller=javascript:gs.getUserID()",
     "stateLIKE9", "short_description=9"],
)  # fmt: skip
def test_known_value_gets_no_hint(alice: User, condition: str):
    assert not hints_of(condition=condition.format(user=alice.pk))


def test_rule_for_everybody_gets_a_hint():
    hint = "This rule lets every signed-in user delete the records of every designed table"
    itil = Role.objects.get(name="itil").pk
    narrower: tuple[dict[str, Any], ...] = (
        {"roles": [itil]}, {"condition": "sys_version=1"}, {"active": False}, {"column_name": "sys_id"},
    )  # fmt: skip
    for values in narrower:
        assert hint not in hints_of("", operation="delete", **values)
    assert hint in hints_of("", operation="delete")


def test_redundant_rule_gets_a_hint():
    itil, admin = (Role.objects.get(name=name).pk for name in ("itil", "admin"))
    hints_of(roles=[itil, admin], condition="active=true")
    cases: tuple[tuple[dict[str, Any], bool], ...] = (
        ({"roles": [admin, itil], "condition": "active=true"}, True),
        ({"roles": [itil], "condition": "active=true"}, False),
        ({"roles": [admin, itil], "condition": "active=false"}, False),
        ({"roles": [admin, itil], "condition": "active=true", "column_name": "state"}, False),
        ({"roles": [admin, itil], "condition": "active=true", "operation": "write"}, False),
    )
    for values, is_redundant in cases:
        assert ("already grants the same access or more" in hints_of(**values)) is is_redundant, values


def test_rule_that_differs_in_admin_bypass_is_not_redundant():
    itil = Role.objects.get(name="itil").pk
    hints_of(roles=[itil], admin_overrides=False)
    assert not hints_of(roles=[itil], condition="active=true")

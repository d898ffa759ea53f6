"""The list of access rules in the administration, and what it says about rules of deleted roles and columns."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import Role
from tableapi.design import saving
from tableapi.models import Column, Rule, Table
from tests.tableapi.catalogue_pages import page_text

pytestmark = pytest.mark.django_db


def create_rule(**values: Any) -> Rule:
    rule = Rule(table=Table.objects.get(name="task"), operation="read", **values)
    saving.save_rule(rule)
    return rule


def test_rules_are_listed_with_their_roles(as_alice: Client):
    create_rule(roles=[Role.objects.get(name="itil").pk], condition="active=true", column_name="state")
    assert "read task.state itil active=true" in page_text(as_alice.get("/admin/tableapi/rule/?q=task"))


def test_similar_rules_have_different_names(as_alice: Client):
    itil = Role.objects.get(name="itil")
    for values in ({"roles": [itil.pk]}, {"condition": "active=true"}, {"column_name": "state"}):
        create_rule(**values)
    names = {str(rule) for rule in Rule.objects.filter(table__name="task")}
    assert names == {"read task for itil", "read task where active=true", "read task.state"}
    list_text = page_text(as_alice.get("/admin/tableapi/rule/?q=task"))
    assert "read task itil" in list_text and "read task any signed-in user active=true" in list_text


def test_deleting_a_role_names_its_rules(as_alice: Client):
    desk, itil = Role.objects.create(name="desk"), Role.objects.get(name="itil")
    create_rule(roles=[desk.pk])
    create_rule(roles=[desk.pk, itil.pk], column_name="state")
    create_rule(roles=[itil.pk], column_name="number")

    form = {"action": "delete_selected", "_selected_action": [desk.pk]}
    for response in (
        as_alice.get(f"/admin/accounts/role/{desk.pk}/delete/"),
        as_alice.post("/admin/accounts/role/", form),
    ):
        text = page_text(response)
        assert "the access rule “read task for desk”, which will no longer apply to anyone" in text
        assert "the access rule “read task.state for desk, itil”, which will apply only to its other roles" in text
        assert "the access rule “read task.number" not in text


def test_rule_with_a_deleted_role_is_marked(as_alice: Client):  # B74
    role = Role.objects.create(name="desk")
    saving.save_rule(Rule(operation="read", table=Table.objects.get(name="task"), roles=[role.pk]))
    role.delete()

    assert "no one (all roles were deleted)" in page_text(as_alice.get("/admin/tableapi/rule/?q=task"))


def test_rule_with_a_dropped_column_is_marked(as_alice: Client):  # B74
    task = Table.objects.get(name="task")
    dropped_column = Column(table=task, name="gone", label="Gone", type="string")
    saving.save_column(dropped_column)
    saving.save_rule(Rule(operation="read", table=task, condition="gone=1"))
    list_path = "/admin/tableapi/rule/?q=task"
    list_text = page_text(as_alice.get(list_path))
    assert "gone=1" in list_text and "gone=1 (nobody" not in list_text
    dropped_column.delete()

    assert "gone=1 (matches no records: " in page_text(as_alice.get(list_path))

"""Access rules in the administration: errors are messages, suspicious rules get warnings."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import Role, User
from tableapi.design import saving
from tableapi.models import Column, Rule, Table
from tests.tableapi.catalogue_pages import page_path, page_text

pytestmark = pytest.mark.django_db


class TestRules:
    def post_rule(self, client: Client, **values: Any) -> Any:
        task = Table.objects.get(name="task")
        defaults = {"operation": "read", "table": task.pk, "column_name": "", "condition": "", "active": "on"}
        return client.post(page_path("rule"), defaults | values)

    def test_rule_can_be_created_with_roles(self, as_alice: Client):
        role = Role.objects.get(name="itil")
        assert (
            self.post_rule(as_alice, roles=[role.pk], condition="active=true", column_name="state").status_code == 302
        )

        rule = Rule.objects.get(table__name="task")
        assert (rule.roles, rule.admin_overrides) == ([role.pk], False)
        assert "itil" in page_text(as_alice.get("/admin/tableapi/rule/?q=task"))
        assert "cannot use the column" in page_text(as_alice.get(page_path("rule", rule)))

    @pytest.mark.parametrize(
        ("values", "sentence"),
        [
            ({"condition": "stateISNT1"}, "position"),
            ({"condition": "nonsense=1"}, "nonsense"),
            ({"condition": "active=true^ORDERBYnumber"}, "cannot contain ORDERBY"),
            ({"condition": "ORDERBYnumber"}, "cannot contain ORDERBY"),
            ({"condition": "^EQ"}, "A condition is expected"),
            ({"column_name": "nonsense"}, "no column with this name"),
            ({"roles": ["nobody"]}, "Select a valid choice"),
        ],
    )
    def test_invalid_rule_is_reported(self, as_alice: Client, values: dict[str, Any], sentence: str):  # B74
        assert sentence in page_text(self.post_rule(as_alice, **values))
        assert not Rule.objects.filter(table__name="task").exists()

    def test_all_errors_of_a_rule_are_reported_together(self, as_alice: Client):
        response = self.post_rule(as_alice, column_name="shoe", condition="nonsense=1")
        text = page_text(response)
        assert "task has no column with this name." in text
        assert "There is no column named &quot;nonsense&quot; at position 0: &#x27;nonsense&#x27;." in text

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
    def test_unknown_value_is_saved_with_a_warning(self, as_alice: Client, condition: str, sentence: str):
        response = self.post_rule(as_alice, condition=condition)
        assert response.status_code == 302 and Rule.objects.get(table__name="task").condition == condition
        assert sentence in page_text(as_alice.get(response["Location"]))

    @pytest.mark.parametrize(
        "condition",
        ["state=1", "stateIN1,2", "state=", "callerDYNAMICme", "caller={user}", "caller=javascript:gs.getUserID()",
         "stateLIKE9", "short_description=9"],
    )  # fmt: skip
    def test_known_value_gets_no_warning(self, as_alice: Client, alice: User, condition: str):
        response = self.post_rule(as_alice, condition=condition.format(user=alice.pk))
        text = page_text(as_alice.get(response["Location"]))
        assert "is not a choice of" not in text and "has no record with" not in text

    def test_rule_for_everybody_gets_a_warning(self, as_alice: Client):
        warning = "This rule lets every signed-in user delete the records of every designed table"
        response = self.post_rule(as_alice, table="", operation="delete")
        assert warning in page_text(as_alice.get(response["Location"]))
        for values in ({"roles": [Role.objects.get(name="itil").pk]}, {"condition": "sys_version=1"}, {"active": ""}):
            response = self.post_rule(as_alice, **{"table": "", "operation": "delete", **values})
            assert warning not in page_text(as_alice.get(response["Location"]))

    def test_redundant_rule_gets_a_warning(self, as_alice: Client):
        itil_id, admin_id = (Role.objects.get(name=name).pk for name in ("itil", "admin"))
        self.post_rule(as_alice, roles=[itil_id, admin_id], condition="active=true")
        for values, is_redundant in (
            ({"roles": [admin_id, itil_id], "condition": "active=true"}, True),
            ({"roles": [itil_id], "condition": "active=true"}, False),
            ({"roles": [admin_id, itil_id], "condition": "active=false"}, False),
            ({"roles": [admin_id, itil_id], "condition": "active=true", "column_name": "state"}, False),
            ({"roles": [admin_id, itil_id], "condition": "active=true", "operation": "write"}, False),
        ):
            response = self.post_rule(as_alice, **values)
            assert (
                "already grants the same access or more" in page_text(as_alice.get(response["Location"]))
            ) is is_redundant, values

    def test_rule_that_differs_in_admin_bypass_is_not_redundant(self, as_alice: Client):
        itil_id = Role.objects.get(name="itil").pk
        self.post_rule(as_alice, roles=[itil_id], admin_overrides="")
        response = self.post_rule(as_alice, roles=[itil_id], condition="active=true", admin_overrides="on")
        assert "already grants the same access or more" not in page_text(as_alice.get(response["Location"]))

    def test_similar_rules_have_different_names(self, as_alice: Client):
        itil = Role.objects.get(name="itil")
        for values in ({"roles": [itil.pk]}, {"condition": "active=true"}, {"column_name": "state"}):
            self.post_rule(as_alice, **values)
        names = {str(rule) for rule in Rule.objects.filter(table__name="task")}
        assert names == {"read task for itil", "read task where active=true", "read task.state"}
        list_text = page_text(as_alice.get("/admin/tableapi/rule/?q=task"))
        assert "read task itil" in list_text and "read task any signed-in user active=true" in list_text

    def test_deleting_a_role_names_its_rules(self, as_alice: Client):
        desk, itil = Role.objects.create(name="desk"), Role.objects.get(name="itil")
        self.post_rule(as_alice, roles=[desk.pk])
        self.post_rule(as_alice, roles=[desk.pk, itil.pk], column_name="state")
        self.post_rule(as_alice, roles=[itil.pk], column_name="number")

        form = {"action": "delete_selected", "_selected_action": [desk.pk]}
        for response in (
            as_alice.get(f"/admin/accounts/role/{desk.pk}/delete/"),
            as_alice.post("/admin/accounts/role/", form),
        ):
            text = page_text(response)
            assert "the access rule “read task for desk”, which will no longer apply to anyone" in text
            assert "the access rule “read task.state for desk, itil”, which will apply only to its other roles" in text
            assert "the access rule “read task.number" not in text

    def test_rule_with_a_deleted_role_is_marked(self, as_alice: Client):  # B74
        role = Role.objects.create(name="desk")
        saving.save_rule(Rule(operation="read", table=Table.objects.get(name="task"), roles=[role.pk]))
        role.delete()

        assert "no one (all roles were deleted)" in page_text(as_alice.get("/admin/tableapi/rule/?q=task"))

    def test_rule_with_a_dropped_column_is_marked(self, as_alice: Client):  # B74
        task = Table.objects.get(name="task")
        dropped_column = Column(table=task, name="gone", label="Gone", type="string")
        saving.save_column(dropped_column)
        saving.save_rule(Rule(operation="read", table=task, condition="gone=1"))
        list_path = "/admin/tableapi/rule/?q=task"
        list_text = page_text(as_alice.get(list_path))
        assert "gone=1" in list_text and "gone=1 (nobody" not in list_text
        dropped_column.delete()

        assert "gone=1 (matches no records: " in page_text(as_alice.get(list_path))

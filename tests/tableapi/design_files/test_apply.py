"""What a design file may change, what it is refused for, and what the plan says about rights."""

from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from accounts.models import Role, User, UserRole
from tableapi.catalogue.column_types import COLUMN_TYPES
from tableapi.models import Choice, Column, Rule, Table
from tests.tableapi.world import (
    ApiClient,
    api,
    error_of,
    errors_of,
    field,
    grant,
    open_table,
    record,
    role,
    rule,
    table,
)
from workspace.models import SavedList

from .designs import DESIGN_URL, EMPTY, YAML_HEADERS, apply, export, plan, steps_of

pytestmark = pytest.mark.django_db

LABELED = {"name": "device", "label": "Device"}
NAME = {"name": "name", "label": "Name", "type": "string"}


@pytest.fixture
def designer(alice: User) -> ApiClient:
    return api(alice, credential="key")


@pytest.fixture
def device(db: Any) -> Table:
    device = table("device")
    field("device", "name")
    field("device", "state", choices={"1": "New", "2": "Old"})
    return device


def tables(**sections: Any) -> dict[str, Any]:
    return {"tables": [{"name": "device", **sections}]}


def test_plan_changes_nothing(designer: ApiClient):
    before = export(designer)
    design = {"roles": [{"name": "agent"}], "tables": [{**LABELED, "columns": [NAME]}]}
    steps = [("create", "role agent"), ("create", "table device"), ("create", "column device.name")]
    assert steps_of(plan(designer, design)) == steps
    assert export(designer) == before and not Table.objects.filter(name="device").exists()
    assert steps_of(apply(designer, design)) == steps
    assert steps_of(apply(designer, design)) == []


def test_history_names_the_person_who_applied(designer: ApiClient, alice: User):
    steps_of(apply(designer, {"tables": [LABELED]}))
    assert Table.history.get(name="device").history_user_id == alice.pk
    assert Table.objects.get(name="device").sys_created_by == alice.pk


def test_file_is_refused_as_a_whole(designer: ApiClient, device: Table):
    before = export(designer)
    column = {"name": "size", "label": "Size", "type": "integer"}
    design = tables(columns=[column, {"name": "sys_x", "label": "X", "type": "string"}])
    response = apply(designer, design)
    assert error_of(response) == (422, "invalid_value", "name")
    assert "column device.sys_x (name): Names that start with" in response.json()["errors"][0]["message"]
    assert export(designer) == before


def test_refusal_of_a_wrong_type_lists_the_types(designer: ApiClient, device: Table):
    wrong_column = {"name": "size", "label": "Size", "type": "number"}
    wrong_rule = {"operation": "fly", "roles": []}
    for design, names in (
        (tables(columns=[wrong_column]), ", ".join(COLUMN_TYPES)),
        (tables(rules=[wrong_rule]), "create, read, write, delete"),
    ):
        message = apply(designer, design).json()["errors"][0]["message"]
        assert message.endswith(f": Not a valid choice. Expected one of: {names}."), message


def test_contradiction_is_refused(designer: ApiClient, device: Table):
    design = tables(columns=[NAME | {"display": True}, NAME | {"name": "other", "display": True}])
    response = plan(designer, design)
    assert error_of(response)[:2] == (422, "invalid_value") and "contradicts" in str(response.json())


def test_default_must_be_one_of_the_choices_of_the_file(designer: ApiClient, device: Table):
    choices = [{"value": "3", "label": "Gone"}]
    column = {"name": "kind", "label": "Kind", "type": "choice", "choices": choices}
    assert apply(designer, tables(columns=[column | {"default_value": "4"}])).status_code == 422
    steps_of(apply(designer, tables(columns=[column | {"default_value": "3"}])))


def test_nothing_is_deleted_without_prune(designer: ApiClient, device: Table):
    design = tables(columns=[NAME], rules=[], views=[])
    open_table("device")
    assert steps_of(apply(designer, design)) == []
    deleted = steps_of(apply(designer, design, prune=1))
    assert ("delete", "column device.state") in deleted and len(deleted) == 5
    assert not device.rules.exists() and device.columns.count() == 1


def test_prune_deletes_only_in_the_sections_of_the_file(designer: ApiClient, device: Table):
    open_table("device")
    role("unused")
    assert steps_of(apply(designer, tables(columns=[NAME]), prune=1)) == [("delete", "column device.state")]
    assert device.rules.count() == 4 and Role.objects.filter(name="unused").exists()


def test_table_is_deleted_only_if_the_file_is_complete(designer: ApiClient, device: Table):
    text = export(designer)
    design = yaml.safe_load(text)
    design["tables"] = [entry for entry in design["tables"] if entry["name"] != "device"]
    assert steps_of(apply(designer, design | {"complete": False}, prune=1)) == []
    assert steps_of(plan(designer, design)) == []
    assert steps_of(apply(designer, design, prune=1)) == [("delete", "table device")]


def test_table_with_records_is_never_deleted(designer: ApiClient, device: Table):
    field("device", "other", target="device")
    record("device", name="Lamp")
    response = apply(designer, EMPTY, prune=1)
    assert response.status_code == 422 and "records" in str(response.json())
    assert Table.objects.filter(name="task").exists()


def test_role_that_users_have_is_never_deleted(designer: ApiClient, bob: User):
    grant(bob, "agent")
    response = apply(designer, {"roles": []}, prune=1)
    assert response.status_code == 422 and "Users have this role" in str(response.json())
    UserRole.objects.filter(user=bob).delete()
    assert steps_of(apply(designer, {"roles": []}, prune=1)) == [("delete", "role agent")]
    assert Role.objects.filter(name="itil").exists()


def test_product_tables_accept_only_custom_columns_rules_views_and_lists(designer: ApiClient):
    custom = {"name": "x_size", "label": "Size", "type": "integer"}
    design = {
        "tables": [{"name": "user", "columns": [custom], "views": [{"name": "short", "columns": [{"path": "login"}]}]}]
    }
    assert ("create", "column user.x_size") in steps_of(apply(designer, design))
    for refused in ({"label": "People"}, {"columns": [custom | {"name": "login"}]}, {"columns": [NAME]}):
        assert apply(designer, {"tables": [{"name": "user", **refused}]}).status_code == 422
    assert apply(designer, {"tables": [{"name": "nothing"}]}).status_code == 422


def test_order_of_choices_is_that_of_the_file(designer: ApiClient, device: Table):
    state = {"name": "state", "label": "State", "type": "choice"}
    values = [{"value": value, "label": value} for value in "231"]
    steps_of(apply(designer, tables(columns=[state | {"choices": values}])))
    assert list(Choice.objects.filter(column__name="state", column__table=device).values_list("value", flat=True)) == [
        *"231"
    ]
    assert steps_of(plan(designer, tables(columns=[state | {"choices": values}]))) == []


def test_rule_is_changed_by_its_description(designer: ApiClient, device: Table):
    described = {"operation": "read", "roles": ["itil"], "description": "Agents"}
    other = {"operation": "write", "roles": ["itil"]}
    steps_of(apply(designer, tables(rules=[described, other])))
    changed = [described | {"condition": "state=1"}, other | {"condition": "state=1"}]
    assert steps_of(apply(designer, tables(rules=changed))) == [
        ("create", "rule write device"), ("change", "rule read device “Agents”"),
    ]  # fmt: skip
    assert steps_of(apply(designer, tables(rules=changed), prune=1)) == [("delete", "rule write device")]


RULE = {"operation": "read", "roles": ["itil"], "condition": "state=1", "admin_overrides": False, "description": "A"}


@pytest.mark.parametrize(
    ("old", "new", "is_widened"),
    [
        (RULE, RULE | {"roles": []}, True),
        (RULE, RULE | {"roles": ["itil", "monitoring"]}, True),
        (RULE, RULE | {"roles": ["monitoring"]}, True),
        (RULE, RULE | {"condition": ""}, True),
        (RULE, RULE | {"condition": "state=2"}, True),
        (RULE, RULE | {"admin_overrides": True}, True),
        (RULE | {"active": False}, RULE, True),
        (RULE | {"column": "name"}, None, True),
        (RULE, RULE | {"active": False}, True),
        (None, RULE, True),
        (None, RULE | {"active": False}, False),
        (RULE | {"roles": []}, RULE, False),
        (RULE | {"roles": ["itil", "monitoring"]}, RULE, False),
        (RULE | {"condition": ""}, RULE, False),
        (RULE | {"admin_overrides": True}, RULE, False),
        (RULE | {"active": False}, None, False),
    ],
)
def test_plan_marks_rules_that_allow_more(designer: ApiClient, device: Table, old: Any, new: Any, is_widened: bool):
    steps_of(apply(designer, tables(rules=[old] if old else [])))
    (step,) = plan(designer, tables(rules=[new] if new else []), prune=1).json()["data"]
    assert (step["widens_rights"], bool(step["reason"])) == (is_widened, is_widened)


def test_deleting_one_of_several_rules_of_a_level_does_not_widen_rights(designer: ApiClient, device: Table):
    rule("read", "device", roles=["itil"])
    rule("read", "device", roles=["monitoring"])
    kept = {"operation": "read", "roles": ["itil"]}
    (step,) = plan(designer, tables(rules=[kept]), prune=1).json()["data"]
    assert not step["widens_rights"]


def test_widened_rights_come_first(designer: ApiClient, device: Table):
    Column.objects.filter(table=device, name="name").update(read_only=True)
    design = {
        "roles": [{"name": "agent", "contains": ["itil"]}],
        **tables(columns=[NAME, {"name": "new", "label": "New", "type": "string"}], rules=[RULE]),
    }
    steps = plan(designer, design).json()["data"]
    assert [step["widens_rights"] for step in steps] == [True, True, True, False]


@pytest.mark.parametrize("condition", ["name=171612345600000017", "name=" + "0f" * 16, "sys_id=short", "owner=short"])
def test_conditions_with_ids_are_refused(designer: ApiClient, device: Table, condition: str):
    field("device", "owner", target="user")
    design = tables(rules=[{"operation": "read", "roles": [], "condition": condition}])
    assert error_of(apply(designer, design)) == (422, "names_record", "condition")
    rule("read", "device", condition=condition)
    rule("write", "device", condition=condition)
    assert errors_of(designer.get(DESIGN_URL)) == [(409, "names_record", "condition")] * 2


@pytest.mark.parametrize("condition", ["owner=javascript:gs.getUserID()", "owner.login=bob", "ownerISEMPTY"])
def test_conditions_without_ids_are_accepted(designer: ApiClient, device: Table, condition: str):
    field("device", "owner", target="user")
    steps_of(apply(designer, tables(rules=[{"operation": "read", "roles": [], "condition": condition}])))
    export(designer)


def test_default_with_an_id_is_refused(designer: ApiClient, device: Table):
    design = tables(columns=[NAME | {"default_value": "171612345600000017"}])
    assert error_of(apply(designer, design)) == (422, "names_record", "default_value")


def test_rule_whose_roles_were_deleted_is_not_exported_as_a_rule_for_everybody(designer: ApiClient, device: Table):
    rule("read", "device", roles=["agent"])
    Role.objects.get(name="agent").delete()
    assert error_of(designer.get(DESIGN_URL)) == (409, "deleted_roles", "roles")


def test_shared_lists_are_applied_and_exported(designer: ApiClient, device: Table, alice: User, bob: User):
    shared = {"name": "New ones", "query": "state=1", "columns": ["name"], "roles": ["itil"]}
    itil = Role.objects.get(name="itil").pk
    SavedList.objects.create(user=bob, table_key=device.pk, name="Private", query="state=1")
    SavedList.objects.create(user=bob, table_key=device.pk, name="Id", query="sys_id=x", roles=[itil])
    assert steps_of(apply(designer, tables(shared_lists=[shared]))) == [("create", "shared list device.New ones")]
    saved = SavedList.objects.get(name="New ones")
    assert (saved.user, saved.columns, saved.roles) == (alice, ["name"], [itil])
    text = export(designer)
    assert "New ones" in text and "Private" not in text and "sys_id=x" not in text
    assert steps_of(apply(designer, tables(shared_lists=[]), prune=1)) == [("delete", "shared list device.New ones")]
    assert SavedList.objects.count() == 2
    wrong: dict[str, Any]
    for wrong in ({"query": "nothing=1"}, {"columns": ["nothing"]}, {"roles": []}):
        assert apply(designer, tables(shared_lists=[shared | wrong])).status_code == 422


def test_grants_are_not_part_of_a_design(designer: ApiClient, alice: User):
    assert "alice" not in export(designer)
    assert apply(designer, {"roles": [{"name": "agent", "users": ["alice"]}]}).status_code == 400


def test_only_administrators_can_use_design_files(alice: User, bob: User, sonja: User):
    callers = [api(bob), api(sonja), api(alice, scope=["itil"])]
    for caller in callers:
        assert caller.get(DESIGN_URL).status_code == 403
        assert plan(caller, {}).status_code == 403
        assert apply(caller, {}).status_code == 403
        assert caller.send("POST", f"{DESIGN_URL}/apply", b"[", YAML_HEADERS).status_code == 403


def test_command_exports_plans_and_applies(alice: User, tmp_path: Any, capsys: Any):
    file = tmp_path / "design.yaml"
    file.write_text("format: 1\ntables:\n- name: device\n  label: Device\n  rules:\n  - {operation: read, roles: []}\n")
    call_command("design", "plan", str(file), "--login", "alice")
    output = capsys.readouterr().out
    assert (
        output.startswith("create rule read device") and "WIDENS RIGHTS" in output and "nothing was changed" in output
    )
    assert not Table.objects.filter(name="device").exists()
    call_command("design", "apply", str(file), "--login", "alice")
    assert (
        Table.objects.get(name="device").sys_created_by == alice.pk
        and Rule.objects.filter(table__name="device").exists()
    )
    capsys.readouterr()
    call_command("design", "export", "--login", "alice")
    assert "name: device" in capsys.readouterr().out


def test_command_refuses_others_and_missing_files(alice: User, bob: User, tmp_path: Any):
    for arguments in (
        ("export", "--login", "bob"),
        ("export", "--login", "x"),
        ("plan", "missing", "--login", "alice"),
    ):
        with pytest.raises(CommandError):
            call_command("design", *arguments)

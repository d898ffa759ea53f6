"""The access rules on the page of a table: the matrix, rules with conditions, and warnings."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import Role
from tableapi.design import saving
from tableapi.models import Rule, Table
from tests.tableapi.designs import make_column, make_table
from tests.workspace.designer.design_pages import new_row, page_text, row_of, shown_data, together

pytestmark = pytest.mark.django_db


@pytest.fixture
def device(db: Any) -> Table:
    table = make_table("device")
    make_column(table, "colour", label="Colour")
    return table.refreshed()


@pytest.fixture
def agents(db: Any) -> Role:
    return Role.objects.create(name="device agents")


def create_rule(table: Table | None, operation: str = "read", column: str = "", **values: Any) -> Rule:
    rule = Rule(table=table, operation=operation, column_name=column, **values)
    saving.save_rule(rule)
    return rule


def versions() -> list[tuple[str, int]]:
    return sorted(Rule.objects.values_list("sys_id", "sys_version"))


def save(client: Client, data: dict[str, Any]) -> None:
    response = client.post("/design/device/", data)
    assert response.status_code == 302, page_text(response)


def test_every_kind_of_rule_survives_a_page_that_is_saved_unchanged(as_alice: Client, device: Table, agents: Role):
    other = Role.objects.create(name="device owners")
    gone = Role.objects.create(name="gone")
    create_rule(device)
    create_rule(device, "write", roles=[agents.pk], description=" Agents work ")
    create_rule(device, "write", roles=[agents.pk])  # a duplicate
    create_rule(device, "delete", roles=[agents.pk, other.pk])
    create_rule(device, "read", "colour", roles=[agents.pk, gone.pk], condition="colour=red ^ORcolour= blue ")
    create_rule(device, "read", "*", active=False)
    create_rule(device, "create", admin_overrides=False, description="  Nobody\u00a0yet ")
    create_rule(device, "read", "sys_created_at", roles=[gone.pk])
    gone.delete()
    before, history = versions(), Rule.history.count()

    for _ in range(2):
        save(as_alice, shown_data(as_alice, "device"))
    assert versions() == before and Rule.history.count() == history
    for table in Table.objects.filter(name__in=["task", "user", "sys_acl"]):
        assert as_alice.post(f"/design/{table.name}/", shown_data(as_alice, table.name)).status_code == 302
    assert versions() == before and Rule.history.count() == history


def test_cells_create_and_delete_rules(as_alice: Client, device: Table, agents: Role):
    kept = create_rule(device, "write", roles=[agents.pk])
    create_rule(device, "delete", roles=[agents.pk])
    data = shown_data(as_alice, "device")
    assert data["rules-cell"] == [f"write::{agents.pk}", f"delete::{agents.pk}"]

    data["rules-cell"] = [f"write::{agents.pk}", "read::", f"read:colour:{agents.pk}", "create:*:new:device buyers"]
    save(as_alice, data)
    buyers = Role.objects.get(name="device buyers")
    stored = {(rule.operation, rule.column_name, *rule.roles) for rule in Rule.objects.filter(table=device)}
    assert stored == {
        ("write", "", agents.pk), ("read", ""), ("read", "colour", agents.pk), ("create", "*", buyers.pk),
    }  # fmt: skip
    assert Rule.objects.get(pk=kept.pk).sys_version == kept.sys_version


def test_a_new_table_gets_its_rules_and_a_role_with_one_form(as_alice: Client):
    form = together(
        {"table-label": "Printer", "rules-cell": ["read::", "read::new:printing", "write:model:new:printing"]},
        new_row("columns", "1", label="Model", type="string"),
        new_row("rules", "1", operation="delete", condition="model=old", active="on", admin_overrides="on"),
    )
    response = as_alice.post("/design/new-table/", form)
    assert response.status_code == 302, page_text(response)
    role = Role.objects.get(name="printing")
    assert {str(rule) for rule in Rule.objects.filter(table__name="printer")} == {
        "read printer", f"read printer for {role}", f"write printer.model for {role}", "delete printer where model=old",
    }  # fmt: skip


def test_a_new_role_with_the_name_of_an_existing_one_is_that_role(as_alice: Client, device: Table, agents: Role):
    data = shown_data(as_alice, "device")
    data["rules-cell"] = [f"read::new:{agents.name}", f"read::{agents.pk}"]
    save(as_alice, data)
    assert Rule.objects.get(table=device).roles == [agents.pk]


def test_a_rule_with_a_condition_can_have_a_new_role(as_alice: Client, device: Table):
    row = new_row("rules", "n", active="on", operation="read", column_name="", condition="colour=red", roles=["new:it"])
    save(as_alice, together(shown_data(as_alice, "device"), row) | {"rules-role": ["new:it"]})

    rule = Rule.objects.get(table=device)
    assert (rule.condition, rule.roles) == ("colour=red", [Role.objects.get(name="it").pk])


def test_a_wrong_new_role_of_a_rule_is_refused(as_alice: Client, device: Table):
    row = new_row(
        "rules", "n", active="on", operation="read", column_name="", condition="colour=red", roles=[f"new:{'a' * 300}"]
    )
    data = together(shown_data(as_alice, "device"), row) | {"rules-role": [f"new:{'a' * 300}"]}
    assert as_alice.post("/design/device/", data).status_code == 200
    assert not Rule.objects.filter(table=device).exists() and not Role.objects.filter(name__startswith="aaa").exists()


def test_rules_with_conditions_are_changed_created_and_deleted(as_alice: Client, device: Table, agents: Role):
    changed = create_rule(device, condition="colour=red")
    create_rule(device, "delete", condition="colour=blue")
    data = shown_data(as_alice, "device")
    row = row_of(data, "rules", "condition", "colour=red")
    data |= {f"{row}-condition": "colour=green", f"{row}-roles": [agents.pk]}
    data[f"{row_of(data, 'rules', 'condition', 'colour=blue')}-delete"] = "on"
    values = {"operation": "write", "column_name": "colour", "condition": "colourISNOTEMPTY", "description": "Paint"}
    save(as_alice, together(data, new_row("rules", "n", active="on", **values)))

    rules = {rule.operation: rule for rule in Rule.objects.filter(table=device)}
    assert rules.keys() == {"read", "write"} and rules["read"].pk == changed.pk
    assert (rules["read"].condition, rules["read"].roles) == ("colour=green", [agents.pk])
    assert rules["write"].description == "Paint" and not rules["write"].admin_overrides
    text = page_text(as_alice.get("/design/device/"))
    assert "Colour is green" in text


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"condition": "missing=1"}, "missing"),
        ({"condition": "colour"}, "position"),
        ({"condition": "a\0b"}, "Null characters"),
        ({"operation": "own"}, "Select a valid choice"),
        ({"column_name": "missing"}, "has no column with this name"),
        ({"roles": ["123"]}, "Select a valid choice"),
        ({"description": "x" * 256}, "at most 255 characters"),
    ],
)
def test_a_wrong_rule_is_refused_at_its_field(as_alice: Client, device: Table, values: dict[str, Any], sentence: str):
    row = new_row("rules", "n", **{"operation": "read", "active": "on", **values})
    response = as_alice.post("/design/device/", together(shown_data(as_alice, "device"), row))
    assert response.status_code == 200 and sentence in page_text(response)
    assert f'name="rules-n-{next(iter(values))}"' in response.content.decode()
    assert not Rule.objects.filter(table=device).exists()


WRONG_CELLS = [
    "",
    "own::",
    "read",
    "read:missing:",
    "read::123",
    "read::new:",
    "read::new:a\0b",
    "read:\0:",
    "read::new:" + "x" * 101,
]


@pytest.mark.parametrize("cell", WRONG_CELLS)
def test_a_wrong_cell_is_refused_and_saves_nothing(as_alice: Client, device: Table, cell: str):
    roles = Role.objects.count()
    data = shown_data(as_alice, "device") | {"rules-cell": ["read::new:fine", cell], "table-label": "Other"}
    response = as_alice.post("/design/device/", data)
    assert response.status_code == 200 and "Not saved" in page_text(response)
    assert Role.objects.count() == roles and not Rule.objects.filter(table=device).exists()
    assert Table.objects.get(name="device").label != "Other"


def test_a_rule_whose_roles_are_all_deleted_never_becomes_one_for_everyone(
    as_alice: Client, device: Table, agents: Role
):
    create_rule(device, roles=[agents.pk], condition="colour=red")
    agents.delete()
    data = shown_data(as_alice, "device")
    data[f"{row_of(data, 'rules', 'condition', 'colour=red')}-condition"] = "colour=blue"
    response = as_alice.post("/design/device/", data)
    assert "The roles of this rule were deleted" in page_text(response)


def test_a_second_administrator_is_told_and_keeps_both(as_alice: Client, device: Table, agents: Role):
    data = shown_data(as_alice, "device") | {"rules-cell": ["read::"]}
    theirs = create_rule(device, "delete", roles=[agents.pk])
    response = as_alice.post("/design/device/", data)
    assert "Another administrator changed this table" in page_text(response)
    assert (
        f'value="delete::{agents.pk}" aria-label="device agents: delete the record" checked'
        in response.content.decode()
    )

    data["versions"] = shown_data(as_alice, "device")["versions"]
    save(as_alice, data)
    assert {rule.operation for rule in Rule.objects.filter(table=device)} == {"read", "delete"}
    assert Rule.objects.filter(pk=theirs.pk).exists()


def test_rules_of_a_column_that_is_deleted_go_with_it(as_alice: Client, device: Table):
    create_rule(device, "read", "colour")
    create_rule(device, "write", "colour", condition="colour=red")
    data = shown_data(as_alice, "device")
    data[f"{row_of(data, 'columns', 'label', 'Colour')}-delete"] = "on"
    content = as_alice.post("/design/device/", data).content.decode()
    save(as_alice, data | {"confirmed": content.split('name="confirmed" value="')[1].split('"')[0]})
    assert not Rule.objects.filter(table=device).exists()


def test_warnings_name_rules_that_never_decide_or_are_slow(as_alice: Client, device: Table, agents: Role):
    assert "Only administrators can create, read, write or delete the records" in page_text(
        as_alice.get("/design/device/")
    )
    create_rule(device, "write", "colour")
    create_rule(device, "read", condition="colour=red")
    create_rule(device, "read", "*", roles=[agents.pk])
    create_rule(device, "read", "colour", condition="colour=red")
    text = page_text(as_alice.get("/design/device/"))
    assert "It has no effect: no rule lets anyone write the record." in text
    assert "It does not apply to colour, which have rules of their own." in text
    assert "Slow in large tables: no column of the condition has an index." in text
    assert "sorting by a column whose rule has a condition" in text
    assert "Only administrators can create, write or delete the records" in text


def test_rules_of_parents_and_of_any_table_are_shown(as_alice: Client, device: Table, agents: Role):
    child = make_table("phone", parent=device)
    for_table = create_rule(device, "read", roles=[agents.pk])
    create_rule(device, "write", condition="colour=red")
    for_any_table = create_rule(None, "delete", roles=[agents.pk])
    create_rule(child, "read")
    content = as_alice.get("/design/phone/").content.decode()
    text = page_text(as_alice.get("/design/phone/"))
    assert "Read Device for device agents Not used here" in text
    assert "Write Device for everyone where Colour is red" in text and "Delete any table for device agents" in text
    assert f'/design/device/#record-{for_table.pk}"' in content
    assert f'/design/any-table/#record-{for_any_table.pk}"' in content


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"condition": "colourISNT1"}, "position"),
        ({"condition": "nonsense=1"}, "There is no column named &quot;nonsense&quot; at position 0"),
        ({"condition": "colour=red^ORDERBYcolour"}, "cannot contain ORDERBY"),
        ({"condition": "ORDERBYcolour"}, "cannot contain ORDERBY"),
        ({"condition": "^EQ"}, "A condition is expected"),
        ({"column_name": "nonsense", "condition": "shoe=1"}, "device has no column with this name"),
        ({"column_name": "nonsense", "condition": "shoe=1"}, "There is no column named &quot;shoe&quot;"),
        ({"roles": ["nobody"]}, "Select a valid choice"),
    ],
)
def test_invalid_rule_is_reported(as_alice: Client, device: Table, values: dict[str, Any], sentence: str):  # B74
    row = new_row("rules", "new", **{"operation": "read", "active": "on", **values})
    assert sentence in page_text(as_alice.post("/design/device/", together(shown_data(as_alice, "device"), row)))
    assert not Rule.objects.filter(table=device).exists()


def test_rules_for_any_table_have_a_page_of_their_own(as_alice: Client, device: Table, agents: Role):
    assert 'href="/design/any-table/"' in as_alice.get("/design/").content.decode()
    create_rule(device)
    ticked = create_rule(None, roles=[agents.pk])
    conditional = create_rule(None, "write", condition="sys_version=1")
    before, content = versions(), as_alice.get("/design/any-table/").content.decode()
    assert f'id="record-{ticked.pk}"' in content and f'id="record-{conditional.pk}"' in content
    assert as_alice.post("/design/any-table/", shown_data(as_alice, "any-table"))["Location"] == "/design/any-table/"
    assert versions() == before

    data = shown_data(as_alice, "any-table")
    data["rules-cell"] = [f"delete::{agents.pk}"]
    row = new_row("rules", "new", operation="read", column_name="colour", condition="sys_version=2", active="on")
    assert as_alice.post("/design/any-table/", together(data, row)).status_code == 302
    rules = Rule.objects.filter(table=None).order_by("operation", "condition")
    assert [(rule.operation, rule.column_name, rule.condition, rule.roles) for rule in rules] == [
        ("delete", "", "", [agents.pk]),
        ("read", "colour", "sys_version=2", []),
        ("write", "", "sys_version=1", []),
    ]
    assert Rule.objects.filter(table=device).count() == 1


def test_rules_for_any_table_are_checked_and_their_changes_noticed(as_alice: Client, device: Table):
    data = shown_data(as_alice, "any-table")
    row = new_row("rules", "new", operation="read", condition="colour=1^^", active="on")
    assert "position" in page_text(as_alice.post("/design/any-table/", together(data, row)))
    create_rule(None, "delete")
    text = page_text(as_alice.post("/design/any-table/", data | {"rules-cell": ["read::"]}))
    assert "Another administrator changed" in text and "This rule lets every signed-in user delete" in text
    assert not Rule.objects.filter(table=None, operation="read").exists()


def test_without_scripts_a_button_adds_roles_and_columns(as_alice: Client, device: Table, agents: Role):
    data = shown_data(as_alice, "device")
    data |= {"rules-role": [agents.pk], "rules-new_role": "painters", "rules-column": ["colour"], "step": "matrix"}
    content = as_alice.post("/design/device/", data).content.decode()
    for cell in (f"read::{agents.pk}", "delete:colour:new:painters", "write:colour:"):
        assert f'value="{cell}"' in content


def test_the_condition_builder_shows_a_condition(as_alice: Client, device: Table):
    assert '"path": "colour"' in as_alice.get("/design/device/condition/?query=colour=red").content.decode()
    assert as_alice.get("/design/device/condition/?query=^^").status_code == 200
    assert as_alice.get("/design/missing/condition/").status_code == 404


def test_only_administrators_see_the_condition_builder(device: Table, bob: Any):
    client = Client()
    client.force_login(bob)
    assert client.get("/design/device/condition/").status_code == 403

"""The page that designs a table: creating, changing and refusing, all with one form."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from system.errors import Unavailable
from tableapi.ddl import schema_editor
from tableapi.design import change_costs, saving
from tableapi.models import Choice, Column, Rule, SetRule, Table, View, ViewColumn
from tests.tableapi.designs import column_types_of, insert_row, make_column, make_table
from tests.workspace.designer.design_pages import new_row, page_text, row_of, shown_data, together

pytestmark = pytest.mark.django_db

NEW_TABLE = "/design/new-table/"


@pytest.fixture
def device(db: Any) -> Table:
    table = make_table("device")
    make_column(table, "colour", label="Colour")
    make_column(table, "state", "choice", label="State")
    return table.refreshed()


def stored_column(table: Table, name: str) -> Column:
    return Column.objects.get(table=table, name=name)


def test_one_form_creates_a_table_with_everything(as_alice: Client, alice: User):
    form = together(
        {"table-label": "Company laptop"},
        new_row("columns", "1", label="Bought on", type="date"),
        new_row("columns", "2", label="State", type="choice", choices="New\r\n2: In use"),
        new_row("columns", "3", label="Owner", type="reference", reference_table=Table.objects.get(name="user").pk),
        new_row("columns", "4", label="Retired at", type="datetime"),
        new_row("views", "1", name="form", columns=""),
        new_row("automatic", "1", column="retired_at", watched="state", value="2", set_to="javascript:gs.now()"),
    )

    response = as_alice.post(NEW_TABLE, form)
    assert response.headers.get("Location") == "/design/company_laptop/", page_text(response)

    table = Table.objects.get(name="company_laptop")
    assert table.sys_created_by == alice.pk
    names = ["bought_on", "state", "owner", "retired_at"]
    assert [column.name for column in table.columns.order_by("sys_id")] == names
    assert set(names) <= column_types_of("company_laptop").keys()
    assert list(Choice.objects.filter(column__table=table).values_list("value", "label")) == [
        ("new", "New"),
        ("2", "In use"),
    ]
    assert list(ViewColumn.objects.filter(view__table=table).values_list("path", flat=True)) == names
    assert SetRule.objects.get(column__table=table).watched.name == "state"


def test_a_page_that_is_saved_unchanged_changes_nothing(as_alice: Client):
    before = [(record.pk, record.sys_version) for model in (Table, Column, Choice, View, ViewColumn, SetRule)
              for record in model.objects.all()]  # fmt: skip
    for table in Table.objects.filter(name__in=["task", "user", "company", "sys_role"]):
        data = shown_data(as_alice, table.name)
        assert as_alice.post(f"/design/{table.name}/", data).status_code == 302, table
    after = [(record.pk, record.sys_version) for model in (Table, Column, Choice, View, ViewColumn, SetRule)
             for record in model.objects.all()]  # fmt: skip
    assert after == before


def test_an_error_keeps_what_was_typed_and_saves_nothing(as_alice: Client):
    form = together(
        {"table-label": "Device", "table-name": "device"},
        new_row("columns", "1", label="Colour", type="string"),
        new_row("columns", "2", label="Other", name="sys_other", type="string"),
    )
    response = as_alice.post(NEW_TABLE, form)

    assert response.status_code == 200
    text = page_text(response)
    assert "Not saved." in text and "reserved" in text
    assert 'value="sys_other"' in response.content.decode()
    assert not Table.objects.filter(name="device").exists() and column_types_of("device") == {}


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"label": "", "type": "date"}, "This field is required."),
        ({"label": "Size", "type": "nothing"}, "Select a valid choice."),
        ({"label": "State", "type": "choice", "choices": ""}, "Enter at least one choice."),
        ({"label": "State", "type": "choice", "choices": "New", "default_value": "old"}, "not the value of a choice"),
        ({"label": "Owner", "type": "reference"}, "Select the reference table."),
        ({"label": "数", "type": "string"}, "Enter a name of Latin letters"),
        ({"label": "A\0b", "type": "string"}, "Null characters"),
        ({"label": "Size", "type": "string", "max_length": "0"}, "greater than or equal to 1"),
        ({"label": "Size", "type": "integer", "default_value": "big"}, "big"),
    ],
)
def test_a_wrong_column_is_refused_at_its_field(as_alice: Client, device: Table, row: dict[str, str], sentence: str):
    data = together(shown_data(as_alice, "device"), new_row("columns", "n", **row))
    response = as_alice.post("/design/device/", data)

    assert response.status_code == 200 and sentence in page_text(response)
    assert device.columns.count() == 2


def test_choices_keep_their_identity_when_lines_move(as_alice: Client, device: Table):
    state = stored_column(device, "state")
    for position, (value, label) in enumerate({"new": "New", "2": "In use", "gone": "Gone"}.items()):
        saving.save_choice(Choice(column=state, value=value, label=label, position=position))
    ids = dict(state.choices.values_list("value", "sys_id"))
    data = shown_data(as_alice, "device")
    row = row_of(data, "columns", "label", "State")
    assert data[f"{row}-choices"] == "New\n2: In use\nGone"

    data[f"{row}-choices"] = "2: Used\r\nNew\r\nLost"
    assert as_alice.post("/design/device/", data).status_code == 302
    choices = list(state.choices.values_list("value", "label", "sys_id"))
    assert choices[:2] == [("2", "Used", ids["2"]), ("new", "New", ids["new"])] and choices[2][:2] == ("lost", "Lost")
    assert len(choices) == 3


def test_choices_that_lines_cannot_hold_stay(as_alice: Client, device: Table):
    state = stored_column(device, "state")
    saving.save_choice(Choice(column=state, value="a: b", label="Odd"))
    data = shown_data(as_alice, "device")
    row = row_of(data, "columns", "label", "State")
    data[f"{row}-label"] = "Condition"

    assert as_alice.post("/design/device/", data).status_code == 302
    assert [choice.value for choice in state.choices.all()] == ["a: b"]
    assert stored_column(device, "state").label == "Condition"


def test_views_have_headings_an_order_and_paths(as_alice: Client, device: Table):
    make_column(device, "owner", "reference", label="Owner", reference_table=Table.objects.get(name="user"))
    data = together(
        shown_data(as_alice, "device"),
        new_row("views", "n", name="form", columns="owner\r\n# Look\r\ncolour\r\nowner.login"),
    )
    assert as_alice.post("/design/device/", data).status_code == 302
    columns = ViewColumn.objects.filter(view__table=device)
    expected = [("owner", ""), ("colour", "Look"), ("owner.login", "Look")]
    assert list(columns.values_list("path", "section")) == expected
    ids = dict(columns.values_list("path", "sys_id"))

    data = shown_data(as_alice, "device")
    row = row_of(data, "views", "name", "form")
    data[f"{row}-columns"] = "colour\nowner.login"
    assert as_alice.post("/design/device/", data).status_code == 302
    assert list(columns.values_list("path", "section", "sys_id")) == [
        ("colour", "", ids["colour"]),
        ("owner.login", "", ids["owner.login"]),
    ]

    data = shown_data(as_alice, "device")
    data[f"{row_of(data, 'views', 'name', 'form')}-columns"] = "colour\nmissing.path"
    response = as_alice.post("/design/device/", data)
    assert "missing.path" in page_text(response) and "is not a valid path" in page_text(response)


def test_a_second_administrator_cannot_overwrite_silently(as_alice: Client, device: Table):
    first, second = shown_data(as_alice, "device"), shown_data(as_alice, "device")
    first[f"{row_of(first, 'columns', 'label', 'Colour')}-label"] = "Paint"
    second[f"{row_of(second, 'columns', 'label', 'Colour')}-label"] = "Tint"
    assert as_alice.post("/design/device/", first).status_code == 302

    response = as_alice.post("/design/device/", second)
    text = page_text(response)
    assert "Another administrator changed this table" in text and "column device.colour" in text
    assert 'value="Tint"' in response.content.decode()
    assert stored_column(device, "colour").label == "Paint"

    # Saving again, from the page with the message, replaces the change.
    second["versions"] = shown_data(as_alice, "device")["versions"]
    assert as_alice.post("/design/device/", second).status_code == 302
    assert stored_column(device, "colour").label == "Tint"


def test_a_row_that_another_administrator_deleted_is_reported(as_alice: Client, device: Table):
    data = shown_data(as_alice, "device")
    stored_column(device, "colour").delete()
    response = as_alice.post("/design/device/", data)
    assert response.status_code == 200 and "deleted this in the meantime" in page_text(response)


def test_costs_are_confirmed_before_a_column_is_deleted(as_alice: Client, device: Table):
    insert_row("device", colour="red")
    saving.save_rule(Rule(table=device, operation="read", condition="colour=red"))
    view = View(table=device, name="short")
    saving.save_view(view)
    saving.save_view_column(ViewColumn(view=view, path="colour"))
    data = shown_data(as_alice, "device")
    data[f"{row_of(data, 'columns', 'label', 'Colour')}-delete"] = "on"

    response = as_alice.post("/design/device/", data)
    text = page_text(response)
    assert "“Colour” is deleted, with its values in 1 record." in text
    assert "will no longer match any record" in text and "no longer shows “Colour”" in text
    assert "colour" in column_types_of("device")

    (digest,) = [part.split('"')[0] for part in response.content.decode().split('name="confirmed" value="')[1:]]
    assert as_alice.post("/design/device/", data | {"confirmed": "another"}).status_code == 200
    assert as_alice.post("/design/device/", data | {"confirmed": digest}).status_code == 302
    assert "colour" not in column_types_of("device")


def test_a_large_table_says_what_an_index_costs_and_refuses_unique(
    as_alice: Client, device: Table, monkeypatch: pytest.MonkeyPatch
):
    for colour in ("red", "green"):
        insert_row("device", colour=colour)
    monkeypatch.setattr(change_costs, "LARGE_TABLE_RECORDS", 1)
    monkeypatch.setattr(schema_editor, "MAX_RECORDS_FOR_UNIQUE_INDEX", 1)
    data = shown_data(as_alice, "device")
    row = row_of(data, "columns", "label", "Colour")
    data |= {f"{row}-is_indexed": "on", f"{row}-is_unique": "on", f"{row}-mandatory": "on"}

    response = as_alice.post("/design/device/", data)
    text = page_text(response)
    assert "built in the background, over 2 records" in text and "compared in 2 records" in text
    assert "must get one" not in text  # every record has a colour
    digest = response.content.decode().split('name="confirmed" value="')[1].split('"')[0]
    response = as_alice.post("/design/device/", data | {"confirmed": digest})
    assert "The table has more than 1 records" in page_text(response)
    assert not stored_column(device, "colour").is_indexed


def test_product_tables_take_only_labels_and_custom_columns(as_alice: Client):
    data = together(shown_data(as_alice, "user"), new_row("columns", "n", label="Seat", type="string"))
    data["table-label"] = "Person"
    data[f"{row_of(data, 'columns', 'label', 'Login')}-label"] = "Account"
    assert as_alice.post("/design/user/", data).status_code == 302
    user = Table.objects.get(name="user")
    assert user.label == "Person" and stored_column(user, "login").label == "Account"
    assert stored_column(user, "x_seat").is_designed

    data = together(shown_data(as_alice, "sys_role"), new_row("columns", "n", label="Seat", type="string"))
    response = as_alice.post("/design/sys_role/", data)
    assert response.status_code == 200 and "cannot be added" in page_text(response)


def test_a_table_is_deleted_from_its_page(as_alice: Client, device: Table):
    text = page_text(as_alice.get("/design/device/delete/"))
    assert "Device is deleted" in text or "device is deleted" in text
    insert_row("device")
    response = as_alice.post("/design/device/delete/")
    assert response.status_code == 409 and "has records" in page_text(response)
    assert "Show its records" in page_text(as_alice.get("/design/device/delete/"))

    desk = make_table("desk")
    assert as_alice.post("/design/desk/delete/").headers["Location"] == "/design/"
    assert not Table.objects.filter(pk=desk.pk).exists() and column_types_of("desk") == {}


def test_the_preview_shows_the_draft_and_saves_nothing(as_alice: Client, device: Table):
    data = together(
        shown_data(as_alice, "device"),
        new_row("columns", "n", label="Weight", type="decimal"),
        new_row("views", "n", name="form", columns="# Body\nweight\ncolour"),
    )
    text = page_text(as_alice.post("/design/device/preview/", data))
    assert "Body Weight" in text and "1299.90" in text
    assert device.columns.count() == 2

    text = page_text(as_alice.post("/design/new-table/preview/", {"columns-row": ["1"], "columns-1-label": "Size"}))
    assert "Size" not in text  # without a type


def test_without_scripts_a_button_adds_an_empty_row(as_alice: Client, device: Table):
    data = shown_data(as_alice, "device") | {"step": "columns"}
    content = as_alice.post("/design/device/", data).content.decode()
    assert content.count('name="columns-row"') == 4  # two stored, one new, and the template
    assert "Not saved" not in content


def test_the_list_finds_tables(as_alice: Client, device: Table):
    assert "/design/task/" in as_alice.get("/design/").content.decode()
    content = as_alice.get("/design/?q=DEVI").content.decode()
    assert "/design/device/" in content and "/design/task/" not in content


@pytest.mark.parametrize("login", ["bob", "sonja", "carl"])
@pytest.mark.parametrize("path", ["", "new-table/", "task/", "task/delete/", "missing/"])
def test_only_administrators_can_design(request: pytest.FixtureRequest, login: str, path: str):
    client = Client()
    client.force_login(request.getfixturevalue(login))
    assert client.get(f"/design/{path}").status_code == 403
    if path:
        assert client.post(f"/design/{path}").status_code == 403


def test_a_missing_table_is_not_found(as_alice: Client):
    assert as_alice.get("/design/missing/").status_code == 404
    assert as_alice.post("/design/missing/").status_code == 404
    assert as_alice.get("/design/new-table/delete/").status_code == 404


def test_a_shared_number_prefix_is_confirmed(as_alice: Client, device: Table):
    desk = make_table("desk", number_prefix="DEV")
    data = shown_data(as_alice, "device") | {"table-number_prefix": "DEV"}
    response = as_alice.post("/design/device/", data)
    assert "desk has the same number prefix, DEV. Two records can get the same number." in page_text(response)
    assert device.refreshed().number_prefix == ""
    digest = response.content.decode().split('name="confirmed" value="')[1].split('"')[0]
    assert as_alice.post("/design/device/", data | {"confirmed": digest}).status_code == 302
    assert device.refreshed().number_prefix == desk.number_prefix
    # An unchanged prefix is not mentioned again.
    assert as_alice.post("/design/device/", shown_data(as_alice, "device")).status_code == 302


def test_only_one_column_can_name_the_record(as_alice: Client, device: Table):
    data = shown_data(as_alice, "device")
    for label in ("Colour", "State"):
        data[f"{row_of(data, 'columns', 'label', label)}-is_display"] = "on"
    data[f"{row_of(data, 'columns', 'label', 'State')}-choices"] = "New"
    assert "Only one column can name the record." in page_text(as_alice.post("/design/device/", data))


def test_stored_columns_are_folded_unless_they_were_changed(as_alice: Client, device: Table):
    assert as_alice.get("/design/device/").content.count(b'<details class="stored-column">') == 2
    data = shown_data(as_alice, "device")
    data[f"{row_of(data, 'columns', 'label', 'Colour')}-label"] = ""
    content = as_alice.post("/design/device/", data).content.decode()
    assert content.count('<details class="stored-column">') == 1
    colour = content.split('<details class="stored-column" open>')[1].split("</details>")[0]
    assert "This field is required." in colour


def test_a_folded_column_shows_its_options(as_alice: Client, device: Table):
    make_column(device, "serial", label="Serial", mandatory=True, is_unique=True)
    serial = as_alice.get("/design/device/").content.decode().split("data-label>Serial<")[1].split("</summary>")[0]
    tags = [part.split("</span>")[0] for part in serial.split("data-mark=")[1:]]
    assert [tag.split(">")[1] for tag in tags if " hidden" not in tag] == ["Required", "Unique"]
    assert [tag.split(">")[1] for tag in tags if " hidden" in tag] == ["Read-only", "Names the record"]


@pytest.mark.parametrize(
    ("table", "expected_name"),
    [({}, "model"), ({"table-number_prefix": "LAP"}, "number")],
)
def test_the_first_text_column_names_the_records_of_a_new_table(
    as_alice: Client, db: None, table: dict[str, str], expected_name: str
):
    columns = together(
        new_row("columns", "1", label="Price", type="decimal"),
        new_row("columns", "2", label="Model", type="string"),
        new_row("columns", "3", label="Maker", type="string"),
    )
    as_alice.post("/design/new-table/", {"table-label": "Laptop", "table-name": "", **columns, **table})
    chosen = Column.objects.filter(table__name="laptop", is_display=True)
    assert [column.name for column in chosen] == [expected_name]


def test_a_missing_read_rule_is_mentioned(as_alice: Client, device: Table):
    hint = "Only administrators can create, read, write or delete the records"
    rule = Rule(table=device, operation="read", active=False)
    saving.save_rule(rule)
    assert hint in page_text(as_alice.get("/design/device/"))
    rule.active = True
    saving.save_rule(rule)
    assert hint not in page_text(as_alice.get("/design/device/"))


def test_a_default_choice_cannot_be_removed(as_alice: Client, device: Table):
    state = stored_column(device, "state")
    saving.save_choice(Choice(column=state, value="new", label="New"))
    saving.save_choice(Choice(column=state, value="old", label="Old"))
    state.default_value = "new"
    saving.save_column(state)
    data = shown_data(as_alice, "device")
    data[f"{row_of(data, 'columns', 'label', 'State')}-choices"] = "Old"
    assert "“new” is not the value of a choice" in page_text(as_alice.post("/design/device/", data))
    assert state.choices.count() == 2


@pytest.mark.parametrize("set_to_type", ["choice", "wysiwyg"])
def test_a_wrong_automatic_value_is_refused(as_alice: Client, device: Table, set_to_type: str):
    make_column(device, "target", set_to_type, label="Target")
    row = new_row("automatic", "n", column="target", watched="target", set_to="x")
    response = as_alice.post("/design/device/", together(shown_data(as_alice, "device"), row))
    assert "Select two different columns" in page_text(response) and not SetRule.objects.filter(column__table=device)


def test_a_view_with_too_many_joins_is_refused(as_alice: Client):
    """Otherwise, every request with the view would be refused."""
    references = ["assigned_user", "closed_by", "opened_by", "caller", "contact", "parent_id"]
    paths = [
        *(f"{reference}.login" for reference in references[:5]),
        *(f"{reference}.company.name" for reference in references[:4]),
        *(f"parent_id.{reference}.login" for reference in references[:3]),
    ]
    for lines, is_saved in ((paths, False), (paths[:-1], True)):
        row = new_row("views", "n", name="far", columns="\n".join(lines))
        response = as_alice.post("/design/task/", together(shown_data(as_alice, "task"), row))
        assert ("The paths follow more than 12 references" in page_text(response)) is not is_saved
        assert View.objects.filter(name="far").exists() is is_saved


def test_an_error_of_the_database_keeps_what_was_typed(as_alice: Client, device: Table, monkeypatch: Any):
    for _ in range(2):
        insert_row("device", colour="red")
    data = shown_data(as_alice, "device")
    row = row_of(data, "columns", "label", "Colour")
    response = as_alice.post("/design/device/", data | {f"{row}-is_unique": "on"})
    assert "Some records share a value" in page_text(response)

    def raise_busy(*_: Any) -> None:
        raise Unavailable("The table is in use, or another design change is in progress. Nothing was changed.")

    monkeypatch.setattr(schema_editor, "execute", raise_busy)
    response = as_alice.post("/design/device/", together(data, new_row("columns", "n", label="Size", type="string")))
    assert response.status_code == 200 and "The table is in use" in page_text(response)
    assert 'value="Size"' in response.content.decode()
    assert not Column.objects.filter(table=device, name="size").exists()

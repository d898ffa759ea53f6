"""Tables, columns and views in the administration: errors are shown as messages, never as a 500."""

import html
import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import Role, User
from system.errors import Unavailable
from tableapi.ddl import schema_editor
from tableapi.design import saving
from tableapi.models import Choice, Column, DeferredRecord, Rule, Table, View
from tests.tableapi.catalogue_pages import column_form_data, inline_rows, page_path, page_text
from tests.tableapi.designs import column_types_of, indexes_of, insert_row, make_column, make_table

pytestmark = pytest.mark.django_db

PAGE_NAMES = ("table", "column", "view", "rule", "deferredrecord")


@pytest.fixture
def device(db: Any) -> Table:
    return make_table("device")


@pytest.mark.parametrize("name", PAGE_NAMES)
@pytest.mark.parametrize("login", ["bob", "sonja", "carl"])
def test_only_administrators_see_these_pages(request: pytest.FixtureRequest, login: str, name: str):
    user: User = request.getfixturevalue(login)
    client = Client()
    client.force_login(user)

    for path in (f"/admin/tableapi/{name}/", page_path(name)):
        assert client.get(path, follow=True).status_code == 403


@pytest.mark.parametrize("name", PAGE_NAMES)
def test_every_list_and_form_opens(as_alice: Client, name: str):
    assert as_alice.get(f"/admin/tableapi/{name}/").status_code == 200
    assert as_alice.get(f"/admin/tableapi/{name}/?q=user").status_code == 200
    assert as_alice.get(page_path(name)).status_code == (403 if name == "deferredrecord" else 200)


def test_table_can_be_created_changed_and_deleted(as_alice: Client, alice: User):
    form = {"name": "device", "label": "Device", "parent": "", "number_prefix": "DEV"}
    assert as_alice.post(page_path("table"), form).status_code == 302
    table = Table.objects.get(name="device")
    assert column_types_of("device")["number"] == "text" and table.sys_created_by == alice.pk

    as_alice.post(page_path("table", table), {"label": "Gadget", "name": "gadget", "number_prefix": "DEV"})
    assert (table.refreshed().label, table.name) == ("Gadget", "device")
    assert as_alice.post(page_path("table", table, "delete"), {"post": "yes"}).status_code == 302
    assert column_types_of("device") == {}


@pytest.mark.parametrize("model", ["column", "view", "rule"])
def test_new_record_link_keeps_the_table(as_alice: Client, device: Table, model: str):
    list_path = f"/admin/tableapi/{model}/?table__sys_id__exact={device.pk}"
    (add_href,) = re.findall(
        rf'href="(/admin/tableapi/{model}/add/[^"]*)" class="addlink', as_alice.get(list_path).content.decode()
    )
    add_path = html.unescape(add_href)
    assert f'<option value="{device.pk}" selected>' in as_alice.get(add_path).content.decode()
    form = {"table": device.pk, "name": "size", "label": "Size", "type": "string", "operation": "read"}
    form |= inline_rows("choices") | inline_rows("columns", {"path": "sys_id", "position": 1})
    assert as_alice.post(add_path, form).headers["Location"] == list_path


def test_rule_for_any_table_links_to_all_rules(as_alice: Client):
    response = as_alice.post(page_path("rule"), {"operation": "read", "roles": [Role.objects.get(name="itil").pk]})
    assert response.headers["Location"] == "/admin/tableapi/rule/"


def test_table_page_links_to_its_columns(as_alice: Client, device: Table):
    make_column(device, "colour")
    text = as_alice.get(page_path("table", device)).content.decode()
    (list_path,) = re.findall(r'href="(/admin/tableapi/column/\?table[^"]+)"', text)
    (add_path,) = re.findall(r'href="(/admin/tableapi/column/add/[^"]+)"', text)

    list_text = page_text(as_alice.get(list_path))
    assert "colour" in list_text and "1 column" in list_text and "first_name" not in list_text
    assert f'value="{device.pk}" selected' in as_alice.get(add_path).content.decode()


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"name": "Device"}, "A name must consist of at most 63 lowercase letters"),
        ({"name": "sys_device"}, "are reserved"),
        ({"name": "user"}, "already exists"),
        ({"name": "device", "number_prefix": "dev"}, "uppercase letters"),
        ({"name": "device", "parent": "1"}, "Select a valid choice"),
    ],
)
def test_invalid_table_is_reported(as_alice: Client, form: dict[str, str], sentence: str):
    response = as_alice.post(page_path("table"), {"label": "Device", "parent": "", "number_prefix": ""} | form)

    assert sentence in page_text(response).replace("&#x27;", "'")
    assert column_types_of("device") == {}


def test_table_with_records_cannot_be_deleted(as_alice: Client, device: Table):
    insert_row("device")
    form = {"action": "delete_selected", "_selected_action": [device.pk], "post": "yes"}
    for path, form_data in ((page_path("table", device, "delete"), {"post": "yes"}), ("/admin/tableapi/table/", form)):
        response = as_alice.post(path, form_data, follow=True)
        assert "Nothing was changed. device has records" in page_text(response)
    response = as_alice.get(page_path("table", device, "delete"), follow=True)
    assert "device has records. Delete those records first." in page_text(response) and "Are you sure" not in page_text(
        response
    )
    assert column_types_of("device")


def test_several_tables_can_be_deleted_from_the_list(as_alice: Client, device: Table):
    desk = make_table("desk")
    form = {"action": "delete_selected", "_selected_action": [device.pk, desk.pk], "post": "yes"}
    assert as_alice.post("/admin/tableapi/table/", form).status_code == 302

    assert column_types_of("device") == column_types_of("desk") == {}


def test_column_can_be_created_with_choices(as_alice: Client, device: Table):
    choice_rows = inline_rows(
        "choices", {"value": "r", "label": "Red", "position": 1}, {"value": "b", "label": "Blue", "position": 2}
    )
    response = as_alice.post(
        page_path("column"), column_form_data(device, "colour", type="choice", is_indexed="on") | choice_rows
    )
    assert response.status_code == 302, page_text(response)

    column = Column.objects.get(name="colour")
    assert column_types_of("device")["colour"] == "text" and f"I{column.pk}" in indexes_of("device")
    assert list(column.choices.values_list("label", flat=True)) == ["Red", "Blue"]
    assert "Blue" in as_alice.get(page_path("column", column)).content.decode()


def test_new_column_links_to_the_other_columns(as_alice: Client, device: Table):
    response = as_alice.post(page_path("column"), column_form_data(device, "model"))

    assert response.headers["Location"] == f"/admin/tableapi/column/?table__sys_id__exact={device.pk}"


def test_second_display_column_replaces_the_first_with_a_message(as_alice: Client, device: Table):
    make_column(device, "title", is_display=True)
    response = as_alice.post(page_path("column"), column_form_data(device, "serial", is_display="on", max_length=""))

    page = page_text(as_alice.get(response["Location"]))
    assert "The display value of device is now serial instead of title." in page
    second_response = as_alice.post(
        page_path("column", Column.objects.get(name="serial")),
        column_form_data(device, "serial", is_display="on", max_length=""),
    )
    assert "no longer by" not in page_text(as_alice.get(second_response["Location"]))


def test_default_outside_the_choices_gets_a_warning(as_alice: Client, device: Table):
    choice_rows = inline_rows("choices", {"value": "r", "label": "Red", "position": 1})
    form = column_form_data(device, "colour", type="choice", default_value="x") | choice_rows
    response = as_alice.post(page_path("column"), form)
    assert "The default value “x” is not a choice. New records will have" in page_text(
        as_alice.get(response["Location"])
    )


def test_choice_column_without_choices_gets_a_warning(as_alice: Client, device: Table):
    response = as_alice.post(page_path("column"), column_form_data(device, "colour", type="choice"))
    warning = "device.colour has no choices yet"
    assert warning in page_text(as_alice.get(response["Location"]))

    choice_rows = inline_rows("choices", {"value": "r", "label": "Red", "position": 1})
    response = as_alice.post(page_path("column"), column_form_data(device, "shade", type="choice") | choice_rows)
    assert "has no choices" not in page_text(as_alice.get(response["Location"]))


def test_column_history_includes_choices(as_alice: Client, device: Table):
    column = make_column(device, "colour", "choice", label="It")
    red_choice, blue_choice = (Choice(column=column, value=value, label=value) for value in ("red", "blue"))
    saving.save_choice(red_choice)
    saving.save_choice(blue_choice)
    common_values = {"column": column.pk, "position": 0}
    form = inline_rows(
        "choices",
        {"sys_id": red_choice.pk, "value": "red", "label": "Crimson", **common_values},
        {"sys_id": blue_choice.pk, "value": "blue", "label": "blue", "DELETE": "on", **common_values},
        {"value": "green", "label": "Green", **common_values},
        stored_count=2,
    )
    response = as_alice.post(page_path("column", column), column_form_data(device, "colour", type="choice") | form)
    assert response.status_code == 302, page_text(response)

    assert column.history.count() == 1, "the column record did not change"
    history_page = page_text(as_alice.get(page_path("column", column, "history")))
    assert "Choice green added by alice" in history_page and "Choice blue removed by alice" in history_page
    assert "Choice red changed by alice Label : red → Crimson" in history_page


def test_used_number_prefix_gets_a_warning(as_alice: Client, device: Table):
    warning = "desk has the same number prefix, DEV"
    form = {"name": "desk", "label": "Desk", "parent": "", "number_prefix": "DEV"}
    assert "too" not in page_text(as_alice.post(page_path("table"), form, follow=True))
    response = as_alice.post(page_path("table", device), {"label": "Device", "number_prefix": "DEV"}, follow=True)
    assert warning in page_text(response)


def test_duplicate_column_is_refused(as_alice: Client, device: Table):
    make_column(device, "colour")
    child = make_table("phone", parent=device)
    assert "device already has a column with this name." in page_text(
        as_alice.post(page_path("column"), column_form_data(device, "colour"))
    )
    message = "device already has a column with this name. Tables that extend each other share their column names."
    assert message in page_text(as_alice.post(page_path("column"), column_form_data(child, "colour")))


def test_default_choice_cannot_be_deleted(as_alice: Client, device: Table):
    column = make_column(device, "colour", "choice", default_value="r")
    red_choice = Choice(column=column, value="r", label="Red")
    saving.save_choice(red_choice)
    row = {"sys_id": red_choice.pk, "column": column.pk, "value": "r", "label": "Red", "position": 0, "DELETE": "on"}
    deleted_row = inline_rows("choices", row, stored_count=1)
    form = column_form_data(device, "colour", type="choice", default_value="r") | deleted_row
    response = as_alice.post(page_path("column", column), form, follow=True)
    assert "Nothing was changed. “r” is the default value of device.colour" in page_text(response)
    assert column.choices.count() == 1


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"type": "reference"}, "Select the reference table."),
        ({"name": "xmin"}, "This name is reserved by the database"),
        ({"name": "a;--"}, "A name must consist of at most 63 lowercase letters"),
        ({"type": "json", "is_unique": "on"}, "cannot have this option"),
        ({"type": "integer", "default_value": "1_000"}, "Expected a whole number"),
        ({"max_length": "-5"}, "Only text can have a maximum length. It must be at least 1."),
        ({"max_length": "0"}, "Only text can have a maximum length. It must be at least 1."),
        (
            {"type": "integer"} | inline_rows("choices", {"value": "1", "label": "One", "position": 1}),
            "columns of type choice can have choices",
        ),
        (
            {"type": "choice"} | inline_rows("choices", {"value": "a,b", "label": "x", "position": 1}),
            "must not contain a comma",
        ),
        (
            {"type": "choice"} | inline_rows("choices", *[{"value": "1", "label": "One", "position": 1}] * 2),
            "duplicate",
        ),
    ],
)
def test_invalid_column_is_reported(as_alice: Client, device: Table, values: dict[str, Any], sentence: str):
    response = as_alice.post(page_path("column"), column_form_data(device, "it") | values)

    assert sentence in page_text(response)
    assert not {"it", "xmin"} & column_types_of("device").keys() and not Column.objects.filter(table=device).exists()


def test_database_error_on_saving_is_reported(as_alice: Client, device: Table, monkeypatch: Any):
    column = make_column(device, "serial")
    insert_row("device", serial="a")
    insert_row("device", serial="a")
    form = column_form_data(device, "serial", is_unique="on", max_length="")
    response = as_alice.post(page_path("column", column), form, follow=True)
    assert "Nothing was changed. Some records share a value" in page_text(response)

    def raise_busy(*_: Any) -> None:
        raise Unavailable("The table is in use, or another design change is in progress. Nothing was changed.")

    monkeypatch.setattr(schema_editor, "execute", raise_busy)
    assert "The table is in use" in page_text(
        as_alice.post(page_path("column"), column_form_data(device, "other"), follow=True)
    )
    assert not Column.objects.filter(name="other").exists()


def test_product_tables_are_read_only(as_alice: Client):
    table = Table.objects.get(name="user")
    column = Column.objects.get(table=table, name="email")
    source_column = Column.objects.get(table__name="sys_user_role", name="source")
    for model, record in (("table", table), ("column", column), ("column", source_column)):
        assert as_alice.get(page_path(model, record)).status_code == 200
        assert as_alice.post(page_path(model, record, "delete"), {"post": "yes"}).status_code == 403
    as_alice.post(page_path("table", table), {"label": "Person", "number_prefix": "USR"})
    as_alice.post(
        page_path("column", column), {"label": "Mail", "type": "text", "mandatory": "on"} | inline_rows("choices")
    )

    assert (table.refreshed().label, table.number_prefix, table.deferred_create) == ("Person", "", False)
    assert (column.refreshed().label, column.type, column.mandatory) == ("Mail", "string", False)
    new_row = {"value": "x", "label": "X", "position": 9}
    as_alice.post(page_path("column", source_column), {"label": "Source"} | inline_rows("choices", new_row))
    assert not Choice.objects.filter(value="x").exists()
    role_table = Table.objects.get(name="sys_role")
    for column_table, name, message in (
        (role_table, "x_shoe_size", "Select a valid choice"),
        (table, "shoe_size", "must start with x_"),
    ):
        assert message in page_text(as_alice.post(page_path("column"), column_form_data(column_table, name)))
    assert not Column.objects.filter(name__endswith="shoe_size").exists()


def test_custom_column_of_a_product_table_is_added_changed_and_deleted(as_alice: Client):
    table = Table.objects.get(name="user")
    assert "column/add" in as_alice.get(page_path("table", table)).content.decode()
    form = column_form_data(table, "x_shift") | {"type": "choice"}
    as_alice.post(page_path("column"), form | inline_rows("choices", {"value": "n", "label": "Night", "position": 1}))
    column = Column.objects.get(name="x_shift")
    assert [choice.value for choice in column.choices.all()] == ["n"]
    as_alice.post(page_path("column", column), {"label": "Shift", "type": "choice"} | inline_rows("choices"))
    assert column.refreshed().label == "Shift"
    assert as_alice.post(page_path("column", column, "delete"), {"post": "yes"}).status_code == 302
    assert not Column.objects.filter(name="x_shift").exists()


def test_view_can_be_created_with_paths(as_alice: Client):
    task = Table.objects.get(name="task")
    rows = inline_rows("columns", {"path": "number", "position": 1}, {"path": "caller.company.name", "position": 2})
    assert as_alice.post(page_path("view"), {"table": task.pk, "name": "small"} | rows).status_code == 302

    view = View.objects.get()
    assert list(view.columns.values_list("path", flat=True)) == ["number", "caller.company.name"]
    second_response = as_alice.post(page_path("view"), {"table": task.pk, "name": "small"} | inline_rows("columns"))
    assert "The table already has a view with this name" in page_text(second_response)


def test_invalid_path_is_reported_next_to_its_field(as_alice: Client):
    task = Table.objects.get(name="task")
    invalid_rows = inline_rows("columns", {"path": "number", "position": 1}, {"path": "caller.shoe", "position": 2})
    response = as_alice.post(page_path("view"), {"table": task.pk, "name": "small"} | invalid_rows)
    assert "“caller.shoe” is not a valid path from task." in page_text(response) and not View.objects.exists()

    view = View(table=task, name="small")
    saving.save_view(view)
    assert "“caller.shoe” is not a valid path" in page_text(
        as_alice.post(page_path("view", view), {"name": "small"} | invalid_rows)
    )
    assert not view.columns.exists()


def test_failed_deferred_records_are_listed_without_values(as_alice: Client, alice: User):
    values = {"name": "hidden value"}
    failed_record = DeferredRecord.objects.create(
        table="sys_schedule", record_id="1", values=values, caller=alice.pk, state="failed", error="No such reference."
    )
    DeferredRecord.objects.create(table="sys_schedule", record_id="2", state="done")

    list_page = page_text(as_alice.get("/admin/tableapi/deferredrecord/"))
    assert (
        "No such reference." in list_page
        and as_alice.get(page_path("deferredrecord", failed_record)).status_code == 200
    )
    record_page = page_text(as_alice.get(page_path("deferredrecord", failed_record)))
    assert "alice" in record_page and "hidden value" not in record_page + list_page
    assert as_alice.post(page_path("deferredrecord", failed_record, "delete"), {"post": "yes"}).status_code == 403
    dashboard = page_text(as_alice.get("/admin/"))
    assert "1 deferred record was not created." in dashboard


def test_dashboard_counts_designed_tables(as_alice: Client, device: Table):
    table_count = Table.objects.filter(is_system=False).count()

    assert f"{table_count} designed tables, {Rule.objects.count()} access rules." in page_text(as_alice.get("/admin/"))


def test_names_are_escaped(as_alice: Client, device: Table):
    hostile_name = "<script>alert(1)</script>"
    device.label = hostile_name
    saving.save_table(device)
    column = make_column(device, "it", label=hostile_name)

    for path in (
        "/admin/tableapi/table/",
        page_path("table", device),
        page_path("column", column),
        "/admin/tableapi/column/",
    ):
        assert b"<script>alert" not in as_alice.get(path).content


def test_view_with_too_many_joins_is_refused(as_alice: Client):
    """Otherwise, every request with the view would be refused."""
    references = ["assigned_user", "closed_by", "opened_by", "caller", "contact", "parent_id"]
    paths = [
        *(f"{reference}.login" for reference in references[:5]),
        *(f"{reference}.company.name" for reference in references[:4]),
        *(f"parent_id.{reference}.login" for reference in references[:3]),
    ]
    path_rows = [{"path": path, "position": number} for number, path in enumerate(paths)]
    task = Table.objects.get(name="task")
    response = as_alice.post(page_path("view"), {"table": task.pk, "name": "far"} | inline_rows("columns", *path_rows))
    assert "The paths follow more than 12 references" in page_text(response)
    assert not View.objects.filter(name="far").exists()

    response = as_alice.post(
        page_path("view"), {"table": task.pk, "name": "far"} | inline_rows("columns", *path_rows[:-1])
    )
    assert response.status_code == 302 and View.objects.get(name="far").columns.count() == len(paths) - 1

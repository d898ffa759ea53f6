"""Tables, columns and views in the administration: refusals are messages, never a 500."""

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
from tests.tableapi.catalogue_pages import column_form, page, rows, said
from tests.tableapi.designs import indexes_of, insert, make_column, make_table, types_of

pytestmark = pytest.mark.django_db

PAGES = ("table", "column", "view", "rule", "deferredrecord")


@pytest.fixture
def device(db: Any) -> Table:
    return make_table("device")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("login", ["bob", "sonja", "carl"])
def test_only_admin_sees_these_pages(request: pytest.FixtureRequest, login: str, name: str):
    somebody: User = request.getfixturevalue(login)
    client = Client()
    client.force_login(somebody)

    for address in (f"/admin/tableapi/{name}/", page(name)):
        assert client.get(address, follow=True).status_code == 403


@pytest.mark.parametrize("name", PAGES)
def test_every_list_and_form_opens(as_alice: Client, name: str):
    assert as_alice.get(f"/admin/tableapi/{name}/").status_code == 200
    assert as_alice.get(f"/admin/tableapi/{name}/?q=user").status_code == 200
    assert as_alice.get(page(name)).status_code == (403 if name == "deferredrecord" else 200)


def test_table_can_be_created_changed_and_deleted(as_alice: Client, alice: User):
    sent = {"name": "device", "label": "Device", "parent": "", "number_prefix": "DEV"}
    assert as_alice.post(page("table"), sent).status_code == 302
    table = Table.objects.get(name="device")
    assert types_of("device")["number"] == "text" and table.sys_created_by == alice.pk

    as_alice.post(page("table", table), {"label": "Gadget", "name": "gadget", "number_prefix": "DEV"})
    assert (table.refreshed().label, table.name) == ("Gadget", "device")
    assert as_alice.post(page("table", table, "delete"), {"post": "yes"}).status_code == 302
    assert types_of("device") == {}


@pytest.mark.parametrize("kind", ["column", "view", "rule"])
def test_new_record_link_keeps_the_table(as_alice: Client, device: Table, kind: str):
    listed = f"/admin/tableapi/{kind}/?table__sys_id__exact={device.pk}"
    (add,) = re.findall(
        rf'href="(/admin/tableapi/{kind}/add/[^"]*)" class="addlink', as_alice.get(listed).content.decode()
    )
    address = html.unescape(add)
    assert f'<option value="{device.pk}" selected>' in as_alice.get(address).content.decode()
    sent = {"table": device.pk, "name": "size", "label": "Size", "type": "string", "operation": "read"}
    sent |= rows("choices") | rows("columns", {"path": "sys_id", "position": 1})
    assert as_alice.post(address, sent).headers["Location"] == listed


def test_rule_for_any_table_links_to_all_rules(as_alice: Client):
    response = as_alice.post(page("rule"), {"operation": "read", "roles": [Role.objects.get(name="itil").pk]})
    assert response.headers["Location"] == "/admin/tableapi/rule/"


def test_table_page_links_to_its_columns(as_alice: Client, device: Table):
    make_column(device, "colour")
    text = as_alice.get(page("table", device)).content.decode()
    (there,) = re.findall(r'href="(/admin/tableapi/column/\?table[^"]+)"', text)
    (more,) = re.findall(r'href="(/admin/tableapi/column/add/[^"]+)"', text)

    listed = said(as_alice.get(there))
    assert "colour" in listed and "1 column" in listed and "first_name" not in listed
    assert f'value="{device.pk}" selected' in as_alice.get(more).content.decode()


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"name": "Device"}, "A name must consist of at most 63 lowercase letters"),
        ({"name": "sys_device"}, "are reserved"),
        ({"name": "user"}, "already exists"),
        ({"name": "device", "number_prefix": "dev"}, "uppercase letters"),
        ({"name": "device", "parent": "1"}, "Select a valid choice"),
    ],
)
def test_invalid_table_is_reported(as_alice: Client, sent: dict[str, str], sentence: str):
    response = as_alice.post(page("table"), {"label": "Device", "parent": "", "number_prefix": ""} | sent)

    assert sentence in said(response).replace("&#x27;", "'")
    assert types_of("device") == {}


def test_table_with_records_cannot_be_deleted(as_alice: Client, device: Table):
    insert("device")
    chosen = {"action": "delete_selected", "_selected_action": [device.pk], "post": "yes"}
    for address, sent in ((page("table", device, "delete"), {"post": "yes"}), ("/admin/tableapi/table/", chosen)):
        answer = as_alice.post(address, sent, follow=True)
        assert "Nothing was changed. device has records" in said(answer)
    response = as_alice.get(page("table", device, "delete"), follow=True)
    assert "device has records. Delete those records first." in said(response) and "Are you sure" not in said(response)
    assert types_of("device")


def test_several_tables_can_be_deleted_from_the_list(as_alice: Client, device: Table):
    desk = make_table("desk")
    chosen = {"action": "delete_selected", "_selected_action": [device.pk, desk.pk], "post": "yes"}
    assert as_alice.post("/admin/tableapi/table/", chosen).status_code == 302

    assert types_of("device") == types_of("desk") == {}


def test_column_can_be_created_with_choices(as_alice: Client, device: Table):
    choices = rows(
        "choices", {"value": "r", "label": "Red", "position": 1}, {"value": "b", "label": "Blue", "position": 2}
    )
    response = as_alice.post(page("column"), column_form(device, "colour", type="choice", is_indexed="on") | choices)
    assert response.status_code == 302, said(response)

    column = Column.objects.get(name="colour")
    assert types_of("device")["colour"] == "text" and f"I{column.pk}" in indexes_of("device")
    assert list(column.choices.values_list("label", flat=True)) == ["Red", "Blue"]
    assert "Blue" in as_alice.get(page("column", column)).content.decode()


def test_new_column_links_to_the_other_columns(as_alice: Client, device: Table):
    response = as_alice.post(page("column"), column_form(device, "model"))

    assert response.headers["Location"] == f"/admin/tableapi/column/?table__sys_id__exact={device.pk}"


def test_second_display_column_replaces_the_first_with_a_message(as_alice: Client, device: Table):
    make_column(device, "title", is_display=True)
    response = as_alice.post(page("column"), column_form(device, "serial", is_display="on", max_length=""))

    output = said(as_alice.get(response["Location"]))
    assert "The display value of device is now serial instead of title." in output
    again = as_alice.post(
        page("column", Column.objects.get(name="serial")), column_form(device, "serial", is_display="on", max_length="")
    )
    assert "no longer by" not in said(as_alice.get(again["Location"]))


def test_default_outside_the_choices_gets_a_warning(as_alice: Client, device: Table):
    choices = rows("choices", {"value": "r", "label": "Red", "position": 1})
    sent = column_form(device, "colour", type="choice", default_value="x") | choices
    response = as_alice.post(page("column"), sent)
    assert "The default value x is not a choice, so new records will have" in said(as_alice.get(response["Location"]))


def test_choice_column_without_choices_gets_a_warning(as_alice: Client, device: Table):
    response = as_alice.post(page("column"), column_form(device, "colour", type="choice"))
    doubt = "device.colour has no choices yet"
    assert doubt in said(as_alice.get(response["Location"]))

    choices = rows("choices", {"value": "r", "label": "Red", "position": 1})
    response = as_alice.post(page("column"), column_form(device, "shade", type="choice") | choices)
    assert "has no choices" not in said(as_alice.get(response["Location"]))


def test_column_history_includes_choices(as_alice: Client, device: Table):
    column = make_column(device, "colour", "choice", label="It")
    red, blue = (Choice(column=column, value=value, label=value) for value in ("red", "blue"))
    saving.save_choice(red)
    saving.save_choice(blue)
    result = {"column": column.pk, "position": 0}
    sent = rows(
        "choices",
        {"sys_id": red.pk, "value": "red", "label": "Crimson", **result},
        {"sys_id": blue.pk, "value": "blue", "label": "blue", "DELETE": "on", **result},
        {"value": "green", "label": "Green", **result},
        stored=2,
    )
    response = as_alice.post(page("column", column), column_form(device, "colour", type="choice") | sent)
    assert response.status_code == 302, said(response)

    assert column.history.count() == 1, "the column itself did not change"
    message = said(as_alice.get(page("column", column, "history")))
    assert "Choice green added by alice" in message and "Choice blue removed by alice" in message
    assert "Choice red changed by alice Label : red → Crimson" in message


def test_used_number_prefix_gets_a_warning(as_alice: Client, device: Table):
    doubt = "desk has the same number prefix, DEV"
    sent = {"name": "desk", "label": "Desk", "parent": "", "number_prefix": "DEV"}
    assert "too" not in said(as_alice.post(page("table"), sent, follow=True))
    response = as_alice.post(page("table", device), {"label": "Device", "number_prefix": "DEV"}, follow=True)
    assert doubt in said(response)


def test_duplicate_column_is_refused(as_alice: Client, device: Table):
    make_column(device, "colour")
    child = make_table("phone", parent=device)
    assert "device already has a column with this name." in said(
        as_alice.post(page("column"), column_form(device, "colour"))
    )
    shared = "device already has a column with this name. Tables that extend each other share their column names."
    assert shared in said(as_alice.post(page("column"), column_form(child, "colour")))


def test_default_choice_cannot_be_deleted(as_alice: Client, device: Table):
    column = make_column(device, "colour", "choice", default_value="r")
    red = Choice(column=column, value="r", label="Red")
    saving.save_choice(red)
    row = {"sys_id": red.pk, "column": column.pk, "value": "r", "label": "Red", "position": 0, "DELETE": "on"}
    gone = rows("choices", row, stored=1)
    sent = column_form(device, "colour", type="choice", default_value="r") | gone
    response = as_alice.post(page("column", column), sent, follow=True)
    assert "Nothing was changed. r is the default value of device.colour" in said(response)
    assert column.choices.count() == 1


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"type": "reference"}, "Select the referenced table."),
        ({"name": "xmin"}, "This name is reserved by the database"),
        ({"name": "a;--"}, "A name must consist of at most 63 lowercase letters"),
        ({"type": "json", "is_unique": "on"}, "cannot have this option"),
        ({"type": "integer", "default_value": "1_000"}, "Expected a whole number"),
        ({"max_length": "-5"}, "Only text can have a maximum length. It must be at least 1."),
        ({"max_length": "0"}, "Only text can have a maximum length. It must be at least 1."),
        (
            {"type": "integer"} | rows("choices", {"value": "1", "label": "One", "position": 1}),
            "columns of type choice can have choices",
        ),
        (
            {"type": "choice"} | rows("choices", {"value": "a,b", "label": "x", "position": 1}),
            "must not contain a comma",
        ),
        ({"type": "choice"} | rows("choices", *[{"value": "1", "label": "One", "position": 1}] * 2), "duplicate"),
    ],
)
def test_invalid_column_is_reported(as_alice: Client, device: Table, values: dict[str, Any], sentence: str):
    response = as_alice.post(page("column"), column_form(device, "it") | values)

    assert sentence in said(response)
    assert not {"it", "xmin"} & types_of("device").keys() and not Column.objects.filter(table=device).exists()


def test_database_error_on_saving_is_reported(as_alice: Client, device: Table, monkeypatch: Any):
    column = make_column(device, "serial")
    insert("device", serial="a")
    insert("device", serial="a")
    sent = column_form(device, "serial", is_unique="on", max_length="")
    response = as_alice.post(page("column", column), sent, follow=True)
    assert "Nothing was changed. Some records share a value" in said(response)

    def busy(*_: Any) -> None:
        raise Unavailable("The table is in use, so nothing was changed. Try again shortly.")

    monkeypatch.setattr(schema_editor, "run", busy)
    assert "The table is in use" in said(as_alice.post(page("column"), column_form(device, "other"), follow=True))
    assert not Column.objects.filter(name="other").exists()


def test_system_tables_are_read_only(as_alice: Client):
    table = Table.objects.get(name="user")
    column = Column.objects.get(table=table, name="email")
    source = Column.objects.get(table__name="sys_user_role", name="source")
    for model, record in (("table", table), ("column", column), ("column", source)):
        assert as_alice.get(page(model, record)).status_code == 200
        assert as_alice.post(page(model, record, "delete"), {"post": "yes"}).status_code == 403
    as_alice.post(page("table", table), {"label": "Person", "number_prefix": "USR"})
    as_alice.post(page("column", column), {"label": "Mail", "type": "text", "mandatory": "on"} | rows("choices"))

    assert (table.refreshed().label, table.number_prefix, table.deferred_create) == ("Person", "", False)
    assert (column.refreshed().label, column.type, column.mandatory) == ("Mail", "string", False)
    new = {"value": "x", "label": "X", "position": 9}
    as_alice.post(page("column", source), {"label": "Source"} | rows("choices", new))
    assert not Choice.objects.filter(value="x").exists()
    assert "Select a valid choice" in said(as_alice.post(page("column"), column_form(table, "shoe_size")))
    assert not Column.objects.filter(name="shoe_size").exists()


def test_view_can_be_created_with_paths(as_alice: Client):
    task = Table.objects.get(name="task")
    paths = rows("columns", {"path": "number", "position": 1}, {"path": "caller.company.name", "position": 2})
    assert as_alice.post(page("view"), {"table": task.pk, "name": "small"} | paths).status_code == 302

    view = View.objects.get()
    assert list(view.columns.values_list("path", flat=True)) == ["number", "caller.company.name"]
    again = as_alice.post(page("view"), {"table": task.pk, "name": "small"} | rows("columns"))
    assert "The table already has a view with this name" in said(again)


def test_invalid_path_is_reported_beside_its_field(as_alice: Client):
    task = Table.objects.get(name="task")
    wrong = rows("columns", {"path": "number", "position": 1}, {"path": "caller.shoe", "position": 2})
    response = as_alice.post(page("view"), {"table": task.pk, "name": "small"} | wrong)
    assert "caller.shoe is not a valid path from task." in said(response) and not View.objects.exists()

    view = View(table=task, name="small")
    saving.save_view(view)
    assert "caller.shoe is not a valid path" in said(as_alice.post(page("view", view), {"name": "small"} | wrong))
    assert not view.columns.exists()


def test_failed_deferred_records_are_listed_without_values(as_alice: Client, alice: User):
    values = {"name": "hidden value"}
    failed = DeferredRecord.objects.create(
        table="sys_schedule", record_id="1", values=values, caller=alice.pk, state="failed", error="No such reference."
    )
    DeferredRecord.objects.create(table="sys_schedule", record_id="2", state="done")

    output = said(as_alice.get("/admin/tableapi/deferredrecord/"))
    assert "No such reference." in output and as_alice.get(page("deferredrecord", failed)).status_code == 200
    form = said(as_alice.get(page("deferredrecord", failed)))
    assert "alice" in form and "hidden value" not in form + output
    assert as_alice.post(page("deferredrecord", failed, "delete"), {"post": "yes"}).status_code == 403
    dashboard = said(as_alice.get("/admin/"))
    assert "1 records not created" in dashboard


def test_dashboard_counts_designed_tables(as_alice: Client, device: Table):
    own = Table.objects.filter(is_system=False).count()

    assert f"{own} designed tables, {Rule.objects.count()} access rules" in said(as_alice.get("/admin/"))


def test_names_are_escaped(as_alice: Client, device: Table):
    evil = "<script>alert(1)</script>"
    device.label = evil
    saving.save_table(device)
    column = make_column(device, "it", label=evil)

    for address in ("/admin/tableapi/table/", page("table", device), page("column", column), "/admin/tableapi/column/"):
        assert b"<script>alert" not in as_alice.get(address).content


def test_view_with_too_many_joins_is_refused(as_alice: Client):
    """Every request with it would be refused."""
    references = ["assigned_user", "closed_by", "opened_by", "caller", "contact", "parent_id"]
    paths = [
        *(f"{reference}.login" for reference in references[:5]),
        *(f"{reference}.company.name" for reference in references[:4]),
        *(f"parent_id.{reference}.login" for reference in references[:3]),
    ]
    columns = [{"path": path, "position": number} for number, path in enumerate(paths)]
    task = Table.objects.get(name="task")
    response = as_alice.post(page("view"), {"table": task.pk, "name": "far"} | rows("columns", *columns))
    assert "The paths follow more than 12 references" in said(response)
    assert not View.objects.filter(name="far").exists()

    response = as_alice.post(page("view"), {"table": task.pk, "name": "far"} | rows("columns", *columns[:-1]))
    assert response.status_code == 302 and View.objects.get(name="far").columns.count() == len(paths) - 1

"""Histories of designs and deferred records in the administration. The designer replaces the forms of designs."""

import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import Role, User
from tableapi.design import saving
from tableapi.models import Choice, Column, DeferredRecord, Rule, SetRule, Table, View
from tests.tableapi.catalogue_pages import page_path, page_text
from tests.tableapi.designs import make_column, make_table

pytestmark = pytest.mark.django_db

PAGE_NAMES = ("table", "column", "view", "setrule", "rule", "deferredrecord")


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
def test_every_list_opens(as_alice: Client, name: str):
    for query in ("", "?q=user"):
        assert as_alice.get(f"/admin/tableapi/{name}/{query}", follow=True).status_code == 200


@pytest.mark.parametrize("action", ["change", "delete"])
def test_former_forms_lead_to_the_designer(as_alice: Client, carl: User, device: Table, action: str):
    column, view = make_column(device, "colour"), View(table=device, name="short")
    saving.save_view(view)
    closed_at = SetRule.objects.get(column__name="closed_at")
    as_carl = Client()
    as_carl.force_login(carl)
    rule, rule_for_any_table = Rule(table=device, operation="read"), Rule(operation="read", condition="sys_id!=1")
    saving.save_rule(rule)
    saving.save_rule(rule_for_any_table)
    for model, record, table in (
        ("table", device, "device"), ("column", column, "device"), ("view", view, "device"),
        ("setrule", closed_at, "task"), ("rule", rule, "device"), ("rule", rule_for_any_table, "any-table"),
    ):  # fmt: skip
        location = f"/design/{table}/#record-{record.pk}"
        assert as_alice.get(page_path(model, record, action))["Location"] == location
        assert as_alice.post(page_path(model, record, action), {"post": "yes"})["Location"] == location
        assert type(record).objects.filter(pk=record.pk).exists()
        assert as_alice.get(page_path(model))["Location"] == "/design/"
        assert as_carl.get(page_path(model, record, action)).status_code == 403
        design_page = as_alice.get(location).content.decode()
        assert model == "table" or f'id="record-{record.pk}"' in design_page
    for key in ("missing", "%00"):
        assert as_alice.get(f"/admin/tableapi/column/{key}/change/").status_code == 404


def test_nothing_can_be_deleted_from_a_list(as_alice: Client, device: Table):
    column = make_column(device, "colour")
    form = {"action": "delete_selected", "_selected_action": [column.pk], "post": "yes"}
    as_alice.post("/admin/tableapi/column/", form)
    assert Column.objects.filter(pk=column.pk).exists()


def test_lists_link_to_the_histories(as_alice: Client, device: Table):
    column = make_column(device, "colour")
    page = as_alice.get("/admin/tableapi/column/?q=colour").content.decode()
    assert page_path("column", column, "history") in page


def test_columns_are_filtered_by_table(as_alice: Client, carl: User, device: Table):
    make_column(device, "colour")
    make_column(make_table("gadget"), "colour")
    suggestions_path = "/admin/autocomplete/?app_label=tableapi&model_name=column&field_name=table&term=devi"
    assert as_alice.get(suggestions_path).json()["results"] == [{"id": device.pk, "text": "device"}]
    as_carl = Client()
    as_carl.force_login(carl)
    assert as_carl.get(suggestions_path).status_code == 403
    response = as_alice.get(f"/admin/tableapi/column/?table__sys_id__exact={device.pk}")
    assert "colour device" in page_text(response) and "colour gadget" not in page_text(response)
    # One form has all filters, so that none is lost when another is applied.
    response = as_alice.get(f"/admin/tableapi/column/?table__sys_id__exact={device.pk}&type__exact=choice")
    assert "colour device" not in page_text(response)
    for name in (b"table__sys_id__exact", b"table__is_system__exact", b"type__exact"):
        assert re.search(rb'<(select|input)[^>]* name="%s"' % name, response.content), name
    for value in ("missing", "%00"):
        assert as_alice.get(f"/admin/tableapi/column/?table__sys_id__exact={value}").status_code in (200, 400)


def test_histories_include_the_parts(as_alice: Client, device: Table):
    column = make_column(device, "colour", "choice", label="It")
    red_choice = Choice(column=column, value="red", label="red")
    saving.save_choice(red_choice)
    red_choice.label = "Crimson"
    saving.save_choice(red_choice)
    view = View(table=device, name="short")
    saving.save_view(view)
    view.delete()
    rule = Rule(table=device, operation="read", column_name="colour", roles=[Role.objects.get(name="itil").pk])
    saving.save_rule(rule)
    rule.active = False
    saving.save_rule(rule)
    rule.delete()
    painted, shade = (make_column(device, name) for name in ("painted", "shade"))
    set_rule = SetRule(column=painted, watched=shade, set_to="new")
    saving.save_set_on_change_rule(set_rule)
    set_rule.delete()
    saving.save_set_on_change_rule(SetRule(column=painted, watched=column, set_to="new"))
    shade.delete()

    column_history = page_text(as_alice.get(page_path("column", column, "history")))
    assert "Choice red added" in column_history and "Label : red → Crimson" in column_history
    table_history = page_text(as_alice.get(page_path("table", device, "history")))
    assert "Column colour added" in table_history and "View short removed" in table_history
    assert all(f"Rule read device.colour for itil {verb}" in table_history for verb in ("added", "changed", "removed"))
    assert "Active : yes → no" in table_history
    assert table_history.count("Automatic value of device.painted added") == 2
    assert table_history.count("Automatic value of device.painted removed") == 1
    assert as_alice.get(page_path("table", make_table("gadget"), "history")).content.count(b"Automatic value") == 0


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


def test_dashboard_counts_designed_tables_and_links_to_the_designer(as_alice: Client, device: Table):
    table_count = Table.objects.filter(is_system=False).count()
    response = as_alice.get("/admin/")

    assert f"{table_count} designed tables, {Rule.objects.count()} access rules." in page_text(response)
    assert response.content.decode().count('href="/design/"') >= 2  # the tile and the navigation


def test_names_are_escaped(as_alice: Client, device: Table):
    hostile_name = "<script>alert(1)</script>"
    device.label = hostile_name
    saving.save_table(device)
    column = make_column(device, "it", label=hostile_name)

    for path in ("/design/", "/design/device/", page_path("column", column, "history"), "/admin/tableapi/column/?q=it"):
        response = as_alice.get(path)
        assert response.status_code == 200 and b"<script>alert" not in response.content

"""Changing and deleting the selected records of a list, with a result for each."""

import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from tests.tableapi.world import api, column_values, data_of, field, record, rule, table

pytestmark = pytest.mark.django_db

URL = "/tables/device/bulk/"


@pytest.fixture
def ids(db: Any) -> list[str]:
    table("device")
    field("device", "name", is_display=True)
    field("device", "size", "integer")
    field("device", "level")
    rule("read", "device")
    rule("write", "device", condition="name!=Locked")
    rule("delete", "device", condition="name!=Locked")
    rule("write", "device", "level", roles=["auditor"])
    rule("read", "device", "level", roles=["auditor"])
    return [record("device", name=name, size=1) for name in ("Lamp", "Locked", "Desk")]


def post(client: Client, ids: list[str], step: str, **values: str) -> Any:
    body = {"record-id": ids, "bulk-step": step, "list-state": "sysparm_query=size%3D1", **values}
    return client.post(URL, {name.replace("bulk_column", "bulk-column"): value for name, value in body.items()})


def results_of(response: Any) -> list[str]:
    """The text of each row of the result."""
    rows = response.content.decode().partition("<tbody>")[2].split("<tr>")[1:]
    return [" ".join(re.sub(r"<[^>]+>", " ", row.partition("</tr>")[0]).split()) for row in rows]


def test_list_has_a_checkbox_for_each_record(as_bob: Client, ids: list[str]):
    text = as_bob.get("/tables/device/").content.decode()
    assert text.count('name="record-id"') == 3 and 'aria-label="Select Lamp"' in text
    names = re.findall(r'name="([^"]+)"', text.partition('id="bulk"')[2].partition("</form>")[0])
    assert names == ["csrfmiddlewaretoken", "list-state", "bulk-step", "bulk-step"]


def test_steps_choose_a_column_then_a_value_then_show_the_results(as_bob: Client, bob: User, ids: list[str]):
    text = post(as_bob, ids, "edit").content.decode()
    assert '<option value="size">Size</option>' in text and "level" not in text and "sys_updated_at" not in text
    text = post(as_bob, ids, "choose", bulk_column="size").content.decode()
    assert 'name="size"' in text and "Change 3 records" in text and text.count('name="record-id"') == 3
    response = post(as_bob, ids, "write", bulk_column="size", size="7")
    assert results_of(response) == ["Lamp Changed", "Locked You are not allowed to update this record.", "Desk Changed"]
    assert 'href="/tables/device/?sysparm_query=size%3D1"' in response.content.decode()
    assert column_values(api(bob).get("device", query="ORDERBYsys_id"), "size") == [7, 1, 7]


def test_empty_value_clears_the_column(as_bob: Client, bob: User, ids: list[str]):
    post(as_bob, ids[:1], "write", bulk_column="size", size="")
    assert data_of(api(bob).get(f"device/{ids[0]}"))[0]["size"] is None


def test_invalid_value_is_explained_before_anything_is_written(as_bob: Client, bob: User, ids: list[str]):
    response = post(as_bob, ids, "write", bulk_column="size", size="many")
    if response.status_code == 422:
        assert 'value="many"' in response.content.decode() and 'class="errors"' in response.content.decode()
    else:
        assert all("Changed" not in result for result in results_of(response))
    assert set(column_values(api(bob).get("device"), "size")) == {1}


def test_column_without_permission_is_not_written(as_bob: Client, ids: list[str]):
    for name in ("level", "missing", "sys_version"):
        text = post(as_bob, ids, "write", bulk_column=name, **{name: "9"}).content.decode()
        assert "Column to change" in text


def test_deletion_is_confirmed_and_reported_for_each_record(as_bob: Client, bob: User, ids: list[str]):
    text = post(as_bob, ids, "delete").content.decode()
    assert "Delete 3 records of Device?" in text and len(data_of(api(bob).get("device"))) == 3
    assert "You have no access to delete the records." in " ".join(results_of(post(as_bob, ids, "delete-confirmed")))
    assert column_values(api(bob).get("device"), "name") == ["Locked"]


def test_hidden_and_missing_records_have_the_same_result(as_bob: Client, as_alice: Client, ids: list[str]):
    from tableapi.models import Rule

    Rule.objects.filter(operation="read", column_name="").delete()
    rule("read", "device", condition="name=Lamp")
    for step in ("write", "delete-confirmed"):
        response = post(as_bob, [ids[1], "179000000000000000"], step, bulk_column="size", size="5")
        messages = [result.partition(" ")[2] for result in results_of(response)]
        assert messages == ["There is no such record."] * 2 and "Locked" not in response.content.decode()


@pytest.mark.parametrize(
    ("count", "message"), [(0, "Select at least one record."), (501, "Select at most 500 records.")]
)
def test_number_of_records_is_limited(as_bob: Client, ids: list[str], count: int, message: str):
    response = as_bob.post(
        URL, {"record-id": [str(number) for number in range(count)], "bulk-step": "edit"}, follow=True
    )
    assert message in response.content.decode()


def test_checkboxes_are_missing_for_those_who_may_only_read(as_bob: Client):
    table("notice")
    field("notice", "name")
    rule("read", "notice")
    record("notice", name="x")
    assert "record-id" not in as_bob.get("/tables/notice/").content.decode()

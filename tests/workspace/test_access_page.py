"""Who sees what: the page shows what another user sees, why, and nothing that the administrator may not read."""

import re
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.test import Client

from accounts.models import User
from system.admin import USER_VIEW
from tests.support.users import make_user
from tests.tableapi.world import field, grant, record, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def devices(db: Any, bob: User) -> dict[str, str]:
    """Readers see the devices that are theirs; auditors see all; nobody but auditors sees the price."""
    table("device")
    field("device", "name", is_display=True)
    field("device", "owner", target="user")
    field("device", "price", "integer")
    rule("read", "device", condition="ownerDYNAMICme")
    rule("read", "device", roles=["auditor"])
    rule("write", "device", roles=["auditor"])
    rule("read", "device", "price", roles=["auditor"])
    return {
        "lamp": record("device", name="Lamp", owner=bob.pk, price=5),
        "desk": record("device", name="Desk", price=80),
    }


def show(client: Client, user: User, status: int = 200, **parameters: str) -> str:
    response = client.get("/access/", {"user": user.pk, "table": "device", **parameters})
    assert response.status_code == status, response.content
    return re.sub(r"\s+", " ", response.content.decode())


def rows_of(text: str) -> list[str]:
    return [part.partition("</tr>")[0] for part in text.split("<tr data-id=")[1:]]


def test_only_administrators_open_the_page(as_bob: Client, as_alice: Client, bob: User):
    assert as_bob.get("/access/").status_code == 403
    assert as_alice.get("/access/").status_code == 200
    assert as_alice.post("/access/").status_code == 405
    for role in ("sso_admin", "collection_admin"):
        grant(bob, role)
    assert as_bob.get("/access/").status_code == 403
    assert Client().get("/access/").status_code == 302


def test_records_and_values_are_those_of_the_user(as_alice: Client, bob: User, devices: dict[str, str]):
    text = show(as_alice, bob)
    (row,) = rows_of(text)
    assert "Lamp" in row and "Desk" not in text
    assert "Price" not in text
    assert "write: no" in text and "read: depends on the record" in text
    assert "read Device for everyone</a> where Owner is me" in text


def test_rules_of_an_auditor_are_named_in_cells_too(as_alice: Client, bob: User, devices: dict[str, str]):
    grant(bob, "auditor")
    text = show(as_alice, bob)
    assert len(rows_of(text)) == 2 and all("write: yes" in row for row in rows_of(text))
    assert "read Device.price for auditor" in text and "read Device for auditor" in text
    assert "where Owner is me" not in text  # the rule without a condition decides


def test_record_that_the_user_cannot_read_is_explained(as_alice: Client, bob: User, devices: dict[str, str]):
    text = show(as_alice, bob, record=devices["desk"])
    assert "read: no" in text and "no condition of this rule holds" in text and ">Desk<" not in text
    text = show(as_alice, bob, record=devices["lamp"])
    assert "read: yes" in text and "the user has no role of these rules" in text
    assert "There is no such record" in show(as_alice, bob, 404, record="1" * 18)


def test_user_without_rules_sees_that_the_table_does_not_exist(as_alice: Client, bob: User):
    table("device")
    text = show(as_alice, bob)
    assert "this table does not exist" in text and "no rule: administrators only" in text


def test_inactive_user_is_shown_and_a_deleted_one_is_not_found(as_alice: Client, bob: User, devices: dict[str, str]):
    User.objects.filter(pk=bob.pk).update(active=False)
    text = show(as_alice, bob)
    assert "is inactive and cannot sign in" in text and "Lamp" in text
    other = make_user("gone")
    other_id = other.pk
    other.delete()
    response = as_alice.get("/access/", {"user": other_id, "table": "device"})
    assert response.status_code in (400, 404, 422)


def test_records_and_values_that_are_hidden_from_the_viewer(as_alice: Client, bob: User, alice: User):
    table("device")
    for name in ("name", "price", "kind"):
        field("device", name, is_display=name == "name")
    rule("read", "device", condition="kind!=secret", admin_overrides=False, roles=["admin"])
    rule("read", "device", roles=["auditor"], admin_overrides=False)
    rule("read", "device", "price", condition="kind=open", admin_overrides=False, roles=["admin"])
    rule("read", "device", "price", roles=["auditor"], admin_overrides=False)
    grant(bob, "auditor")
    record("device", name="Hidden", kind="secret", price="11")
    record("device", name="Open", kind="open", price="22")
    record("device", name="Closed", kind="closed", price="33")
    text = show(as_alice, bob, columns="name,kind,price")
    assert "Hidden" not in text and "<td>33" not in text
    opened, closed = sorted(rows_of(text), key=lambda row: "Closed" in row)
    assert "<td>22" in opened and "hidden from you" in closed
    assert "1 record on this page is hidden from you" in text
    assert "cannot filter or sort" in show(as_alice, bob, 400, sysparm_query="name=Hidden")


def test_condition_on_a_value_that_the_viewer_cannot_read_hides_its_records(as_alice: Client, bob: User):
    table("device")
    field("device", "name", is_display=True)
    field("device", "price", "integer")
    rule("read", "device", condition="price>10")
    rule("read", "device", "price", roles=["auditor"], admin_overrides=False)
    record("device", name="Cheap", price=5)
    record("device", name="Dear", price=50)
    text = show(as_alice, bob)
    assert "Dear" not in text and "1 record on this page is hidden from you" in text


def test_query_filters_what_the_user_sees(as_alice: Client, bob: User, devices: dict[str, str]):
    assert rows_of(show(as_alice, bob, sysparm_query="name=Lamp"))
    assert not rows_of(show(as_alice, bob, sysparm_query="name=Desk"))
    assert "no column named" in show(as_alice, bob, 400, sysparm_query="price=5")
    assert "invalid" in show(as_alice, bob, 400, sysparm_query="name=a^^")


def test_conditions_are_shown_in_words_with_the_condition_builder(as_alice: Client, bob: User, devices: dict[str, str]):
    text = show(as_alice, bob, sysparm_query="name=Lamp")
    assert "data-filter" in text and "Remove the condition: Name is Lamp" in text
    assert f'name="user" value="{bob.pk}"' in text and 'name="table" value="device"' in text
    assert "data-filter" in show(as_alice, bob, 400, sysparm_query="price=5")  # so that it can be corrected
    assert "data-filter" not in show(as_alice, bob, record=devices["lamp"])


def test_administrators_get_from_a_record_to_the_page(as_alice: Client, as_bob: Client, devices: dict[str, str]):
    url, link = f"/tables/device/{devices['lamp']}/", f"/access/?table=device&amp;record={devices['lamp']}"
    assert link in as_alice.get(url).content.decode()
    assert link not in as_bob.get(url).content.decode()
    text = as_alice.get("/access/", {"table": "device", "record": devices["lamp"]}).content.decode()
    assert f'name="record" value="{devices["lamp"]}"' in text and "Lamp" not in text


def test_administrators_read_the_log_of_uses(as_alice: Client, as_bob: Client, bob: User, devices: dict[str, str]):
    url = "/admin/system/userviewuse/"
    LogEntry.objects.create(user=bob, action_flag=CHANGE, object_repr="Other change")
    show(as_alice, bob, record=devices["lamp"])
    text = as_alice.get(url).content.decode()
    assert f"device/{devices['lamp']}" in text and "bob" in text and "Other change" not in text
    assert url in as_alice.get("/access/").content.decode()
    entry = LogEntry.objects.get(action_flag=USER_VIEW)
    assert as_alice.get(f"{url}{entry.pk}/change/").status_code == 200
    assert as_alice.post(f"{url}{entry.pk}/delete/").status_code == 403
    for role in ("sso_admin", "collection_admin"):
        grant(bob, role)
    assert as_bob.get(url).status_code == 403


def test_use_is_logged_and_nothing_is_written(
    as_alice: Client, bob: User, devices: dict[str, str], capfd: pytest.CaptureFixture[str]
):
    before = User.objects.get(pk=bob.pk).sys_version
    show(as_alice, bob)
    lines = [line for line in capfd.readouterr().err.splitlines() if "user_view_opened" in line]
    assert len(lines) == 1 and "alice" in lines[0] and "bob" in lines[0] and "device" in lines[0]
    assert User.objects.get(pk=bob.pk).sys_version == before


def test_records_of_child_tables_name_the_rules_of_their_own_table(as_alice: Client, bob: User):
    table("device")
    field("device", "name", is_display=True)
    table("laptop", parent="device")
    rule("read", "device")
    rule("read", "laptop", condition="nameSTARTSWITHA")
    record("device", name="Box")
    record("laptop", name="Air")
    record("laptop", name="Thin")
    text = show(as_alice, bob)
    assert len(rows_of(text)) == 2 and "Thin" not in text
    assert "read Laptop for everyone</a> where Name starts with A" in text and "read Device for everyone" in text

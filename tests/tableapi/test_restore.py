"""Restoring deleted records from the deletion log."""

import pytest

from accounts.models import User
from system import properties
from system.models import DeletionLogEntry
from tableapi.database import catalogue_loader
from tableapi.design import saving
from tableapi.models import Table
from tests.tableapi.world import api, data_of, error_of, field, open_table, record, table

pytestmark = pytest.mark.django_db
RESTORE = "/rest/v1/restore/"


@pytest.fixture(autouse=True)
def device() -> Table:
    device = table("device", number_prefix="DEV")
    for name, type_name in (
        ("name", "string"),
        ("rank", "integer"),
        ("on", "boolean"),
        ("data", "json"),
        ("at", "datetime"),
    ):
        field("device", name, type_name)
    field("device", "notes", "wysiwyg")
    field("device", "code", "string", is_unique=True)
    field("device", "pin", "secret")
    field("device", "parent", target="device")
    field("device", "owners", "list", target="user")
    open_table("device")
    return device


VALUES = {"name": "Lamp", "rank": 0, "on": False, "data": {"a": [1, None]}, "at": "2026-01-02 03:04:05", "code": "c",
          "notes": "<p>Hello</p>"}  # fmt: skip


def delete_device(user: User, sys_id: str) -> str:
    assert api(user).delete(f"device/{sys_id}").status_code == 200
    return DeletionLogEntry.objects.get(record_id=sys_id).pk


def test_record_is_restored_with_values_comments_and_attachments(alice: User):
    created_device = data_of(api(alice).post("device", {**VALUES, "pin": "1234", "owners": [alice.pk]}))[0]
    sys_id = created_device["sys_id"]
    api(alice).post(f"device/{sys_id}/comments", {"text": "a"})
    api(alice).post(f"device/{sys_id}/attachments?file_name=a", b"abc", headers={"Content-Type": "a/b"})
    entry_id = delete_device(alice, sys_id)

    response = api(alice).post(f"{RESTORE}{entry_id}")

    assert response.status_code == 201
    assert data_of(response) == [{"sys_id": sys_id, "table": "device", "emptied_references": 0, "lost_references": []}]
    restored_device = data_of(api(alice).get(f"device/{sys_id}"))[0]
    changed_columns = {name for name in created_device if created_device[name] != restored_device[name]}
    assert changed_columns <= {"sys_updated_at", "sys_version"} and restored_device["sys_version"] == 1
    assert [entry["text"] for entry in data_of(api(alice).get(f"device/{sys_id}/comments"))] == ["a"]
    (attachment,) = data_of(api(alice).get(f"device/{sys_id}/attachments"))
    attachment_response = api(alice).get(f"device/{sys_id}/attachments/{attachment['sys_id']}/content")
    assert b"".join(attachment_response) == b"abc"


def test_older_entry_restores_the_comments_of_the_latest_deletion(alice: User):
    sys_id = data_of(api(alice).post("device", VALUES))[0]["sys_id"]
    api(alice).post(f"device/{sys_id}/comments", {"text": "a"})
    entry_id = delete_device(alice, sys_id)
    api(alice).post(f"{RESTORE}{entry_id}")
    assert api(alice).delete(f"device/{sys_id}").status_code == 200

    assert api(alice).post(f"{RESTORE}{entry_id}").status_code == 201
    assert [entry["text"] for entry in data_of(api(alice).get(f"device/{sys_id}/comments"))] == ["a"]


def test_text_of_a_column_converted_to_html_is_sanitized(alice: User):
    column = field("device", "remark", "text")
    sys_id = record("device", remark="<img src=x onerror=alert(1)><b>Hi</b>")
    entry_id = delete_device(alice, sys_id)
    column.type = "wysiwyg"
    saving.save_column(column)
    properties.put(properties.WYSIWYG_COLUMNS, column.pk)

    assert api(alice).post(f"{RESTORE}{entry_id}").status_code == 201
    remark = data_of(api(alice).get(f"device/{sys_id}"))[0]["remark"]
    assert "<" not in remark.replace("<br>", "") and "Hi" in remark


def test_value_that_no_longer_fits_is_omitted_and_reported(alice: User):
    column = field("device", "size", "string")
    sys_id = record("device", size="large", code="kept")
    entry_id = delete_device(alice, sys_id)
    column.delete()
    field("device", "size", "integer")
    catalogue_loader.reload_if_changed()

    assert data_of(api(alice).post(f"{RESTORE}{entry_id}"))[0]["lost_references"] == ["size"]
    assert data_of(api(alice).get(f"device/{sys_id}"))[0]["code"] == "kept"


def test_emptied_references_are_counted_and_stay_empty(alice: User):
    table("part")
    field("part", "device", target="device")
    field("part", "devices", "list", target="device")
    open_table("part")
    parent_id = record("device", name="parent")
    child_id = record("device", name="child", parent=parent_id)
    record("part", device=parent_id, devices=[parent_id, child_id])
    entry_id = delete_device(alice, parent_id)

    assert data_of(api(alice).post(f"{RESTORE}{entry_id}"))[0]["emptied_references"] == 3
    assert data_of(api(alice).get(f"device/{child_id}"))[0]["parent"] is None


def test_references_to_deleted_records_are_omitted_and_reported(alice: User, bob: User):
    parent_id = record("device", name="parent")
    child_id = record("device", name="child", parent=parent_id, owners=[alice.pk, bob.pk])
    entry_id = delete_device(alice, child_id)
    delete_device(alice, parent_id)
    bob.delete()

    assert data_of(api(alice).post(f"{RESTORE}{entry_id}"))[0]["lost_references"] == ["owners", "parent"]
    restored_device = data_of(api(alice).get(f"device/{child_id}", exclude_reference_link=1))[0]
    assert restored_device["parent"] is None and restored_device["owners"] == [alice.pk]


def test_used_id_or_unique_value_is_a_conflict(alice: User):
    lamp = data_of(api(alice).post("device", VALUES))[0]["sys_id"]
    entry_id = delete_device(alice, lamp)
    other_id = data_of(api(alice).post("device", {"code": "c"}))[0]["sys_id"]

    assert error_of(api(alice).post(f"{RESTORE}{entry_id}"))[:2] == (409, "duplicate")
    assert api(alice).get(f"device/{lamp}").status_code == 404
    delete_device(alice, other_id)
    assert api(alice).post(f"{RESTORE}{entry_id}").status_code == 201
    assert error_of(api(alice).post(f"{RESTORE}{entry_id}"))[:2] == (409, "duplicate")


def test_only_administrators_can_restore(alice: User, bob: User):
    entry_id = delete_device(alice, record("device", name="Lamp"))

    for deletion_id in (entry_id, "0" * 18):
        assert error_of(api(bob).post(f"{RESTORE}{deletion_id}"))[:2] == (403, "access_denied")
    assert error_of(api(alice).post(f"{RESTORE}{'0' * 18}"))[:2] == (404, "not_found")


def test_record_of_a_dropped_table_is_a_conflict(device: Table, alice: User):
    entry_id = delete_device(alice, record("device", name="Lamp"))
    device.delete()

    assert error_of(api(alice).post(f"{RESTORE}{entry_id}"))[:2] == (409, "conflict")


def test_user_is_restored_without_a_password(alice: User, bob: User):
    api(alice).delete(f"user/{bob.pk}")
    entry_id = DeletionLogEntry.objects.get(record_id=bob.pk, table="user").pk

    assert api(alice).post(f"{RESTORE}{entry_id}").status_code == 201
    user = User.objects.get(pk=bob.pk)
    assert (user.login, user.first_name, user.has_usable_password()) == (bob.login, bob.first_name, False)


def test_tables_and_rules_cannot_be_restored(device: Table, alice: User):
    table("temporary").delete()
    entry_id = DeletionLogEntry.objects.filter(table="sys_db_table").latest("sys_id").pk

    assert error_of(api(alice).post(f"{RESTORE}{entry_id}"))[:2] == (400, "bad_request")

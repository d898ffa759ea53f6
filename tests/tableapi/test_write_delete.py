"""`DELETE` removes a record from all its tables, logs the deletion, and clears references."""

from typing import Any

import pytest

from accounts.models import User
from system.models import Change, DeletionLogEntry
from tableapi.models import Table
from tableapi.write import designed_records
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, column_values, data_of, error_of, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def device(db: Any) -> Table:
    """A table whose records everybody may delete."""
    new_table = table("device")
    field("device", "name", is_display=True)
    open_table("device")
    return new_table


def stored_rows(table_name: str, *column_names: str) -> list[Any]:
    return query_rows(f'SELECT {", ".join(column_names or ("sys_id",))} FROM records."{table_name}" ORDER BY sys_id')


def test_response_describes_the_deletion(device: Table, bob: User):
    lamp, other_device = record("device", name="Lamp"), record("device", name="Other")
    response = api(bob).delete(f"device/{lamp}")
    assert response.status_code == 200
    body = response.json()
    assert body["status"] == "OK" and body["data"].keys() == {"description"} and lamp in body["data"]["description"]
    assert stored_rows("device") == [(other_device,)]
    assert error_of(api(bob).delete(f"device/{lamp}")) == (404, "record_not_found", None)


def test_deletion_is_logged(device: Table, bob: User):
    for name, type_name in {
        "at": "datetime",
        "on_day": "date",
        "exact": "decimal",
        "tree": "json",
        "pin": "secret",
    }.items():
        field("device", name, type_name)
    field("device", "owner", target="user")
    field("device", "users", "list", target="user")
    (record,) = data_of(
        api(bob).post(
            "device",
            {"name": "Lamp", "at": "2030-01-02 03:04:05", "on_day": "2030-01-02", "exact": "0.10", "tree": {"a": [1]},
             "pin": "very secret", "owner": bob.pk, "users": [bob.pk]},
        )
    )  # fmt: skip
    api(bob).delete(f"device/{record['sys_id']}")

    log_entry = DeletionLogEntry.objects.get(record_id=record["sys_id"])
    assert (log_entry.table, log_entry.display_value, log_entry.deleted_by) == ("device", "Lamp", bob.pk)
    expected_payload = {
        "name": "Lamp", "at": "2030-01-02 03:04:05", "on_day": "2030-01-02", "exact": "0.10", "tree": {"a": [1]},
        "owner": bob.pk, "users": [bob.pk], "sys_created_by": bob.pk, "sys_version": 0,
    }  # fmt: skip
    assert {name: log_entry.payload[name] for name in expected_payload} == expected_payload
    assert "pin" not in log_entry.payload and "very secret" not in str(log_entry.payload)


def test_failed_deletion_is_not_logged(device: Table, bob: User, monkeypatch: Any):
    lamp = record("device", name="Lamp")

    def fail(*_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(designed_records, "delete", fail)
    with pytest.raises(RuntimeError):
        api(bob).delete(f"device/{lamp}")
    assert stored_rows("device") == [(lamp,)] and not DeletionLogEntry.objects.exists()


def test_record_without_a_name_is_logged_by_its_id(device: Table, bob: User):
    lamp = record("device")
    api(bob).delete(f"device/{lamp}")
    assert DeletionLogEntry.objects.get().display_value == lamp


class TestChildRecords:
    @pytest.mark.parametrize("path", ["device", "laptop", "tablet"])
    def test_rows_of_all_tables_are_deleted(self, device: Table, bob: User, path: str):
        table("laptop", parent="device")
        field("laptop", "ram", "integer")
        table("tablet", parent="laptop")
        deleted_tablet, kept_tablet = record("tablet", name="T", ram=4), record("tablet", name="S", ram=8)
        assert api(bob).delete(f"{path}/{deleted_tablet}").status_code == 200
        assert stored_rows("device") == stored_rows("laptop") == stored_rows("tablet") == [(kept_tablet,)]
        log_entry = DeletionLogEntry.objects.get()
        assert (log_entry.table, log_entry.payload["ram"], log_entry.display_value) == ("tablet", 4, "T")


class TestReferringRecords:
    def test_references_are_cleared_without_write_permission(self, device: Table, bob: User):  # B53
        lamp, other_device = record("device", name="Lamp"), record("device", name="Other")
        table("desk")
        field("desk", "lamp", target="device")
        lamp_desk, other_desk = record("desk", lamp=lamp), record("desk", lamp=other_device)
        assert api(bob).delete(f"device/{lamp}").status_code == 200
        assert stored_rows("desk", "sys_id", "lamp") == [(lamp_desk, None), (other_desk, other_device)]

    def test_list_items_are_removed(self, device: Table, bob: User):
        lamp, other_device = record("device", name="Lamp"), record("device", name="Other")
        table("desk")
        field("desk", "lamps", "list", target="device")
        record("desk", lamps=[other_device, lamp])
        record("desk", lamps=[lamp])
        record("desk")
        assert api(bob).delete(f"device/{lamp}").status_code == 200
        assert stored_rows("desk", "lamps") == [([other_device],), ([],), (None,)]

    @pytest.mark.parametrize("type_name", ["reference", "list"])
    def test_mandatory_reference_prevents_deletion(self, device: Table, bob: User, type_name: str):  # B53
        lamp, other_device = record("device", name="Lamp"), record("device", name="Other")
        table("hidden_desk")
        field("hidden_desk", "hidden_lamp", type_name, target="device", mandatory=True)
        desk = record("hidden_desk", hidden_lamp=[lamp] if type_name == "list" else lamp)
        response = api(bob).delete(f"device/{lamp}")
        assert error_of(response) == (409, "referenced", None)
        assert b"hidden" not in response.content and desk.encode() not in response.content
        assert len(stored_rows("device")) == 2 and not DeletionLogEntry.objects.exists()
        assert api(bob).delete(f"device/{other_device}").status_code == 200
        if type_name == "list":
            third_device = record("device", name="Third")
            query_rows("UPDATE records.hidden_desk SET hidden_lamp = ARRAY[%s, %s]", lamp, third_device)
            assert api(bob).delete(f"device/{lamp}").status_code == 200, "the list is not empty"
            assert stored_rows("hidden_desk", "hidden_lamp") == [([third_device],)]

    @pytest.mark.parametrize("type_name", ["reference", "list"])
    def test_visible_mandatory_reference_is_named(self, device: Table, bob: User, type_name: str):
        lamp = record("device", name="Lamp")
        for name in ("desk", "room"):
            field(table(name), "name")
            field(name, "lamp", type_name, target="device", mandatory=True)
            record(name, name="near", lamp=[lamp] if type_name == "list" else lamp)
        field("desk", "spare", type_name, target="device", mandatory=True)
        field("device", "twin", type_name, target="device", mandatory=True)
        query_rows("UPDATE records.device SET twin = %s", [lamp] if type_name == "list" else lamp)

        def refusal_message() -> str:
            response = api(bob).delete(f"device/{lamp}")
            assert error_of(response) == (409, "referenced", None)
            return str(response.json()["errors"][0]["message"])

        general_message = "Other records have mandatory references to this record."
        assert refusal_message() == general_message
        rule("read", "desk", condition="name=far")
        assert refusal_message() == general_message, "the referring record is unreadable"
        near_rule = rule("read", "desk", condition="name=near")
        assert refusal_message() == "Other records reference this record in mandatory columns: desk.lamp."
        rule("read", "room")
        assert refusal_message() == "Other records reference this record in mandatory columns: desk.lamp, room.lamp."
        rule("read", "desk", "lamp", roles=["auditor"])
        assert refusal_message() == "Other records reference this record in mandatory columns: room.lamp."
        rule("read", "room", "lamp", condition="name=far")
        near_rule.delete()
        assert refusal_message() == general_message

    def test_references_to_parent_and_child_tables_are_checked(self, device: Table, bob: User):
        table("laptop", parent="device")
        record_id = record("laptop", name="X1")
        field(table("desk"), "lamps", "list", target="device")
        field("desk", "needed", target="laptop", mandatory=True)
        desk = record("desk", lamps=[record_id], needed=record_id)
        assert error_of(api(bob).delete(f"device/{record_id}")) == (409, "referenced", None)
        query_rows("UPDATE records.desk SET needed = NULL")
        assert api(bob).delete(f"device/{record_id}").status_code == 200
        assert stored_rows("desk", "sys_id", "lamps") == [(desk, [])]

    def test_self_reference_does_not_prevent_deletion(self, device: Table, bob: User):
        field("device", "part_of", target="device")
        field("device", "parts", "list", target="device")
        lamp = record("device", name="Lamp")
        bulb = record("device", name="Bulb", part_of=lamp, parts=[lamp])
        query_rows("UPDATE records.device SET part_of = sys_id, parts = ARRAY[sys_id] WHERE sys_id = %s", lamp)
        assert api(bob).delete(f"device/{lamp}").status_code == 200
        assert stored_rows("device", "sys_id", "part_of", "parts") == [(bulb, None, [])]

    def test_record_of_another_table_with_the_same_id_is_another_record(self, device: Table, alice: User, bob: User):
        desk = table("desk")
        field("desk", "lamp", target="device")
        field("desk", "lamps", "list", target="device")
        open_table(desk)
        assert api(alice).post("device", {"sys_id": "a1", "name": "Lamp"}).status_code == 201
        assert api(alice).post("desk", {"sys_id": "a1", "lamp": "a1", "lamps": ["a1"]}).status_code == 201
        field("desk", "needed", target="device", mandatory=True)
        query_rows("UPDATE records.desk SET needed = 'a1'")
        assert error_of(api(bob).delete("device/a1"))[:2] == (409, "referenced")
        query_rows("UPDATE records.desk SET needed = NULL")
        assert api(bob).delete("device/a1").status_code == 200
        assert stored_rows("desk", "lamp", "lamps") == [(None, [])]
        clears = Change.objects.filter(operation="clear", record_id="a1", table_key=desk.pk)
        assert clears.count() == 2 and DeletionLogEntry.objects.get().emptied_references == 2

    def test_mandatory_self_reference_does_not_prevent_deletion(self, device: Table, bob: User):
        field("device", "part_of", target="device", mandatory=True)
        lamp = record("device", name="Lamp")
        query_rows("UPDATE records.device SET part_of = sys_id")
        assert api(bob).delete(f"device/{lamp}").status_code == 200
        assert stored_rows("device") == []


def test_referenced_records_are_kept(device: Table, bob: User):
    field("device", "owner", target="user")
    lamp = record("device", owner=bob.pk)
    assert api(bob).delete(f"device/{lamp}").status_code == 200
    assert column_values(api(bob).get("user", query="login=bob"), "login") == ["bob"]


def test_delete_ignores_parameters(device: Table, bob: User):
    lamp = record("device", name="Lamp")
    response = api(bob).delete(f"device/{lamp}", fields="nothing", view="none", display_value="x")
    assert response.status_code == 200 and response.json()["data"].keys() == {"description"}


def test_body_is_ignored(device: Table, bob: User):
    lamp = record("device", name="Lamp")
    assert api(bob).send("DELETE", f"device/{lamp}", "[nonsense", {"Content-Type": "text/plain"}).status_code == 200


def test_table_without_own_columns_is_deleted_with_its_rules(device: Table, alice: User):
    lamp = table("lamp", parent="device")
    rule("read", "lamp", "name")
    assert api(alice).delete(f"sys_db_table/{lamp.pk}").status_code == 200
    assert "read (deleted table).name" in list(DeletionLogEntry.objects.values_list("display_value", flat=True))

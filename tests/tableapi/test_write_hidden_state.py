"""Writes do not reveal what a caller may not read, and handle converted and recreated columns."""

from typing import Any

import pytest

from accounts.models import User
from tableapi.design import saving
from tableapi.models import Column, Rule
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, data_of, error_of, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db


class TestUnreadableColumn:
    @pytest.fixture
    def device(self, db: Any) -> str:
        """Bob can read devices but no laptops. The column `hid` is hidden for devices and readable for laptops."""
        table("device")
        table("laptop", parent="device")
        field("device", "name")
        field("device", "hid")
        rule("read", "device")
        rule("create", "device")
        rule("write", "device")
        rule("read", "device", "hid", roles=["keeper"])
        rule("read", "laptop", roles=["keeper"])
        rule("read", "laptop", "hid")
        rule("write", "device", "hid")
        rule("create", "device", "hid")
        return record("device", name="a", hid="s")

    @pytest.mark.parametrize("value", ["new", "s", None, 1, {"a": 1}])
    def test_hidden_column_is_unknown_to_every_write(self, device: str, bob: User, value: Any):
        for name in ("hid", "nothing"):
            for response in (
                api(bob).patch(f"device/{device}", {name: value}), api(bob).put(f"device/{device}", {name: value}),
                api(bob).post("device", {name: value}), api(bob).patch("device/0", {name: value}),
            ):  # fmt: skip
                assert error_of(response) == (400, "unknown_field", name)
        assert query_rows("SELECT hid, sys_version FROM records.device") == [("s", 0)]

    def test_payload_of_the_deletion_log_is_unknown_to_writes(self, bob: User):
        rule("read", "sys_deletion_log")
        messages = []
        for name in ("payload", "nothing"):
            response = api(bob).patch("sys_deletion_log/1", {name: 1})
            assert error_of(response) == (400, "unknown_field", name)
            messages.append(response.json()["errors"][0]["message"].replace(name, ""))
        assert messages[0] == messages[1]


class TestSecretColumn:
    @pytest.fixture
    def note_ids(self, db: Any, alice: User) -> list[str]:
        """A note with a token and one without. Only administrators may write tokens."""
        table("note")
        field("note", "name")
        field("note", "token", "secret")
        rule("read", "note")
        rule("write", "note")
        rule("write", "note", "token", roles=["admin"])
        note_ids = [record("note", name=name) for name in ("full", "empty")]
        data_of(api(alice).patch(f"note/{note_ids[0]}", {"token": "abc"}))
        return note_ids

    @pytest.mark.parametrize("value", [None, "abc", "x"])
    def test_write_does_not_reveal_whether_a_secret_is_set(self, note_ids: list[str], bob: User, value: Any):
        responses = [
            send(f"note/{note_id}", {"name": "x", "token": value}) for send in (api(bob).patch, api(bob).put)
            for note_id in note_ids
        ]  # fmt: skip
        assert {error_of(response) for response in responses} == {(403, "access_denied", "token")}

    def test_conditional_permission_does_not_reveal_a_secret(self, note_ids: list[str], bob: User):
        rule("write", "note", "token", condition="name=mine")
        responses = [api(bob).patch(f"note/{note_id}", {"token": None}) for note_id in note_ids]
        assert {error_of(response) for response in responses} == {(403, "access_denied", "token")}
        data_of(api(bob).patch(f"note/{note_ids[0]}", {"name": "mine"}))
        data_of(api(bob).patch(f"note/{note_ids[0]}", {"token": None}))
        assert query_rows("SELECT token FROM records.note WHERE sys_id = %s", note_ids[0]) == [(None,)]

    def test_put_without_the_secret_does_not_reveal_it(self, note_ids: list[str], bob: User):
        responses = [api(bob).put(f"note/{note_id}", {"name": "x"}) for note_id in note_ids]
        assert [data_of(response)[0]["name"] for response in responses] == ["x", "x"]
        assert query_rows("SELECT count(token) FROM records.note") == [(1,)]


class TestConvertedText:
    @pytest.fixture
    def note_id(self, db: Any) -> str:
        table("note")
        body_column = field("note", "body", "text")
        open_table("note")
        converted_note = record("note", body="a <b>x</b> 1")
        body_column.type = "wysiwyg"
        saving.save_column(body_column)
        return converted_note

    def test_text_without_its_tags_is_stored_as_a_change(self, note_id: str, bob: User):
        assert data_of(api(bob).get(f"note/{note_id}", fields="body")) == [{"body": "a <b>x</b> 1"}]
        response = api(bob).patch(f"note/{note_id}", {"body": "a x 1"}, fields="body,sys_version")
        assert data_of(response) == [{"body": "a x 1", "sys_version": 1}]
        assert data_of(api(bob).get(f"note/{note_id}", fields="body")) == [{"body": "a x 1"}]

    def test_unchanged_text_sent_back_is_kept(self, note_id: str, bob: User):
        for send in (api(bob).patch, api(bob).put):
            response = send(f"note/{note_id}", {"body": "a <b>x</b> 1"}, fields="body,sys_version")
            assert data_of(response) == [{"body": "a <b>x</b> 1", "sys_version": 0}]
        assert query_rows("SELECT body FROM records.note") == [("a <b>x</b> 1",)]


def test_rules_of_a_column_are_deleted_with_it(db: Any, bob: User):
    table("device")
    table("laptop", parent="device")
    price_column = field("device", "price")
    field("device", "name")
    for name in ("device", "laptop"):
        rule("read", name, "price", roles=["keeper"])
        rule("read", name, "name")
    price_column.delete()
    remaining_rules = Rule.objects.filter(table__name__in=["device", "laptop"])
    assert list(remaining_rules.values_list("column_name", flat=True)) == ["name", "name"]
    field("device", "price")
    rule("read", "device")
    lamp = record("device", price="5")
    assert data_of(api(bob).get(f"device/{lamp}"))[0]["price"] == "5"


def test_missing_hidden_secret_is_not_named(bob: User):  # B29
    table("device")
    field("device", "name")
    field("device", "pin", "secret", mandatory=True)
    for operation in ("read", "write", "create"):
        rule(operation, "device")
        rule(operation, "device", "pin", roles=["auditor"])
    response = api(bob).post("device", {"name": "x"})
    assert error_of(response) == (422, "mandatory", None) and b"pin" not in response.content


def test_no_write_reveals_whether_a_mandatory_secret_is_set(bob: User, alice: User):  # B28
    table("device")
    field("device", "name")
    field("device", "pin", "secret")
    open_table("device")
    device_without_secret, device_with_secret = record("device", name="Lamp"), record("device", name="Lamp")
    assert api(alice).patch(f"device/{device_with_secret}", {"pin": "1234"}).status_code == 200
    pin_column = Column.objects.get(name="pin", table__name="device")
    pin_column.mandatory = True
    saving.save_column(pin_column)
    for send in (api(bob).put, api(bob).patch):
        records = [
            data_of(send(f"device/{sys_id}", {"name": "x"}, fields="name"))
            for sys_id in (device_without_secret, device_with_secret)
        ]
        assert records[0] == records[1] == [{"name": "x"}]
    assert query_rows("SELECT count(pin) FROM records.device") == [(1,)]
    for sys_id in (device_without_secret, device_with_secret):
        assert error_of(api(bob).put(f"device/{sys_id}", {"name": "x", "pin": None})) == (422, "mandatory", "pin")

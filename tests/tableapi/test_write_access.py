"""Write permissions: record rules before and after the change, column rules, and responses that reveal nothing."""

from typing import Any

import pytest

from accounts.models import User
from tableapi.models import Rule, Table
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, data_of, error_of, field, grant, open_table, record, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def device(db: Any) -> Table:
    """A table with two columns and no rules."""
    new_table = table("device")
    field("device", "name")
    field("device", "state")
    return new_table


def stored_row(sys_id: str, *column_names: str) -> Any:
    rows = query_rows(f"SELECT {', '.join(column_names)} FROM records.device WHERE sys_id = %s", sys_id)
    return rows[0] if rows else None


def device_count() -> int:
    return int(query_rows("SELECT count(*) FROM records.device")[0][0])


class TestWithoutRules:
    def test_table_exists_only_for_administrators(self, device: Table, alice: User, bob: User):  # B75
        record_id = record("device", name="Lamp")
        for response in (
            api(bob).post("device", {}), api(bob).patch(f"device/{record_id}", {}),
            api(bob).put(f"device/{record_id}", {}), api(bob).delete(f"device/{record_id}"),
        ):  # fmt: skip
            assert error_of(response) == (404, "table_not_found", None)
        assert api(alice).post("device", {"name": "a"}).status_code == 201
        assert api(alice).patch(f"device/{record_id}", {"name": "b"}).status_code == 200
        assert api(alice).delete(f"device/{record_id}").status_code == 200

    def test_rules_without_admin_bypass_apply_to_administrators(self, device: Table, alice: User):
        for operation in ("create", "write", "delete"):
            rule(operation, "device", roles=["editor"], admin_overrides=False)
        record_id = record("device", name="Lamp")
        assert error_of(api(alice).post("device", {})) == (403, "access_denied", None)
        assert error_of(api(alice).patch(f"device/{record_id}", {"name": "x"})) == (403, "access_denied", None)
        assert error_of(api(alice).delete(f"device/{record_id}")) == (403, "access_denied", None)


class TestCreation:
    def test_reader_gets_403_and_others_404(self, device: Table, bob: User):
        rule("create", "device", roles=["editor"])
        assert error_of(api(bob).post("device", {})) == (404, "table_not_found", None)
        rule("read", "device")
        assert error_of(api(bob).post("device", {})) == (403, "access_denied", None)
        assert device_count() == 0
        assert api(grant(bob, "editor")).post("device", {}).status_code == 201

    def test_new_record_must_match_the_create_rule(self, device: Table, bob: User):  # B25
        rule("create", "device", condition="state=new")
        rule("read", "device")
        assert error_of(api(bob).post("device", {"state": "old"})) == (403, "access_denied", None)
        assert error_of(api(bob).post("device", {})) == (403, "access_denied", None)
        assert device_count() == 0
        assert api(bob).post("device", {"state": "new"}).status_code == 201

    def test_create_condition_applies_to_defaults(self, device: Table, bob: User):
        field("device", "active", "boolean", default_value="true")
        rule("create", "device", condition="active=true")
        rule("read", "device")
        assert api(bob).post("device", {}).status_code == 201
        assert error_of(api(bob).post("device", {"active": False}))[0] == 403

    def test_denied_columns_are_named(self, device: Table, bob: User):
        rule("create", "device")
        rule("read", "device")
        rule("create", "device", "state", roles=["editor"])
        assert error_of(api(bob).post("device", {"name": "a", "state": "new"})) == (403, "access_denied", "state")
        assert device_count() == 0
        assert api(bob).post("device", {"name": "a"}).status_code == 201

    def test_column_permission_can_depend_on_the_record(self, device: Table, bob: User):
        rule("create", "device")
        rule("read", "device")
        rule("create", "device", "name", condition="state=new")
        response = api(bob).post("device", {"name": "a", "state": "old"})
        assert error_of(response) == (403, "access_denied", "name") and b"state" not in response.content
        assert api(bob).post("device", {"name": "a", "state": "new"}).status_code == 201
        assert api(bob).post("device", {"state": "old"}).status_code == 201
        assert device_count() == 2

    def test_create_only_caller_reads_nothing(self, device: Table, bob: User):  # B24
        rule("create", "device")
        response = api(bob).post("device", {"name": "a"})
        assert response.status_code == 201 and data_of(response) == [{}]
        assert "ETag" not in response
        assert error_of(api(bob).post("device", {"name": "a"}, fields="name")) == (400, "no_fields", "sysparm_fields")
        sys_id = response["Location"].rsplit("/", 1)[1]
        for response in (
            api(bob).get(f"device/{sys_id}"), api(bob).patch(f"device/{sys_id}", {"name": "b"}),
            api(bob).delete(f"device/{sys_id}"),
        ):  # fmt: skip
            assert error_of(response) == (404, "record_not_found", None)
        assert error_of(api(bob).post("device", {"nothing": 1})) == (400, "unknown_field", "nothing")

    def test_unreadable_new_record_is_not_returned(self, device: Table, bob: User):  # B24
        rule("create", "device")
        rule("read", "device", condition="state=open")
        assert data_of(api(bob).post("device", {"name": "a", "state": "closed"})) == [{}]
        assert data_of(api(bob).post("device", {"name": "a", "state": "open"}))[0]["name"] == "a"

    def test_response_has_only_readable_columns(self, device: Table, bob: User):  # B24
        rule("create", "device")
        rule("read", "device")
        rule("read", "device", "state", condition="name=a")
        for name, visible_state in (("a", "x"), ("b", None)):
            assert data_of(api(bob).post("device", {"name": name, "state": "x"}))[0]["state"] == visible_state
        rule("read", "device", "name", roles=["auditor"])
        assert "name" not in data_of(api(bob).post("device", {"state": "x"}))[0]

    def test_scoped_key_has_fewer_permissions(self, device: Table, bob: User):  # B65
        rule("create", "device", roles=["editor"])
        rule("read", "device")
        grant(bob, "editor", "other")
        assert api(bob, scope=["editor"]).post("device", {}).status_code == 201
        assert error_of(api(bob, scope=["other"]).post("device", {})) == (403, "access_denied", None)


class TestUpdate:
    @pytest.fixture
    def lamp(self, device: Table) -> str:
        rule("read", "device", condition="state!=hidden")
        return record("device", name="Lamp", state="new")

    def test_reader_cannot_write(self, lamp: str, bob: User):  # B23
        for send in (api(bob).patch, api(bob).put):
            response = send(f"device/{lamp}", {"name": "x"})
            assert error_of(response) == (403, "access_denied", None)
        assert error_of(api(bob).patch(f"device/{lamp}", {"name": "Lamp"}))[0] == 403, "even without a change"
        assert stored_row(lamp, "name", "sys_version") == ("Lamp", 0)

    def test_unreadable_record_is_404(self, lamp: str, bob: User):  # B21, B23
        rule("write", "device")
        rule("delete", "device")
        hidden_lamp = record("device", name="x", state="hidden")
        for path, body in ((f"device/{hidden_lamp}", {"name": "y"}), ("device/1", {"name": "y"})):
            responses = [
                api(bob).patch(path, body),
                api(bob).put(path, body),
                api(bob).delete(path),
                api(bob).get(path),
            ]
            assert len({response.content for response in responses}) == 1
            assert {error_of(response) for response in responses} == {(404, "record_not_found", None)}
        assert stored_row(hidden_lamp, "name") == ("x",)

    def test_write_rule_applies_before_the_change(self, lamp: str, bob: User):
        rule("write", "device", condition="state=open")
        assert error_of(api(bob).patch(f"device/{lamp}", {"state": "open"})) == (403, "access_denied", None)
        open_device = record("device", name="a", state="open")
        assert api(bob).patch(f"device/{open_device}", {"name": "b"}).status_code == 200

    def test_write_rule_applies_after_the_change(self, device: Table, lamp: str, bob: User):  # B25
        rule("write", "device", condition="state=new")
        for send in (api(bob).patch, api(bob).put):
            assert error_of(send(f"device/{lamp}", {"name": "x", "state": "closed"})) == (403, "access_denied", None)
        assert error_of(api(bob).put(f"device/{lamp}", {"name": "x"}))[0] == 403, "omitted, it would be empty"
        assert stored_row(lamp, "name", "state", "sys_version") == ("Lamp", "new", 0)
        assert api(bob).patch(f"device/{lamp}", {"name": "x"}).status_code == 200

    def test_owner_cannot_give_the_record_away(self, device: Table, lamp: str, alice: User, bob: User):  # B25
        field("device", "owner", target="user")
        rule("write", "device", condition="ownerDYNAMICme")
        own_device, alice_device = record("device", owner=bob.pk), record("device", owner=alice.pk)
        assert api(bob).patch(f"device/{own_device}", {"name": "x"}).status_code == 200
        assert error_of(api(bob).patch(f"device/{own_device}", {"owner": alice.pk}))[0] == 403
        assert error_of(api(bob).patch(f"device/{alice_device}", {"owner": bob.pk}))[0] == 403
        assert stored_row(alice_device, "owner") == (alice.pk,)

    def test_change_can_make_the_record_unreadable(self, lamp: str, bob: User):  # B24
        rule("write", "device")
        response = api(bob).patch(f"device/{lamp}", {"state": "hidden"})
        assert data_of(response) == [{}] and "ETag" not in response
        assert stored_row(lamp, "state") == ("hidden",)

    def test_denied_columns_of_a_change_are_named(self, lamp: str, bob: User):
        rule("write", "device")
        rule("write", "device", "state", roles=["editor"])
        for send in (api(bob).patch, api(bob).put):
            response = send(f"device/{lamp}", {"name": "x", "state": "old"})
            assert error_of(response) == (403, "access_denied", "state")
        assert stored_row(lamp, "name", "sys_version") == ("Lamp", 0)
        assert api(bob).patch(f"device/{lamp}", {"name": "x", "state": "new"}).status_code == 200, "unchanged value"
        assert data_of(api(bob).put(f"device/{lamp}", {"name": "y"}))[0]["state"] == "new"

    def test_column_permission_applies_before_and_after_the_change(self, device: Table, lamp: str, bob: User):  # B25
        rule("write", "device")
        rule("write", "device", "name", condition="state=new")
        old_device = record("device", name="a", state="old")
        assert error_of(api(bob).patch(f"device/{old_device}", {"name": "b"})) == (403, "access_denied", "name")
        assert error_of(api(bob).patch(f"device/{old_device}", {"name": "b", "state": "new"})) == (
            403,
            "access_denied",
            "name",
        )
        assert error_of(api(bob).patch(f"device/{lamp}", {"name": "b", "state": "old"})) == (
            403,
            "access_denied",
            "name",
        )
        assert stored_row(lamp, "name", "state") == ("Lamp", "new")
        assert api(bob).patch(f"device/{lamp}", {"name": "b"}).status_code == 200
        assert api(bob).patch(f"device/{old_device}", {"state": "new"}).status_code == 200

    def test_denial_names_only_sent_columns(self, device: Table, lamp: str, bob: User):
        """PUT clears omitted columns. The column that the rule then forbids was not sent."""
        field("device", "code")
        rule("write", "device")
        rule("write", "device", "code", condition="name=Lamp")
        query_rows("UPDATE records.device SET code = 'x'")
        response = api(bob).put(f"device/{lamp}", {"name": "other", "state": "new"})
        assert error_of(response) == (403, "access_denied", None)
        assert b"code" not in response.content.replace(b'"code": "access_denied"', b"")
        assert stored_row(lamp, "name", "code") == ("Lamp", "x")

    def test_unknown_and_hidden_columns_are_refused_alike(self, device: Table, lamp: str, bob: User):  # B29
        rule("write", "device")
        field("device", "secret_price", "integer")
        rule("read", "device", "secret_price", roles=["auditor"])
        for send in (api(bob).patch, api(bob).put):
            responses = [send(f"device/{lamp}", {name: 1}) for name in ("secret_price", "nothing_here")]
            assert error_of(responses[0]) == (400, "unknown_field", "secret_price")
            assert responses[1].content == responses[0].content.replace(b"secret_price", b"nothing_here")


class TestHiddenValues:
    """Responses do not depend on the value of a column that is hidden in this record."""

    @pytest.fixture
    def lamp(self, device: Table) -> str:
        rule("read", "device")
        rule("read", "device", "state", condition="name=open")
        rule("write", "device")
        return record("device", name="Lamp", state="stored")

    def test_refused_write_does_not_reveal_a_hidden_value(self, lamp: str, bob: User):
        rule("write", "device", "state", condition="name=open")
        for send in (api(bob).patch, api(bob).put):
            stored_response, guess_response, null_response = (
                send(f"device/{lamp}", {"state": value}) for value in ("stored", "guess", None)
            )
            assert error_of(stored_response) == (403, "access_denied", "state")
            assert stored_response.content == guess_response.content == null_response.content
        assert stored_row(lamp, "state", "sys_version") == ("stored", 0)

    def test_allowed_write_does_not_reveal_a_hidden_value(self, device: Table, lamp: str, bob: User):
        other_lamp = record("device", name="Lamp", state="else")
        for send in (api(bob).patch, api(bob).put):
            records = [
                data_of(send(f"device/{sys_id}", {"name": "Lamp", "state": "stored"}))[0]
                for sys_id in (lamp, other_lamp)
            ]
            assert records[0]["sys_version"] == records[1]["sys_version"] > 0
            assert records[0]["state"] is records[1]["state"] is None

    def test_read_only_error_does_not_reveal_a_hidden_value(self, device: Table, bob: User):
        rule("read", "device")
        rule("write", "device")
        field("device", "score", read_only=True)
        rule("read", "device", "score", condition="name=open")
        record_id = record("device", name="Lamp", score="9")
        stored_response, guess_response = (
            api(bob).patch(f"device/{record_id}", {"score": value}) for value in ("9", "8")
        )
        assert (
            error_of(stored_response) == (400, "read_only", "score")
            and stored_response.content == guess_response.content
        )

    def test_merged_json_does_not_reveal_hidden_values(self, device: Table, lamp: str, bob: User):
        field("device", "tree", "json")
        rule("read", "device", "tree", condition="name=open")
        query_rows("""UPDATE records.device SET tree = '{"a": 1}'""")
        assert data_of(api(bob).patch(f"device/{lamp}", {"tree": {"b": 2}}))[0]["tree"] is None

    def test_rule_on_a_hidden_column_reveals_at_most_one_bit(self, device: Table, bob: User):
        """An attempt reveals whether the rule holds, but the message reveals nothing more."""
        record_id = record("device", name="Lamp", state="locked")
        rule("read", "device")
        rule("read", "device", "state", roles=["auditor"])
        rule("write", "device", condition="state!=locked")
        response = api(bob).patch(f"device/{record_id}", {"name": "x"})
        assert error_of(response) == (403, "access_denied", None)
        assert b"state" not in response.content and b"locked" not in response.content


class TestDeletion:
    def test_reader_gets_403(self, device: Table, bob: User):  # B22
        rule("read", "device")
        record_id = record("device", name="Lamp")
        response = api(bob).delete(f"device/{record_id}")
        assert error_of(response) == (403, "access_denied", None)
        assert response.json()["errors"][0]["message"] == "You have no access to delete the records."
        rule("delete", "device", roles=["editor"])
        assert error_of(api(bob).delete(f"device/{record_id}"))[0] == 403
        assert device_count() == 1
        assert api(grant(bob, "editor")).delete(f"device/{record_id}").status_code == 200

    def test_delete_condition_applies_to_each_record(self, device: Table, bob: User):
        rule("read", "device")
        rule("delete", "device", condition="state=old")
        old_device, new_device = record("device", state="old"), record("device", state="new")
        assert error_of(api(bob).delete(f"device/{new_device}"))[0] == 403
        assert api(bob).delete(f"device/{old_device}").status_code == 200


class TestRecordsOfOtherTables:
    """ "The record's own table decides, not the one in the address." """

    def test_child_table_has_its_own_rules(self, device: Table, bob: User):
        table("laptop", parent="device")
        field("laptop", "ram", "integer")
        open_table("device")
        rule("write", "laptop", roles=["editor"])
        rule("delete", "laptop", roles=["editor"])
        laptop_id, device_id = record("laptop", name="X1"), record("device", name="Lamp")
        for path in ("device", "laptop"):
            assert error_of(api(bob).patch(f"{path}/{laptop_id}", {"name": "x"}))[0] == 403
            assert error_of(api(bob).delete(f"{path}/{laptop_id}"))[0] == 403
        assert api(bob).patch(f"device/{device_id}", {"name": "x"}).status_code == 200
        grant(bob, "editor")
        assert api(bob).patch(f"device/{laptop_id}", {"name": "x"}).status_code == 200
        assert api(bob).delete(f"device/{laptop_id}").status_code == 200

    def test_child_column_rule_applies_at_the_parent_address(self, device: Table, bob: User):
        table("laptop", parent="device")
        field("laptop", "ram", "integer")
        rule("read", "device")
        rule("write", "laptop", condition="ram=8")
        small_laptop, large_laptop = record("laptop", ram=8), record("laptop", ram=16)
        assert api(bob).patch(f"device/{small_laptop}", {"name": "x"}).status_code == 200
        assert error_of(api(bob).patch(f"device/{large_laptop}", {"name": "x"}))[0] == 403

    def test_record_is_404_at_another_table(self, device: Table, bob: User):
        table("laptop", parent="device")
        open_table("device")
        plain_device = record("device", name="Lamp")
        for response in (
            api(bob).patch(f"laptop/{plain_device}", {"name": "x"}),
            api(bob).delete(f"laptop/{plain_device}"),
        ):
            assert error_of(response) == (404, "record_not_found", None)


def test_changed_rule_applies_to_the_next_request(device: Table, bob: User):  # B56
    open_table("device")
    record_id = record("device", name="Lamp")
    assert api(bob).patch(f"device/{record_id}", {"name": "a"}).status_code == 200
    for operation in ("write", "create", "delete"):
        Rule.objects.get(table=device, operation=operation).delete()
    assert error_of(api(bob).post("device", {}))[0] == 403
    assert error_of(api(bob).patch(f"device/{record_id}", {"name": "b"}))[0] == 403
    assert error_of(api(bob).delete(f"device/{record_id}"))[0] == 403
    rule("create", "device")
    rule("create", "device", "name", roles=["editor"])
    rule("read", "device", "state", roles=["editor"])
    assert "state" not in data_of(api(bob).post("device", {}))[0]
    assert error_of(api(bob).post("device", {"name": "x"}))[0] == 403
